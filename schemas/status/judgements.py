"""The controller's judgements: held changes of main, and used or withdrawn approvals."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Instant


class HeldChange(Model):
    """An unauthorised change on main; the content that was authorised last is in force instead."""

    path: Annotated[str, Field(description="File.")]
    authorised: Annotated[
        str | None, Field(description="Blob id of the content in force; absent: no file is.")
    ] = None
    mode: Annotated[int, Field(description="Git's mode of that content; 33188 is a plain file's.")] = 0o100644
    found: Annotated[
        str | None, Field(description="Blob id of the content on main; absent: it was deleted.")
    ] = None
    commit: Annotated[str, Field(description="Commit of main that made the change.")]
    rule: Annotated[str, Field(description="The rule that forbids it: a stable CamelCase identifier.")]
    message: Annotated[str, Field(description="The rule in words, with what to do.")]
    since: Annotated[Instant, Field(description="When it was judged.")]


class TrustRecord(Document):
    """`trust.yaml` on the status branch: how far main was judged, and which changes do not count."""

    kind: Annotated[Literal["Trust"], Field(description="Kind of document.")] = "Trust"
    main: Annotated[str, Field(description="Commit of main up to which changes were judged.")]
    held: Annotated[tuple[HeldChange, ...], Field(description="By path.")] = ()


class SpentApproval(Model):
    """An approval statement that never counts again."""

    id: Annotated[str, Field(description="The statement's digest.")]
    request: Annotated[str, Field(description="slice/name.")]
    why: Annotated[Literal["consumed", "withdrawn"], Field(description="Used for a lease, or taken back.")]
    until: Annotated[Instant, Field(description="When it would have expired; then this row is removed.")]


class SpentRecord(Document):
    """`approvals/<slice>.yaml` on the status branch: used and withdrawn approvals."""

    kind: Annotated[Literal["SpentApprovals"], Field(description="Kind of document.")] = "SpentApprovals"
    spent: Annotated[tuple[SpentApproval, ...], Field(description="By id.")] = ()
