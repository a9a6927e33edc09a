"""The return of an evicted request: while its nodes are cleaned it is planned as if it waited already. Pure.

The commit that decides the eviction promises its next start (`eviction.back`), from capacity that is not
promised to others: other requests pay nothing. It moves later only with a named cause. If its nodes are not
clean in time it loses that promise once, and is planned again when they are.

Held by tests/cases/reconciler/preemption.yaml and returns.yaml.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.lifecycle.early_end import MINUTE, PREEMPTED, queues_again
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Context, RequestOutcome
from reconciler.model.status_edits import clean_by, with_its_return, with_slip, without_promise
from scheduler.snapshot import Placement
from schemas.reading.units import format_instant, instant
from schemas.status.gpr_status import Cause, GPRStatus, Phase, Return

SETTLED = timedelta(minutes=1)
"""Between clean nodes and the next checks: one cycle to see it, and a push to record it."""


def as_queued(status: GPRStatus, drain: timedelta) -> tuple[GPRStatus, datetime] | None:
    """The request as it will be queued, and from when it can start again; None: it is not evicted."""
    left, clean = _left(status), _clean_by(status, drain)
    if status.eviction is None or clean is None or left < MINUTE or status.accepted_spec.stopped:
        return None
    waits = without_promise(status).edited(
        phase=Phase.QUEUED, reason=PREEMPTED, eviction=None, remaining=left
    )
    return with_its_return(waits, status.eviction), clean + SETTLED


def _left(status: GPRStatus) -> timedelta:
    eviction, end = status.eviction, status.end_time
    if eviction is None or eviction.reason != PREEMPTED or end is None:
        return timedelta()
    if status.phase is Phase.PROVISIONED:
        return (end - eviction.at) // MINUTE * MINUTE
    return status.remaining or timedelta() if queues_again(status) else timedelta()


def _clean_by(status: GPRStatus, drain: timedelta) -> datetime | None:
    if status.phase is Phase.PROVISIONED and status.eviction is not None:
        return status.eviction.at + drain
    return clean_by(status, drain)


def is_overdue(status: GPRStatus, drain: timedelta, now: datetime) -> bool:
    """True if its nodes should be clean by now: when they will be is unknown."""
    due = clean_by(status, drain)
    return status.phase is Phase.RELEASING and due is not None and now >= due


def unless_too_late(key: str, status: GPRStatus, unclean: str, context: Context) -> RequestOutcome:
    """A request with an unclean node; it loses its next start once the checks before that start are due.

    To postpone the start by minutes would move others too, and promise an unlikely start.
    """
    back = None if status.eviction is None else status.eviction.back
    if status.assignment is None or back is None:
        return RequestOutcome(status)
    spec = context.wanted.clusters.get(status.assignment.cluster)
    pool = context.wanted.pools.get((back.cluster, back.pool))
    prepare = timedelta(seconds=0 if pool is None else pool.prepare)
    drain = timedelta() if spec is None else spec.drain
    if not is_overdue(status, drain, context.now) or context.now + prepare <= back.start:
        return RequestOutcome(status)
    by = f"{status.assignment.cluster}/{unclean}"
    text = f"{key} moved from {format_instant(back.start)} to an unknown time: {Cause.CHECKS_FAILED} ({by})"
    slipped = with_slip(status, None, Cause.CHECKS_FAILED, by, context.now)
    return RequestOutcome(returning(slipped, None), (Event(context.now, EventReason.DELAYED, text, key),))


def returning(status: GPRStatus, place: Placement | None) -> GPRStatus:
    """An evicted request with its next start; None: unknown."""
    if status.eviction is None:
        return status
    back = None if place is None else _told(place)
    if back == status.eviction.back:
        return status
    return status.edited(eviction=status.eviction.edited(back=back))


def _told(place: Placement) -> Return:
    return Return(
        start=instant(place.start),
        end=instant(place.end),
        cluster=place.pool[0],
        pool=place.pool[1],
        bound_nodes=place.bound,
    )


def came_back(old: GPRStatus, new: GPRStatus) -> bool:
    """True if it is queued again after an eviction: it has its position, and a start of its own, or none."""
    return (
        new.phase is Phase.QUEUED
        and new.reason == PREEMPTED
        and old.eviction is not None
        and old.eviction.reason == PREEMPTED
    )
