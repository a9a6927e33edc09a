"""Approvals that never count again: used at Provisioning, or withdrawn. Pure.

An approval is for one request in one life: this ledger rejects it once the request is filed again, or if it
was withdrawn and is restored. A request requeued through no fault of its own keeps the approval it used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Literal

from reconciler.model.facts import Facts, Wanted
from reconciler.model.statuses import changed
from schemas.documents.approval import statement_id
from schemas.status.gpr_status import HOLDING, WAITING, GPRStatus
from schemas.status.judgements import SpentApproval

REMEMBERED = timedelta(days=400)
"""For approvals whose end is no longer known; an approval that counts ends within a year."""
MOST_SPENT = 2000
"""Rows of one slice; when it is full, new approvals do not count, because they could not be recorded."""

Spent = Mapping[str, tuple[SpentApproval, ...]]


def is_live(id_: str, key: str, facts: Facts) -> bool:
    """True if an approval may still count for this request."""
    status, rows = facts.requests.get(key), facts.used_approvals.get(key.partition("/")[0], ())
    is_own = status is not None and status.approval is not None and id_ in status.approval.ids
    why = {row.why for row in rows if row.id == id_}
    if is_own:
        return "withdrawn" not in why
    return not why and len(rows) < MOST_SPENT


def spent_after(before: Facts, requests: Mapping[str, GPRStatus], wanted: Wanted, now: datetime) -> Spent:
    """The ledger once `before` has become `requests`; the same object if nothing changed."""
    fresh = list(_freshly_spent(before, requests, wanted, now))
    ends = any(row.until <= now for rows in before.used_approvals.values() for row in rows)
    if not fresh and not ends:
        return before.used_approvals
    found = {
        slice_: {row.id: row for row in rows if row.until > now}
        for slice_, rows in before.used_approvals.items()
    }
    for row in fresh:
        found.setdefault(row.request.partition("/")[0], {})[row.id] = row
    return {
        slice_: tuple(rows[id_] for id_ in sorted(rows)) for slice_, rows in sorted(found.items()) if rows
    }


def _freshly_spent(
    before: Facts, requests: Mapping[str, GPRStatus], wanted: Wanted, now: datetime
) -> Iterator[SpentApproval]:
    known = {(row.id, row.why) for rows in before.used_approvals.values() for row in rows}
    for key in sorted(changed(before.requests, requests)):
        old, new = before.requests.get(key), requests.get(key)
        filed = {
            statement_id(wanted.project_name, approval): approval.spec.not_after
            for approval in wanted.approvals.get(key, ())
        }
        for id_, why in _spent_by(old, new, filed.keys()):
            if (id_, why) not in known:
                until = filed.get(id_) or now + REMEMBERED
                yield SpentApproval(id=id_, request=key, why=why, until=until)


def _spent_by(
    old: GPRStatus | None, new: GPRStatus | None, filed: Collection[str]
) -> Iterator[tuple[str, Literal["consumed", "withdrawn"]]]:
    """What became of a request's approvals when it went from `old` to `new`."""
    had, has = _words(old), _words(new)
    if new is not None and new.phase in HOLDING:
        yield from ((id_, "consumed") for id_ in has)
        return
    gone = [id_ for id_ in had if id_ not in filed and id_.startswith("sha256:")]
    if new is not None and new.phase in WAITING:
        yield from ((id_, "withdrawn") for id_ in gone if id_ not in has)
    elif old is not None and old.phase in WAITING:
        # A rejection stands as long as its file does; an approval was for the life that ends here.
        rejected = new is not None and new.approval is not None and new.approval.decision == "reject"
        yield from ((id_, "withdrawn") for id_ in had if not (rejected and id_ in has))
    elif old is not None and old.approval is not None and old.approval.decision == "reject":
        yield from ((id_, "withdrawn") for id_ in gone)


def _words(status: GPRStatus | None) -> tuple[str, ...]:
    """Names of approvals; unverified ones are left out, because anyone could make them again."""
    state = None if status is None else status.approval
    return () if state is None or state.how in (None, "file") else state.ids
