"""A request that makes room comes back: while its nodes leave and are cleaned it is planned as if it waited already.

So its next start is a promise from the commit in which it is decided that it goes: kept in `eviction.back`, moved
later only with a named cause, and what it was told when it is in the queue again. For that first promise it takes only
room that nobody was promised: whoever waits pays nothing for somebody else's haste. Pure.

Held by tests/cases/reconciler/preemption.yaml.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.conditions import clean_by, with_its_return, without_promise
from reconciler.leaving import MINUTE, PREEMPTED, queues_again
from scheduler.snapshot import Placement
from schemas.status import GPRStatus, Phase, Return
from schemas.units import instant

SETTLED = timedelta(minutes=1)
"""Between nodes that are clean and the beginning of the next checks: a cycle to see the one, and a push to say it."""


def as_queued(status: GPRStatus, drain: timedelta) -> tuple[GPRStatus, datetime] | None:
    """The request as it will stand in the queue, and from when it may begin again; None: it makes room for nobody."""
    left, clean = _left(status), _clean_by(status, drain)
    if status.eviction is None or clean is None or left < MINUTE or status.accepted_spec.stopped:
        return None
    waits = without_promise(status).model_copy(
        update={"phase": Phase.QUEUED, "reason": PREEMPTED, "eviction": None, "remaining": left}
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


def returning(status: GPRStatus, place: Placement | None) -> GPRStatus:
    """A request that makes room, told when it starts again; None: nobody can say."""
    if status.eviction is None:
        return status
    back = None if place is None else _told(place)
    if back == status.eviction.back:
        return status
    return status.model_copy(update={"eviction": status.eviction.model_copy(update={"back": back})})


def _told(place: Placement) -> Return:
    return Return(
        start=instant(place.start),
        end=instant(place.end),
        cluster=place.pool[0],
        pool=place.pool[1],
        bound_nodes=place.bound,
    )


def came_back(old: GPRStatus, new: GPRStatus) -> bool:
    """Whether it is in the queue again after it made room: it has its place, and a start that is its own, or none."""
    return (
        new.phase is Phase.QUEUED
        and new.reason == PREEMPTED
        and old.eviction is not None
        and old.eviction.reason == PREEMPTED
    )
