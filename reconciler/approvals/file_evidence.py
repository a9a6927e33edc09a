"""What a request's status records about its file's authors and about a held change of the file. Pure."""

from __future__ import annotations

from datetime import datetime

from reconciler.model.facts import Filed
from reconciler.model.status_edits import with_condition, without_condition
from schemas.status.gpr_status import Condition, GPRStatus, Provenance

NOT_AUTHORISED = "ChangeNotAuthorised"
"""The condition of a request whose file on main differs from the content that counts."""


def with_evidence(before: GPRStatus | None, after: GPRStatus, filed: Filed, now: datetime) -> GPRStatus:
    """`after`, which the file made of `before`, with the file's authors and its held change."""
    found = _provenance(before, after, filed)
    if found != after.provenance:
        after = after.edited(provenance=found)
    if filed.held is None:
        return without_condition(after, NOT_AUTHORISED)
    held = filed.held
    claim = Condition(type=NOT_AUTHORISED, reason=held.rule, message=held.message, at=now)
    return with_condition(after, claim)


def _provenance(before: GPRStatus | None, after: GPRStatus, filed: Filed) -> Provenance | None:
    """Authors are kept for the request's life: a colleague's edit does not make the first author independent.

    A merge approves only the content that it brought, so it is dropped once other content is accepted.
    """
    old, new = None if before is None else before.provenance, filed.provenance
    is_same = before is not None and before.spec_digest == after.spec_digest
    merged_by = old.merged_by if old is not None and is_same else None
    if new is None or filed.spec is None or (old is not None and old.commit == new.commit):
        return None if old is None else old.edited(merged_by=merged_by)
    if after.accepted_spec == filed.spec and new.merged_by is not None:
        merged_by = new.merged_by
    authors = {*new.authors, *(() if old is None else old.authors)}
    return Provenance(commit=new.commit, authors=tuple(sorted(authors)), merged_by=merged_by)
