"""Bounds on waits: ageing, protection of often displaced promises, and a multiple of first come, first served. Pure.

Nothing here moves a promise by itself: ageing and protection decide which request gives way, and a bound keeps
later-filed requests of one band from pushing one too far.

What always holds:
  * time alone, whatever it adds to a priority, delays no request;
  * within its band a protected promise gives way only to an admin's move; if its slice may not ask for the last
    priority of the band, protection alone raises it no higher, and equal bands still displace it;
  * no request is pushed past its bound by later-filed requests of the same band.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from scheduler.fairness.rank import BAND, band, room_in_band
from scheduler.snapshot import FOREVER, Plan, Request, Snapshot
from schemas.documents.scheduling import Ageing

PROTECTED = -1
"""The share of a protected request: ahead of every share that a slice can have."""
ROUNDS = 8
"""Most plans made, each with more requests protected than the last; then all bounded ones are, for one more plan."""


def aged(priority: int, waited_s: int, ageing: Ageing) -> int:
    """What waiting adds to a priority, in whole steps and within its band."""
    steps = max(0, waited_s) // int(ageing.every.total_seconds())
    return min(steps * ageing.step, room_in_band(priority))


def protected(request: Request) -> Request:
    """The request at the head of its band; only protected requests that were filed before come first."""
    return replace(request, boost=room_in_band(request.priority), share=PROTECTED, service=0)


def latest(since: int, first_come: int, multiple: float) -> int:
    """The instant past which later requests of its band may not push a request that waits since `since` and that first
    come, first served would have started at `first_come`."""
    return since + int(multiple * max(0, first_come - since))


def first_come(snapshot: Snapshot) -> Snapshot:
    """The same world with each band served in order of filing, and without promises."""
    requests = {key: _in_turn(request) for key, request in snapshot.requests.items()}
    return replace(snapshot, requests=requests)


def _in_turn(request: Request) -> Request:
    return replace(
        request,
        priority=band(request.priority) * BAND + 1,
        boost=0,
        move=0,
        share=0,
        service=0,
        promise=None,
        may_displace=True,
        latest=FOREVER,
    )


def within_bounds(snapshot: Snapshot, engine: Callable[[Snapshot], Plan]) -> Plan:
    """The plan of `engine`, with all requests protected that would be pushed past their bound.

    Each round protects at least one more; the requests that would have pushed it wait behind it.
    """
    planned = engine(snapshot)
    spared = frozenset[str]()
    for _ in range(ROUNDS):
        fresh = _pushed_too_far(snapshot, planned) - spared
        if not fresh:
            return planned
        spared |= fresh
        planned = engine(_sparing(snapshot, spared))
    if _pushed_too_far(snapshot, planned) - spared:
        planned = engine(_sparing(snapshot, {k for k, r in snapshot.requests.items() if r.latest < FOREVER}))
    return planned


def guarded(snapshot: Snapshot) -> Snapshot:
    """The same world for a quote of a hypothetical request: requests at their bound do not give way within the band."""
    full = {
        key
        for key, request in snapshot.requests.items()
        if request.promise is not None and request.latest <= request.promise.start
    }
    return _sparing(snapshot, full) if full else snapshot


def _sparing(snapshot: Snapshot, spared: Collection[str]) -> Snapshot:
    requests = {
        key: protected(request) if key in spared else request for key, request in snapshot.requests.items()
    }
    return replace(snapshot, requests=requests)


def _pushed_too_far(snapshot: Snapshot, planned: Plan) -> frozenset[str]:
    if all(request.latest >= FOREVER for request in snapshot.requests.values()):
        return frozenset()
    taken_by = {displaced.key: displaced.by for displaced in planned.displaced if displaced.by}
    return frozenset(
        key
        for key in taken_by
        if (request := snapshot.requests[key]).latest < FOREVER  # most have no bound
        and _start(planned, key) > max(request.latest, _promised(request))
        and _is_pushed_by_later(snapshot, taken_by, key)
    )


def _start(planned: Plan, key: str) -> int:
    place = planned.placements.get(key)
    return FOREVER if place is None else place.start


def _promised(request: Request) -> int:
    return FOREVER if request.promise is None else request.promise.start


def _is_pushed_by_later(snapshot: Snapshot, taken_by: Mapping[str, str], key: str) -> bool:
    """Whether a later-filed request of its band took its room, directly or through others."""
    request, link = snapshot.requests[key], taken_by.get(key)
    while link is not None:
        other = snapshot.requests[link]
        if band(other.priority) == band(request.priority) and other.filed_at > request.filed_at:
            return True
        link = taken_by.get(link)
    return False
