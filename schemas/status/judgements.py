"""The controller's judgements: held changes of main, and used or withdrawn approvals."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Instant


class HeldChange(Model):
    """An unauthorised change on main; the content that was authorised last is in force instead."""

    path: str = Field(description="File.")
    authorised: str | None = Field(None, description="Blob id of the content in force; absent: no file is.")
    mode: int = Field(0o100644, description="Git's mode of that content; 33188 is a plain file's.")
    found: str | None = Field(None, description="Blob id of the content on main; absent: it was deleted.")
    commit: str = Field(description="Commit of main that made the change.")
    rule: str = Field(description="The rule that forbids it: a stable CamelCase identifier.")
    message: str = Field(description="The rule in words, with what to do.")
    since: Instant = Field(description="When it was judged.")


class TrustRecord(Document):
    """`trust.yaml` on the status branch: how far main was judged, and which changes do not count."""

    kind: Literal["Trust"] = Field("Trust", description="Kind of document.")
    main: str = Field(description="Commit of main up to which changes were judged.")
    held: tuple[HeldChange, ...] = Field((), description="By path.")


class SpentApproval(Model):
    """An approval statement that never counts again."""

    id: str = Field(description="The statement's digest.")
    request: str = Field(description="slice/name.")
    why: Literal["consumed", "withdrawn"] = Field(description="Used for a lease, or taken back.")
    until: Instant = Field(description="When it would have expired; then this row is removed.")


class SpentRecord(Document):
    """`approvals/<slice>.yaml` on the status branch: used and withdrawn approvals."""

    kind: Literal["SpentApprovals"] = Field("SpentApprovals", description="Kind of document.")
    spent: tuple[SpentApproval, ...] = Field((), description="By id.")
