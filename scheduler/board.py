"""The state that planning works on: pool calendars and slice calendars, and moves that keep both true.

Times of a request are its own [start, end); times of a pool are holds, wider by preparation and draining. A
board knows nothing of rank: `scheduler.plan` decides who is put on it and who is lifted off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from scheduler.calendar import PoolCalendar, Share, Steps
from scheduler.snapshot import FOREVER, Pool, PoolKey, Request, Snapshot, Window
from scheduler.stretches import free_stretches, leases_by_pool


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in the plan. `shares` are empty until the request is put there."""

    pool: PoolKey
    start: int
    end: int
    hold: Window
    shares: tuple[Share, ...] = ()


class Board:
    """Free nodes of every pool and free time of every slice."""

    __slots__ = ("_now", "_pools", "_slices", "calendars", "stretches")

    def __init__(self, snapshot: Snapshot) -> None:
        """Holds the snapshot's leases and nothing else."""
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
        self._slices: dict[str, Steps] = {}
        for lease in snapshot.leases.values():
            self._occupy(lease.slice, lease.start, lease.end, -1)

    def copy(self) -> Self:
        """An equal one that changes alone."""
        twin = object.__new__(type(self))
        twin._now, twin._pools, twin.stretches = self._now, self._pools, self.stretches
        twin.calendars = {key: calendar.copy() for key, calendar in self.calendars.items()}
        twin._slices = {key: steps.copy() for key, steps in self._slices.items()}
        return twin

    def earliest(self, request: Request, before: int = FOREVER) -> Spot | None:
        """The earliest spot among the request's open pools that starts before `before`; ties: the first pool."""
        best = None
        for key in request.pools:
            pool = self._pools.get(key)
            if pool is None or not pool.open:
                continue
            start = self._earliest_in(pool, request, before)
            if start is not None:
                best, before = spot(pool, request, start, self._now), start
        return best

    def fits(self, request: Request, place: Spot) -> bool:
        """The slice and enough nodes are free for the whole of `place`."""
        return self.slice_free(request, place) and self.nodes_free(request, place)

    def slice_free(self, request: Request, place: Spot) -> bool:
        """No other request of the slice runs meanwhile."""
        steps = self._slices.get(request.slice)
        return steps is None or steps.lowest(place.start, place.end) >= 1

    def nodes_free(self, request: Request, place: Spot) -> bool:
        """Enough nodes are free for the whole hold."""
        return self.calendars[place.pool].room(place.hold.begin, place.hold.end) >= request.nodes

    def put(self, request: Request, place: Spot, wanted: Sequence[Share] = ()) -> Spot:
        """Takes the nodes and the slice; `place` with the groups its nodes come from."""
        hold = place.hold
        shares = self.calendars[place.pool].take(request.nodes, hold.begin, hold.end, wanted)
        self._occupy(request.slice, place.start, place.end, -1)
        return Spot(place.pool, place.start, place.end, hold, shares)

    def put_back(self, request: Request, place: Spot) -> None:
        """Takes exactly what `place` says."""
        self.calendars[place.pool].take_exactly(place.shares, place.hold.begin, place.hold.end)
        self._occupy(request.slice, place.start, place.end, -1)

    def lift(self, request: Request, place: Spot) -> None:
        """Gives back what `put` took."""
        self.calendars[place.pool].give(place.shares, place.hold.begin, place.hold.end)
        self._occupy(request.slice, place.start, place.end, 1)

    def _occupy(self, slice_: str, start: int, end: int, amount: int) -> None:
        if not slice_ or end <= max(start, self._now):
            return
        if slice_ not in self._slices:
            self._slices[slice_] = Steps(self._now, 1)
        self._slices[slice_].add(start, end, amount)

    def _earliest_in(self, pool: Pool, request: Request, before: int) -> int | None:
        calendar, steps = self.calendars[pool.key], self._slices.get(request.slice)
        length = pool.prepare + request.duration + pool.drain
        start = floor(pool, request, self._now)
        while True:
            begin = calendar.earliest(request.nodes, length, start - pool.prepare, before - pool.prepare)
            if begin is None or steps is None:
                return None if begin is None else begin + pool.prepare
            start = begin + pool.prepare
            free_from = steps.first_gap(1, request.duration, start, before)
            if free_from is None or free_from == start:
                return free_from
            # The slice runs something else there: look again from where it is free.
            start = free_from


def floor(pool: Pool, request: Request, now: int) -> int:
    """No start of the request in this pool is earlier: checks take `prepare`, and some may not be pulled forward."""
    least = max(now + pool.prepare, request.not_before)
    if request.promise is not None and not request.movable:
        least = max(least, request.promise.start)
    return least


def spot(pool: Pool, request: Request, start: int, now: int) -> Spot:
    """Where `request` would stand; a promise may be nearer than preparation takes, its hold then begins now."""
    end = start + request.duration
    hold = Window(max(now, start - pool.prepare), end + pool.drain)
    return Spot(pool.key, start, end, hold)
