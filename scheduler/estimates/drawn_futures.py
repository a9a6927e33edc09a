"""Which request starts when in one possible future, in which every real end is drawn but unknown until it happens.

A plan of such a future would be wrong twice: it would keep nodes free for later arrivals, and use knowledge that the
planner cannot have. So this simulates from one end or arrival to the next, and starts what fits, in rank order. The
first request that does not fit in a pool reserves its nodes there from the earliest instant known (strict ends); others
run before that if they end by then, or on nodes that it does not need (EASY backfill:
Lifka, JSSPP 1995). On a trace, with true ends and arrivals, it comes within minutes to an hour of the planner
(docs/explain/benchmarks.md) without planning at each of them.

Left out, because calibration on earlier starts corrects for it: individual node calendars, and displacement
between requests. Pure.

What always holds:
  * no request starts before it may, a pool never serves more than its nodes, and a slice never two requests at once;
  * if every request takes one node of one pool for all of its time, starts are those of the plan.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scheduler.snapshot import FOREVER, Lease, Pool, PoolKey, Snapshot

DEEPEST = 50
"""Most waiting requests examined at one instant beyond those that start: more would change little and cost most."""
_NOBODY = -1
_NOWHERE: PoolKey = ("", "")


@dataclass(frozen=True, slots=True)
class Going:
    """A request: its strict and its drawn duration, and when it begins to wait (for a future arrival: the arrival)."""

    nodes: int
    strict: int
    used: int
    since: int
    slice: str
    pools: tuple[tuple[PoolKey, int], ...]  # in order, each with the instant from which it may be used


def dispatched(
    snapshot: Snapshot, ends: Mapping[str, int], going: Sequence[Going], wanted: Collection[int]
) -> list[int]:
    """The starts of `going`, in rank order; FOREVER if there is none. `ends`: drawn ends of leases.

    Stops as soon as all numbers in `wanted` have a start: others may be missing then.
    """
    run = _Run(snapshot, ends, going)
    return run.until(set(wanted))


class _Event(NamedTuple):
    """An event: nodes come or go, a slice becomes free, a request arrives."""

    at: int
    who: int = _NOBODY
    pool: PoolKey = _NOWHERE
    nodes: int = 0
    known: int = 0  # when these nodes were expected
    slice: str = ""


class _Run:
    def __init__(self, snapshot: Snapshot, ends: Mapping[str, int], going: Sequence[Going]) -> None:
        self.at, self.going = snapshot.now, going
        self.pools = {key: pool for key, pool in snapshot.pools.items() if pool.open}
        self.free = {key: len(pool.nodes) for key, pool in self.pools.items()}
        self.returns: dict[PoolKey, list[tuple[int, int]]] = {key: [] for key in self.pools}
        self.leaves: dict[PoolKey, list[tuple[int, int]]] = {key: [] for key in self.pools}
        self.events: list[_Event] = []
        self.held: dict[str, int] = {}  # busy slices, and until when
        self.waiting: list[int] = []
        self.fresh: list[int] = []  # requests that arrived since the last round of starts
        self.is_roomier = True  # nodes came since then
        self.kept: dict[PoolKey, tuple[int, int]] = {}  # reserved from when, and how many remain then
        self.parked: dict[str, list[int]] = {}  # requests waiting for their slice
        self.starts = [FOREVER] * len(going)
        for key, pool in self.pools.items():
            for at, nodes in _changes(pool, self.at):
                self._change(at, key, nodes, at)
        for name, lease in sorted(snapshot.leases.items()):
            self._lease(lease, min(lease.end, ends.get(name, lease.end)))
        for i, one in enumerate(going):
            self._will_arrive(i, one)
        for there in self.returns.values():
            there.sort()
        heapq.heapify(self.events)

    def until(self, wanted: set[int]) -> list[int]:
        """Runs until these have started, or no events are left."""
        while True:
            while self.events and self.events[0].at <= self.at:
                self._happen(heapq.heappop(self.events))
            wanted.difference_update(self._start())
            if not (wanted and self.events):
                return self.starts
            self.at = self.events[0].at

    def _change(self, at: int, pool: PoolKey, nodes: int, known: int) -> None:
        if at <= self.at:
            self.free[pool] += nodes
        else:
            self.events.append(_Event(at, _NOBODY, pool, nodes, known))
            if nodes > 0:
                self.returns[pool].append((known, nodes))
            else:
                self.leaves[pool].append((at, -nodes))

    def _lease(self, lease: Lease, end: int) -> None:
        if lease.pool in self.pools:
            self.free[lease.pool] -= len(lease.nodes)
            back = max(self.at + 1, end + lease.held_until - lease.end)
            self._change(back, lease.pool, len(lease.nodes), max(back, lease.held_until))
        if lease.slice and end > self.at:
            self.held[lease.slice] = max(end, self.held.get(lease.slice, 0))
            self.events.append(_Event(end, slice=lease.slice))

    def _will_arrive(self, i: int, one: Going) -> None:
        known = [(key, opens) for key, opens in one.pools if key in self.pools]
        for at in {max(one.since, opens) - self.pools[key].prepare for key, opens in known}:
            if at <= self.at:
                self._wait(i)
            else:
                self.events.append(_Event(at, i))

    def _happen(self, event: _Event) -> None:
        if event.pool != _NOWHERE:
            self.free[event.pool] += event.nodes
            if event.nodes > 0:
                self.is_roomier = True
                there = self.returns[event.pool]
                del there[bisect_left(there, (event.known, event.nodes))]
        if event.who != _NOBODY:
            self._wait(event.who)
        if event.slice and self.held.get(event.slice, FOREVER) <= event.at:
            del self.held[event.slice]
            if queue := self.parked.get(event.slice):
                self._wait(heapq.heappop(queue))

    def _wait(self, i: int) -> None:
        place = bisect_left(self.waiting, i)
        if self.starts[i] == FOREVER and self.waiting[place : place + 1] != [i]:
            self.waiting.insert(place, i)
            self.fresh.append(i)

    def _start(self) -> list[int]:
        """Requests that start now, in rank order. If no nodes came, only new requests can."""
        asking = self.waiting if self.is_roomier else sorted(self.fresh)
        if self.is_roomier:
            self.kept.clear()
        began: list[int] = []
        gone: list[int] = []
        looked, most = 0, max(self.free.values(), default=0)
        for i in asking:
            if looked > DEEPEST or most <= 0:
                break
            one = self.going[i]
            if one.nodes > most and len(self.kept) == len(self.pools):
                looked += 1
            elif one.slice in self.held:
                heapq.heappush(self.parked.setdefault(one.slice, []), i)
                gone.append(i)
            elif (pool := self._pool(one)) is not None:
                self._begin(i, pool)
                began.append(i)
                most = max(self.free.values())
            else:
                self._keep(one)
                looked += 1
        for i in (*began, *gone):
            del self.waiting[bisect_left(self.waiting, i)]
        self.fresh, self.is_roomier = [], False
        return began

    def _pool(self, one: Going) -> PoolKey | None:
        """The first pool in which it can start now."""
        for key, opens in one.pools:
            if key not in self.pools or self.free[key] < one.nodes:
                continue
            start = self.at + self.pools[key].prepare
            since, spare = self.kept.get(key, (FOREVER, 0))
            over = start + one.strict + self.pools[key].drain
            is_over = over <= since
            there = self.free[key] - self._leaving(key, over)
            if one.nodes <= there and start >= max(one.since, opens) and (is_over or one.nodes <= spare):
                if not is_over:
                    self.kept[key] = (since, spare - one.nodes)
                return key
        return None

    def _leaving(self, key: PoolKey, before: int) -> int:
        """Nodes that leave until then, for maintenance or a reserve: no request may start that would be in the way."""
        return sum(nodes for at, nodes in self.leaves[key] if self.at < at < before)

    def _keep(self, one: Going) -> None:
        """Reserve its nodes where they are free soonest, as far as is known."""
        if all(key in self.kept for key, _ in one.pools if key in self.pools):
            return
        found = [
            (*soonest, key)
            for key, _ in one.pools
            if key in self.pools and (soonest := self._soonest(key, one.nodes)) is not None
        ]
        if found:
            since, spare, key = min(found)
            self.kept.setdefault(key, (since, spare))

    def _soonest(self, key: PoolKey, nodes: int) -> tuple[int, int] | None:
        """When that many more will be free than now, and how many others then; None: never."""
        free = self.free[key]
        if free >= nodes:
            return None  # they are free, but maintenance is in the way: nothing is reserved for that
        for at, back in self.returns[key]:
            free += back
            if free >= nodes:
                return at, free - nodes
        return None

    def _begin(self, i: int, key: PoolKey) -> None:
        one, pool = self.going[i], self.pools[key]
        start = self.at + pool.prepare
        end, known = start + min(one.used, one.strict), start + one.strict + pool.drain
        self.starts[i] = start
        self.free[key] -= one.nodes
        heapq.heappush(self.events, _Event(end + pool.drain, _NOBODY, key, one.nodes, known))
        insort(self.returns[key], (known, one.nodes))
        if one.slice:
            self.held[one.slice] = end
            heapq.heappush(self.events, _Event(end, slice=one.slice))


def _changes(pool: Pool, now: int) -> Iterator[tuple[int, int]]:
    """When nodes go (negative) and come regardless of requests: windows, and withheld nodes."""
    spans = [(window.begin, window.end, 1) for _, many in sorted(pool.windows.items()) for window in many]
    spans += [(one.begin, one.end, one.nodes) for one in pool.withheld]
    for begin, end, nodes in spans:
        if end > now:
            yield begin, -nodes
            if end < FOREVER:
                yield end, nodes
