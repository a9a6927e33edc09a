"""A queue kept as arrays between plans, for traces of thousands of requests.

Same results as `scheduler.replay.queue.Queue`. If `scheduler.replay.drawn_queue` cannot plan (a promise fails, a wait
is bounded), the world is built from objects and planned by `scheduler.plan`. There must be a library.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from scheduler.causes.causes import Starts, explained
from scheduler.fairness.rank import Rank, rank_key
from scheduler.kernel.placements import Displacements
from scheduler.reasons import no_place
from scheduler.replay.drawn_queue import (
    DISPLACES,
    DURATION,
    MARKS,
    MOST_DURATIONS,
    MOST_NODES,
    NODES,
    POOLS,
    SPOT,
    START,
    State,
    later,
    marked,
    marks,
    none,
    replanned,
)
from scheduler.replay.queue import Engine, Planned, Since, Why, causes_of
from scheduler.replay.replanning import NOWHERE
from scheduler.replay.replay_fleet import Fleet
from scheduler.snapshot import FOREVER, Change, ChangeKind, Plan, Pool, PoolKey, Refusal, Request, Snapshot

Ints = NDArray[np.int64]
Made = Callable[[], tuple[Snapshot, Plan]]
_FIRST_ROOM = 64


@dataclass(frozen=True, slots=True)
class _Last:
    """The inputs of the last plan, and the requests that it moved later."""

    before: State
    fleet: Fleet
    now: int
    roomier: bool
    gone: tuple[Ints, Ints]
    slipped: Ints


class Resident:
    """Waiting requests by rank, as `scheduler.replay.queue.Waiting`."""

    def __init__(self, pools: Mapping[PoolKey, Pool]) -> None:
        self._pools = tuple(pools)
        self._numbers = {key: number for number, key in enumerate(self._pools)}
        self._prepare = np.array([pool.prepare for pool in pools.values()], dtype=np.int64)
        self._ranks: list[Rank] = []
        self._filed: list[Request] = []
        self._by_key: dict[str, Rank] = {}
        self._room: Ints = np.empty((POOLS + len(self._pools), _FIRST_ROOM), dtype=np.int64)
        self._axes = (none(0), none(0))
        self._unmarked = 0  # arrivals since the marks were made
        self._bounded = 0  # number of bounded waits
        self._last: _Last | None = None
        self._named = set[str]()
        self._next: int | None = None  # begin of a hold, once it is known
        self.requests: Mapping[str, Request] = _Requests(self)

    @property
    def _table(self) -> Ints:
        return self._room[:, : len(self._filed)]

    def file(self, request: Request) -> None:
        self._insert(replace(request, promise=None))

    def change(self, request: Request) -> None:
        self._delete(request.key)
        self._insert(request)

    def leave(self, key: str) -> Request:
        request = self.requests[key]
        self._named.discard(key)
        self._delete(key)
        return request

    def plan(self, now: int, fleet: Fleet, engine: Engine, roomier: bool) -> Planned:
        self._named.clear()
        before = State(self._pools, tuple(self._filed), self._table.copy(), self._axes)
        pools, leases = dict(fleet.pools), dict(fleet.leases)
        found = None if self._bounded else replanned(before, fleet, now, roomier)
        if found is None:
            return self._planned_plainly(before, engine, Snapshot(now, pools, leases, before.all()))
        after, gone = found
        self._promise(after.table)
        refused = [before.requests[i] for i in np.flatnonzero(after.table[SPOT] == NOWHERE).tolist()]
        empty = Snapshot(now, pools, {}, {})
        refusals = {request.key: no_place(empty, request) for request in refused}

        def made() -> tuple[Snapshot, Plan]:
            order = tuple(request.key for request in after.requests)
            places = {key: spot for i, key in enumerate(order) if (spot := after.placement(i)) is not None}
            plan = Plan(order, places, refusals, tuple(Displacements(order, *gone)))
            return Snapshot(now, pools, leases, before.all()), plan

        slipped = later(before, after)
        self._last = _Last(before, fleet, now, roomier, gone, np.flatnonzero(slipped))
        return self._planned(before, after, gone[0][slipped[gone[0]]], refusals, made)

    def _planned(
        self, before: State, after: State, gave_way: Ints, refusals: Mapping[str, Refusal], made: Made
    ) -> Planned:
        columns = [SPOT, START]
        moved = (before.table[columns] != after.table[columns]).any(axis=0)
        had = before.table[SPOT] != NOWHERE
        starts = after.table[START]
        return Planned(
            [(before.requests[i].key, int(starts[i])) for i in np.flatnonzero(moved & ~had).tolist()],
            self._keys(np.flatnonzero(later(before, after))),
            self._keys(gave_way),
            not (moved & had).any(),
            refusals,
            made,
        )

    def _keys(self, numbers: Ints) -> list[str]:
        return [rank[-1] for rank in map(self._ranks.__getitem__, numbers.tolist())]

    def causes(self, since: Since, planned: Planned, trials: int) -> Sequence[Why]:
        last = self._last
        if last is None or not all(_is_arrival(change, since) for change in since.changes):
            return causes_of(since, planned, trials)

        def without(undone: Sequence[Change]) -> tuple[State, list[int]] | None:
            out = sorted(self.place_of(change.key) for change in undone)
            left = last.before.less(out)
            if not last.roomier and (left.table[SPOT] != NOWHERE).all():
                return left, out  # the other reservations hold without them, and no request is to be placed
            found = replanned(left, last.fleet, last.now, last.roomier)
            return None if found is None else (found[0], out)

        if len(since.changes) == 1:
            return self._of_one(last, since.changes[0], without((since.changes[0],)))

        def starts(undone: Sequence[Change]) -> Starts:
            found = without(undone)
            return (lambda _: None) if found is None else partial(self._start_in, *found)

        was, spots, now = last.before.table[START], self._table[SPOT], self._table[START]
        moved = (
            (self._filed[i].key, int(was[i]), None if spots[i] == NOWHERE else int(now[i]))
            for i in last.slipped.tolist()
        )
        displaced = Displacements([request.key for request in last.before.requests], *last.gone)
        known = explained(moved, since.changes, displaced, starts, trials)
        return [Why((one.key,), one.causes, one.proven) for one in known]

    def _of_one(self, last: _Last, change: Change, found: tuple[State, list[int]] | None) -> Sequence[Why]:
        """As `explained`, for a single change: one trial answers for all requests."""
        who, holds = last.slipped, np.zeros(last.slipped.size, dtype=np.bool_)
        if found is not None:
            table, (out,) = found[0].table, found[1]
            there = who - (who > out)
            stands = (who != out) & (table[SPOT, there] != NOWHERE)
            holds = stands & (table[START, there] <= last.before.table[START, who])
        groups = ((who[holds], True), (who[~holds], False))
        return [Why(self._keys(some), (change,), proven) for some, proven in groups if some.size]

    def _start_in(self, state: State, out: list[int], key: str) -> int | None:
        """The start of a request in a state that lacks those numbered `out`."""
        i = self.place_of(key)
        i -= bisect_left(out, i)
        missing = state.requests[i].key != key or state.table[SPOT, i] == NOWHERE
        return None if missing else int(state.table[START, i])

    def _planned_plainly(self, before: State, engine: Engine, world: Snapshot) -> Planned:
        changed, plan = engine(world)
        table = before.table.copy()
        for i, request in enumerate(before.requests):
            place = plan.placements.get(request.key)
            table[SPOT, i] = NOWHERE if place is None else self._numbers[place.pool]
            table[START, i] = 0 if place is None else place.start
        self._promise(table)
        self._last, after = None, replace(before, table=table)
        slipped = later(before, after)
        gave = (self.place_of(one.key) for one in plan.displaced if one.by)
        gave_way = np.array([i for i in gave if slipped[i]], dtype=np.int64)
        return self._planned(before, after, gave_way, plan.refusals, lambda: (changed, plan))

    def next_begin(self) -> int:
        if self._next is None:
            self._next = int(self._begins().min(initial=FOREVER))
        return self._next

    def due(self, now: int) -> Sequence[str]:
        if self.next_begin() > now:
            return ()
        begins = self._begins()
        who = np.flatnonzero(begins <= now)
        found = [key for _, key in sorted(zip(begins[who].tolist(), self._keys(who), strict=True))]
        self._named.update(found)
        self._next = None
        return found

    def _begins(self) -> Ints:
        """When each hold begins; `FOREVER` without a promise, or if it was returned already."""
        spot, start = self._table[SPOT], self._table[START]
        found = np.where(spot == NOWHERE, FOREVER, start - self._prepare[spot])
        found[[self.place_of(key) for key in self._named]] = FOREVER
        return found

    def at(self, i: int) -> Request:
        """The request of that rank, with its promise."""
        return State(self._pools, self._filed, self._table, self._axes).request(i)

    def place_of(self, key: str) -> int:
        """Its index in the rank; raises KeyError."""
        return bisect_left(self._ranks, self._by_key[key])

    def keys(self) -> Iterator[str]:
        """By rank."""
        return (request.key for request in self._filed)

    def _promise(self, table: Ints) -> None:
        """Starts become promises; a request without one then only gets nodes that no promise holds."""
        self._table[:] = table
        self._table[DISPLACES] = table[SPOT] != NOWHERE
        self._next = None

    def _insert(self, request: Request) -> None:
        rank, count = rank_key(request), len(self._filed)
        if count == self._room.shape[1]:
            self._room = np.concatenate((self._room, np.empty_like(self._room)), axis=1)
        i = bisect_left(self._ranks, rank)
        self._ranks.insert(i, rank)
        self._filed.insert(i, request)
        self._by_key[request.key] = rank
        self._room[:, i + 1 : count + 1] = self._room[:, i:count]
        self._room[:, i] = self._row(request)
        self._mark(i)
        self._bounded += request.latest < FOREVER
        self._next = None

    def _delete(self, key: str) -> None:
        i, count = self.place_of(key), len(self._filed)
        self._bounded -= self._filed[i].latest < FOREVER
        del self._ranks[i], self._filed[i], self._by_key[key]
        self._room[:, i : count - 1] = self._room[:, i + 1 : count]
        self._next = None

    def _row(self, request: Request) -> list[int]:
        promise = request.promise
        spot, start = (NOWHERE, 0) if promise is None else (self._numbers[promise.pool], promise.start)
        pools = [self._numbers[key] for key in request.pools]
        filled = [*pools, *[NOWHERE] * (len(self._pools) - len(pools))]
        asked = (request.nodes, request.duration, request.not_before, request.may_displace)
        return [*asked, spot, start, *[0] * 4, *filled]

    def _mark(self, i: int) -> None:
        """The request's marks on the axes of bounds; new axes once a quarter of the requests are new."""
        table, values = self._table, self._table[[NODES, DURATION], i]
        self._unmarked += 1
        below_all = any(axis.size == 0 or v < axis[0] for axis, v in zip(self._axes, values, strict=True))
        if not below_all and self._unmarked <= 16 + len(self._filed) // 4:
            table[MARKS, i] = marked(self._axes, values)
            return
        nodes, duration = table[NODES], table[DURATION]
        self._axes = (marks(nodes, MOST_NODES), marks(duration, MOST_DURATIONS))
        self._unmarked, table[MARKS] = 0, marked(self._axes, (nodes, duration))


class _Requests(Mapping[str, Request]):
    """Requests made on access."""

    def __init__(self, queue: Resident) -> None:
        self._queue = queue

    def __getitem__(self, key: str) -> Request:
        return self._queue.at(self._queue.place_of(key))

    def __contains__(self, key: object) -> bool:
        return key in self._queue._by_key

    def __iter__(self) -> Iterator[str]:
        return self._queue.keys()

    def __len__(self) -> int:
        return len(self._queue._filed)


def _is_arrival(change: Change, since: Since) -> bool:
    """Undoing it means leaving one request out."""
    known = change.key in since.requests or change.key in since.leases
    return change.kind is ChangeKind.REQUEST and not known
