"""What the controller remembers of its judgements: changes of main that are held, and words that are spent."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Instant


class HeldChange(Model):
    """A change on main that nobody with the right to it stands behind: what was authorised last counts instead."""

    path: Annotated[str, Field(description="File.")]
    authorised: Annotated[
        str | None, Field(description="Git's id of the content that counts; absent: no file counts.")
    ] = None
    mode: Annotated[int, Field(description="Git's mode of that content; 33188 is a plain file's.")] = 0o100644
    found: Annotated[str | None, Field(description="Git's id of what main has; absent: it was deleted.")] = (
        None
    )
    commit: Annotated[str, Field(description="Commit of main that made the change.")]
    rule: Annotated[str, Field(description="The rule that forbids it: a stable CamelCase word.")]
    message: Annotated[str, Field(description="The same for people, with what to do.")]
    since: Annotated[Instant, Field(description="When it was judged.")]


class TrustRecord(Document):
    """`trust.yaml` on the status branch: how far main was judged, and what of it does not count."""

    kind: Annotated[Literal["Trust"], Field(description="Kind of document.")] = "Trust"
    main: Annotated[str, Field(description="Commit of main up to which changes were judged.")]
    held: Annotated[tuple[HeldChange, ...], Field(description="By path.")] = ()


class SpentApproval(Model):
    """A statement that never counts again."""

    id: Annotated[str, Field(description="The statement's digest.")]
    request: Annotated[str, Field(description="slice/name.")]
    why: Annotated[Literal["consumed", "withdrawn"], Field(description="Used for a lease, or taken back.")]
    until: Annotated[Instant, Field(description="When it would have ended anyway; then this row goes.")]


class SpentRecord(Document):
    """`approvals/<slice>.yaml` on the status branch: words that were used up or taken back."""

    kind: Annotated[Literal["SpentApprovals"], Field(description="Kind of document.")] = "SpentApprovals"
    spent: Annotated[tuple[SpentApproval, ...], Field(description="By id.")] = ()
