"""Requests that violate a policy now: what is violated, and what users can do. Pure.

A changed policy re-judges waiting requests: they are not planned until they ask for less or it changes again.
A lease keeps its terms; the violation is shown until it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.approvals.is_approved import OUTSIDE
from reconciler.model.facts import Facts, Wanted
from reconciler.model.pools import home_of
from reconciler.model.statuses import live
from scheduler.choices.fit import limit_violations
from schemas.documents.slice import SliceSpec
from schemas.reading.units import format_instant
from schemas.rules.fit import needs_there
from schemas.rules.limits import LimitViolation, broken, broken_there
from schemas.status.gpr_status import HOLDING, GPRStatus, Phase


@dataclass(frozen=True, slots=True)
class Violation:
    """One policy that one request violates; `is_waiting`: it is not planned because of this."""

    key: str
    rule: str
    message: str
    fix: str
    is_waiting: bool


def violations(facts: Facts, wanted: Wanted) -> tuple[Violation, ...]:
    """For every request that waits or holds nodes, by name."""
    return tuple(
        found
        for key, status in sorted(live(facts.requests).items())
        for found in _of_request(key, status, wanted)
    )


def _of_request(key: str, status: GPRStatus, wanted: Wanted) -> Iterator[Violation]:
    slice_ = wanted.slices.get(status.accepted_spec.slice)
    if slice_ is None:
        return
    is_waiting = status.phase not in HOLDING
    found = _of_waiting(status, slice_, wanted) if is_waiting else _of_holding(status, slice_, wanted)
    for rule, what in dict(found).items():
        message = f"{key} is {status.phase} and violates a policy: {what}"
        yield Violation(key, rule, message, _advice(key, status), is_waiting)


def _of_waiting(status: GPRStatus, slice_: SliceSpec, wanted: Wanted) -> Iterator[tuple[str, str]]:
    for violation in limit_violations(status.accepted_spec, slice_, wanted.pools):
        yield _told(violation)
    for condition in status.conditions:
        if condition.type == OUTSIDE:
            yield condition.reason, condition.message


def _of_holding(status: GPRStatus, slice_: SliceSpec, wanted: Wanted) -> Iterator[tuple[str, str]]:
    spec, held = status.accepted_spec, status.assignment
    yield from (_told(violation) for violation in broken(spec, slice_.limits))
    if held is None:
        return
    if held.cluster not in slice_.clusters:
        yield "ClusterNotAllowed", f"its slice no longer includes {held.cluster}"
    pool = wanted.pools.get(home_of(held, wanted.pools))
    if pool is None:
        return
    offered = (held.cluster, pool)
    yield from (_told(violation) for violation in broken_there(spec, slice_.limits, offered))
    if status.approval is None:
        for need in needs_there(spec, slice_, wanted.project, offered):
            yield need.reason, f"it {need.message}"


def _told(violation: LimitViolation) -> tuple[str, str]:
    return violation.rule, violation.message


def _advice(key: str, status: GPRStatus) -> str:
    end = status.end_time or status.estimated_end_time
    if status.phase is Phase.RELEASING:
        return "nothing to do: its time is over"
    if status.phase in HOLDING and end is not None:
        return f"it keeps its terms until {format_instant(end)}; `egs gpr release {key}` ends it sooner"
    return f"lower the request (`egs gpr edit {key}`), cancel it, or have an admin change the policy"
