"""The effects of one state of the documents compared with another: for `egs plan --against` and the check. Pure.

Held by tests/reconciler/cli/test_plan.py and tests/reconciler/pulls/test_check.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from reconciler.model.facts import Facts, Wanted
from reconciler.model.request_files import read_filings
from reconciler.model.statuses import live
from scheduler.causes.causes import BUDGET
from scheduler.causes.compare import Comparison, Effect, as_planned, compared
from scheduler.snapshot import Snapshot
from schemas.status.gpr_status import WAITING, Cause, Phase


class Side(Protocol):
    """One state of the documents, as the controller would see it."""

    @property
    def wanted(self) -> Wanted:
        """The documents in force."""

    @property
    def facts(self) -> Facts:
        """Every request as it would stand."""

    @property
    def snapshot(self) -> Snapshot:
        """The planner's world."""


def effects(base: Side, head: Side, budget: int = BUDGET, promised: Snapshot | None = None) -> Comparison:
    """The effects on planned requests, plus requests that are no longer planned, or not yet.

    `promised` is the world of `base` `as_planned`, if the caller has it.
    """
    committed = as_planned(base.snapshot) if promised is None else promised
    planned, out = compared(committed, head.snapshot, budget), barred(head)
    found = {effect.key: effect for effect in planned.effects}
    for key in sorted(out - barred(base) - found.keys()):
        if key not in base.facts.requests:
            found[key] = Effect(key, "refused", None, None)
    for key, status in live(head.facts.requests).items():
        if status.phase is Phase.PENDING_APPROVAL and key not in base.facts.requests:
            found[key] = Effect(key, "new", None, None)
    # Not planned does not mean deleted: the file may be refused now, or wait for an admin.
    told = tuple(
        replace(effect, change="refused", cause=_why_unplanned(base, head, key))
        if effect.change == "gone" and (key in out or _waits(head, key))
        else effect
        for key, effect in found.items()
    )
    return replace(planned, effects=told)


def barred(side: Side) -> frozenset[str]:
    """Requests that are not planned: a refused file and no record, or a violated hard limit."""
    requests = side.facts.requests
    files = read_filings(side.wanted.filed)
    unread = {key for key, filed in files if filed.spec is None and key not in requests}
    outside = {
        key
        for key, s in live(requests).items()
        if s.phase is Phase.QUEUED and key not in side.snapshot.requests
    }
    return frozenset(unread | outside)


def _waits(side: Side, key: str) -> bool:
    status = side.facts.requests.get(key)
    return status is not None and status.phase in WAITING


def _why_unplanned(base: Side, head: Side, key: str) -> Cause:
    before, after = base.facts.requests.get(key), head.facts.requests.get(key)
    same = before is not None and after is not None and before.accepted_spec == after.accepted_spec
    return Cause.POLICY_CHANGED if same else Cause.REQUEST_CHANGED
