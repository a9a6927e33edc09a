"""The planner's state: pool calendars and slice calendars, and moves that keep both consistent.

A request's times are [start, end); a pool's times are holds, wider by preparation and draining. A board knows nothing
of rank: `scheduler.plan` decides which requests are put on it or lifted off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from scheduler.calendars.bounds import Bounds, Size
from scheduler.calendars.calendar import PoolCalendar, Share, Steps
from scheduler.calendars.stretches import free_stretches, leases_by_pool
from scheduler.snapshot import FOREVER, Pool, PoolKey, Request, Snapshot, Window


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in the plan. `shares` is empty until the request is put there."""

    pool: PoolKey
    start: int
    end: int
    hold: Window
    shares: tuple[Share, ...] = ()


class Board:
    """Free nodes of every pool and free time of every slice."""

    __slots__ = ("_bounds", "_now", "_pools", "_slices", "calendars", "stretches")

    def __init__(self, snapshot: Snapshot) -> None:
        """Pools with the snapshot's leases only."""
        self._now = snapshot.now
        self._pools = snapshot.pools
        by_pool = leases_by_pool(snapshot.leases)
        self.stretches = {
            key: free_stretches(pool, by_pool.get(key, ()), snapshot.now)
            for key, pool in snapshot.pools.items()
        }
        self.calendars = {
            key: PoolCalendar(nodes.values(), snapshot.now) for key, nodes in self.stretches.items()
        }
        for key, pool in snapshot.pools.items():
            for kept in pool.withheld:
                if kept.end > max(kept.begin, snapshot.now):
                    self.calendars[key].withhold(kept.nodes, kept.begin, kept.end)
        self._bounds = Bounds(snapshot.now, snapshot.requests.values())
        self._slices: dict[str, Steps] = {}
        for lease in snapshot.leases.values():
            self._occupy(lease.slice, lease.start, lease.end, -1)

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin._now, twin._pools, twin.stretches = self._now, self._pools, self.stretches
        twin.calendars = {key: calendar.copy() for key, calendar in self.calendars.items()}
        twin._bounds = self._bounds.copy()
        twin._slices = {key: steps.copy() for key, steps in self._slices.items()}
        return twin

    def earliest(self, request: Request) -> Spot | None:
        """The earliest spot among the request's open pools; ties: the first pool.

        Fallback pools are searched only if the others give no start in time (see `Request.fallback`).
        """
        return self._search(request, self._candidates(request), None)

    def advance(self, request: Request, place: Spot) -> Spot:
        """The request's earliest spot, with its own hold at `place` lifted; `place` if there is no earlier one.

        A pool that is held back less than its own wins at an equal start.
        """
        lifted = [self._once_lifted(request, place, pool) for pool in self._candidates(request)]
        earlier = [known for known in lifted if known.least < _limit(request, place, known.since)]
        if not earlier:
            return place
        self._give(request, place)
        better = self._search(request, earlier, place)
        if better is None:
            self.put_back(request, place)
            return place
        self._bounds.give(place.pool, place.hold.begin, self._margin(place.pool))
        return self.put(request, better)

    def fits(self, request: Request, place: Spot) -> bool:
        """Whether slice and enough nodes are free for the whole of `place`."""
        return self.slice_free(request, place) and self.nodes_free(request, place)

    def slice_free(self, request: Request, place: Spot) -> bool:
        """Whether no other request of the slice runs at that time."""
        steps = self._slices.get(request.slice)
        return steps is None or steps.lowest(place.start, place.end) >= 1

    def slice_steps(self, slice_: str) -> Steps:
        """A copy of when the slice is free: 1 if free, less while it runs something."""
        steps = self._slices.get(slice_)
        return Steps(self._now, 1) if steps is None else steps.copy()

    def nodes_free(self, request: Request, place: Spot) -> bool:
        """Whether enough nodes are free for the whole hold."""
        return self.calendars[place.pool].room(place.hold.begin, place.hold.end) >= request.nodes

    def put(self, request: Request, place: Spot, wanted: Sequence[Share] = ()) -> Spot:
        """Take the nodes and the slice; returns `place` with the groups of its nodes."""
        hold = place.hold
        shares = self.calendars[place.pool].take(request.nodes, hold.begin, hold.end, wanted)
        self._occupy(request.slice, place.start, place.end, -1)
        return Spot(place.pool, place.start, place.end, hold, shares)

    def put_back(self, request: Request, place: Spot) -> None:
        """Take exactly what `place` says."""
        self.calendars[place.pool].take_exactly(place.shares, place.hold.begin, place.hold.end)
        self._occupy(request.slice, place.start, place.end, -1)

    def lift(self, request: Request, place: Spot) -> None:
        """Give back what `put` took."""
        self._give(request, place)
        self._bounds.give(place.pool, place.hold.begin, self._margin(place.pool))

    def _give(self, request: Request, place: Spot) -> None:
        self.calendars[place.pool].give(place.shares, place.hold.begin, place.hold.end)
        self._occupy(request.slice, place.start, place.end, 1)

    def _occupy(self, slice_: str, start: int, end: int, amount: int) -> None:
        if not slice_ or end <= max(start, self._now):
            return
        if slice_ not in self._slices:
            self._slices[slice_] = Steps(self._now, 1)
        self._slices[slice_].add(start, end, amount)

    def _candidates(self, request: Request) -> list[_Candidate]:
        """The request's open pools with known bounds, likely earliest first."""
        size, found = self._bounds.sizes.below(request), []
        for order, key in enumerate(request.pools):
            pool = self._pools.get(key)
            if pool is not None and pool.open:
                least = floor(pool, request, self._now)
                shown = self._bounds.of(key, size) + pool.prepare
                since = held_back_until(request, key)
                found.append(_Candidate(max(least, shown), order, least, pool, since))
        return sorted(found, key=lambda known: (known.since, known.least, known.order))

    def _search(self, request: Request, candidates: Sequence[_Candidate], place: Spot | None) -> Spot | None:
        """The best of these, pools held back less first; with a `place`, only what is better."""
        size = self._bounds.sizes.above(request)
        best: tuple[int, _Candidate] | None = None
        for known in candidates:
            before = _limit(request, place, known.since)
            if best is not None:
                if best[0] <= known.since:
                    break
                # Of equally early pools the least held back wins, then the first in the request's order.
                first = (known.since, known.order) < (best[1].since, best[1].order)
                before = min(before, best[0] + first)
            if known.least < before:
                start = self._earliest_in(request, known, before, size)
                if start is not None:
                    best = start, known
        return None if best is None else spot(best[1].pool, request, best[0], self._now)

    def _earliest_in(self, request: Request, known: _Candidate, before: int, size: Size) -> int | None:
        pool, steps = known.pool, self._slices.get(request.slice)
        calendar, length = self.calendars[pool.key], self._length(pool.key, request)
        begin = calendar.earliest(request.nodes, length, known.least - pool.prepare, before - pool.prepare)
        self._bounds.show(pool.key, size, before - pool.prepare if begin is None else begin)
        while begin is not None and steps is not None:
            start = begin + pool.prepare
            free_from = steps.first_gap(1, request.duration, start, before)
            if free_from is None or free_from == start:
                return free_from
            # The slice is busy at that time: continue where it is free.
            begin = calendar.earliest(request.nodes, length, free_from - pool.prepare, before - pool.prepare)
        return None if begin is None else begin + pool.prepare

    def _once_lifted(self, request: Request, place: Spot, known: _Candidate) -> _Candidate:
        """A pool's bounds without the request's own hold at `place`."""
        if known.pool.key != place.pool or known.floor >= place.start:
            return known
        begin, reach = place.hold.begin, place.start - self._length(place.pool, request) + 1
        if known.least >= reach and self.calendars[place.pool].room(begin - 1, begin) < request.nodes:
            # The remaining holds cover the instant before its own, and that instant is full.
            self._bounds.show(place.pool, self._bounds.sizes.above(request), begin)
            return replace(known, least=place.start)
        return replace(known, least=min(known.least, max(known.floor, reach)))

    def _margin(self, key: PoolKey) -> int:
        return self._pools[key].prepare + self._pools[key].drain

    def _length(self, key: PoolKey, request: Request) -> int:
        return request.duration + self._margin(key)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A pool for a request: no start before `least` is possible; `floor` is the bound without looking at nodes."""

    least: int
    order: int
    floor: int
    pool: Pool
    since: int


def held_back_until(request: Request, key: PoolKey) -> int:
    """The instant until which the request does not use this pool if others give a start."""
    return request.fallback.get(key, -FOREVER)


def _limit(request: Request, place: Spot | None, since: int) -> int:
    """The instant before which a start in a pool held back until `since` is better than `place`.

    In a pool held back less, an equal start is better; one held back more is useless if `place` is in time.
    """
    if place is None:
        return FOREVER
    own = held_back_until(request, place.pool)
    if since < own:
        return place.start + 1
    return place.start if since == own or place.start > since else -FOREVER


def floor(pool: Pool, request: Request, now: int) -> int:
    """Earliest possible start in this pool: checks take `prepare`, and some requests may not start early."""
    least = max(now + pool.prepare, request.not_before)
    if request.promise is not None and not request.movable:
        least = max(least, request.promise.start)
    return least


def spot(pool: Pool, request: Request, start: int, now: int) -> Spot:
    """The spot of `request`; if the promise is nearer than the preparation time, its hold begins now."""
    end = start + request.duration
    hold = Window(max(now, start - pool.prepare), end + pool.drain)
    return Spot(pool.key, start, end, hold)
