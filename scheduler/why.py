"""What a waiting request waits for, in sentences, most direct reason first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scheduler.calendars.board import spot
from scheduler.reasons import in_nodes, pool_name
from scheduler.snapshot import FOREVER, Lease, Placement, Plan, Pool, Request, Snapshot, Window
from schemas.reading.units import format_instant, instant

_NAMED = 5
"""Most leases and requests named one by one; the rest are counted, to keep the text readable."""


def why(snapshot: Snapshot, plan: Plan, key: str) -> list[str]:
    """Why the waiting request `key` does not start now; empty if it does."""
    request = snapshot.requests[key]
    if key in plan.refusals:
        refusal = plan.refusals[key]
        fits = [f"What would fit: {refusal.would_fit}."] if refusal.would_fit else []
        return [f"{refusal.message}.", *fits]
    placement = plan.placements[key]
    pool = snapshot.pools[placement.pool]
    if placement.start <= snapshot.now + pool.prepare:
        return []
    return [
        *_wishes(snapshot, request, placement),
        *_own_slice(snapshot, plan, request, placement),
        *_running(snapshot, request, pool, placement),
        *_ahead(snapshot, plan, request, placement),
        *_maintenance(snapshot, pool, placement),
    ]


def _wishes(snapshot: Snapshot, request: Request, placement: Placement) -> Iterator[str]:
    if request.not_before > snapshot.now:
        yield f"It must not start before {_at(request.not_before)}, as requested."
    if request.promise is not None and not request.movable:
        yield f"Its start mode holds it until its promised start, {_at(placement.start)}."


def _own_slice(snapshot: Snapshot, plan: Plan, request: Request, placement: Placement) -> Iterator[str]:
    if not request.slice:
        return
    for lease in _by_end(snapshot.leases.values()):
        if lease.slice == request.slice and snapshot.now < lease.end <= placement.start:
            yield f"Its slice runs {lease.key} until {_at(lease.end)}, and a slice runs one request at a time."
    for other in _before(plan, request.key):
        if snapshot.requests[other.key].slice == request.slice and other.end <= placement.start:
            yield f"Its slice runs {other.key}, of higher rank, from {_at(other.start)} to {_at(other.end)}."


def _running(snapshot: Snapshot, request: Request, pool: Pool, placement: Placement) -> Iterator[str]:
    begin = spot(pool, request, placement.start, snapshot.now).hold.begin
    held = [
        lease
        for lease in _by_end(snapshot.leases.values())
        if lease.pool == pool.key
        and lease.slice != request.slice
        and snapshot.now < lease.held_until <= begin
    ]
    for lease in held[:_NAMED]:
        yield f"{lease.key} holds {in_nodes(len(lease.nodes))} of {pool_name(pool)} until {_at(lease.held_until)}."
    if len(held) > _NAMED:
        yield f"{len(held) - _NAMED} more hold nodes of {pool_name(pool)} until {_at(held[-1].held_until)}."


def _ahead(snapshot: Snapshot, plan: Plan, request: Request, placement: Placement) -> Iterator[str]:
    ahead = [
        other
        for other in _before(plan, request.key)
        if other.pool == placement.pool
        and other.start < placement.start
        and (not request.slice or snapshot.requests[other.key].slice != request.slice)
    ]
    for other in ahead[:_NAMED]:
        nodes = in_nodes(snapshot.requests[other.key].nodes)
        yield f"{other.key}, of higher rank, gets {nodes} from {_at(other.start)} to {_at(other.end)}."
    if len(ahead) > _NAMED:
        yield f"{len(ahead) - _NAMED} more requests of higher rank start before it in the same pool."


def _maintenance(snapshot: Snapshot, pool: Pool, placement: Placement) -> Iterator[str]:
    windows: dict[Window, int] = {}
    for name in pool.nodes:
        for window in pool.windows.get(name, ()):
            if snapshot.now < window.end and window.begin < placement.start:
                windows[window] = windows.get(window, 0) + 1
    for window, count in sorted(windows.items(), key=lambda entry: (entry[0].begin, entry[0].end)):
        until = "until an admin frees it" if count == 1 else "until an admin frees them"
        when = until if window.end >= FOREVER else f"until {_at(window.end)}"
        yield f"{in_nodes(count)} of {pool_name(pool)} {'is' if count == 1 else 'are'} out of service {when}."


def _before(plan: Plan, key: str) -> Iterator[Placement]:
    for other in plan.order[: plan.order.index(key)]:
        if other in plan.placements:
            yield plan.placements[other]


def _by_end(leases: Iterable[Lease]) -> list[Lease]:
    return sorted(leases, key=lambda lease: (lease.held_until, lease.key))


def _at(when: int) -> str:
    return format_instant(instant(when))
