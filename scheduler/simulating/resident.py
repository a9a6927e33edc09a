"""A queue that stays as arrays from one plan to the next, for traces of thousands of requests.

Answers as `scheduler.simulating.queue.Queue` does. Where `scheduler.simulating.replanning` cannot plan (a promise
fails, a wait is bounded) the world is made of objects and planned by `scheduler.plan`. Imports numba.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from scheduler.causes import Moved, Starts, explained
from scheduler.rank import Rank, rank_key
from scheduler.reasons import no_place
from scheduler.simulating.compressing import compress
from scheduler.simulating.fleet import Fleet
from scheduler.simulating.queue import Engine, Move, Planned, Since, causes_of
from scheduler.simulating.replanning import (
    NOWHERE,
    Asked,
    Gone,
    Holds,
    Section,
    Shown,
    Steps,
    World,
    all_stand,
    place,
)
from scheduler.snapshot import (
    FOREVER,
    Change,
    ChangeKind,
    Displaced,
    Placement,
    Plan,
    PoolKey,
    Promise,
    Request,
    Snapshot,
)

Ints = NDArray[np.int64]
(_NODES, _DURATION, _WISH, _DISPLACES, _SPOT, _START), _POOLS = range(6), 6
"""Columns of the table; the numbers of the pools of a request follow, filled up with -1."""
_MOST_NODES, _MOST_DURATIONS = 16, 32
"""Marks of what searches show; more make bounds closer and each of them dearer."""


@dataclass(frozen=True, slots=True)
class _State:
    """The queue at one instant, by rank; requests are as they were filed, what was promised is in the table."""

    pools: tuple[PoolKey, ...]
    requests: Sequence[Request]
    table: Ints

    def request(self, i: int) -> Request:
        """With its promise."""
        spot, start, displaces = self.table[i, [_SPOT, _START, _DISPLACES]].tolist()
        promise = None if spot == NOWHERE else Promise(self.pools[spot], start)
        return replace(self.requests[i], promise=promise, may_displace=bool(displaces))

    def placement(self, i: int) -> Placement | None:
        """Where it stands."""
        spot, start, duration = self.table[i, [_SPOT, _START, _DURATION]].tolist()
        if spot == NOWHERE:
            return None
        return Placement(self.requests[i].key, self.pools[spot], start, start + duration)

    def less(self, out: Sequence[int]) -> _State:
        """Without those of these numbers, in order."""
        requests = list(self.requests)
        for i in reversed(out):
            del requests[i]
        return _State(self.pools, requests, np.delete(self.table, out, axis=0))

    def all(self) -> dict[str, Request]:
        """Everybody."""
        return {request.key: self.request(i) for i, request in enumerate(self.requests)}


class Resident:
    """Requests that wait, by rank."""

    def __init__(self, pools: Iterable[PoolKey]) -> None:
        self._pools = tuple(pools)
        self._numbers = {key: number for number, key in enumerate(self._pools)}
        self._ranks: list[Rank] = []
        self._filed: list[Request] = []
        self._by_key: dict[str, Rank] = {}
        self._table: Ints = np.empty((0, _POOLS + len(self._pools)), dtype=np.int64)
        self._bounded = 0  # how many waits are bounded
        self._last: tuple[_State, Fleet, int, bool] | None = None  # what the last plan was made of
        self.requests: Mapping[str, Request] = _Requests(self)

    def file(self, request: Request) -> None:
        """As `scheduler.simulating.queue.Waiting`, like all that follows."""
        self._insert(replace(request, promise=None, may_displace=True))

    def change(self, request: Request) -> None:
        self._delete(request.key)
        self._insert(request)

    def leave(self, key: str) -> Request:
        request = self.requests[key]
        self._delete(key)
        return request

    def plan(self, now: int, fleet: Fleet, engine: Engine, roomier: bool) -> Planned:
        before = _State(self._pools, tuple(self._filed), self._table)
        pools, leases = dict(fleet.pools), dict(fleet.leases)
        found = None if self._bounded else replanned(before, fleet, now, roomier)
        if found is None:
            return self._planned_plainly(before, engine, Snapshot(now, pools, leases, before.all()))
        after, displaced = found
        self._table = _promised(after.table)
        refused = [before.requests[i] for i in np.flatnonzero(after.table[:, _SPOT] == NOWHERE).tolist()]
        nobody = Snapshot(now, pools, {}, {})
        refusals = {request.key: no_place(nobody, request) for request in refused}

        def made() -> tuple[Snapshot, Plan]:
            order = tuple(request.key for request in after.requests)
            places = {key: spot for i, key in enumerate(order) if (spot := after.placement(i)) is not None}
            return Snapshot(now, pools, leases, before.all()), Plan(order, places, refusals, displaced)

        self._last = (before, fleet, now, roomier)
        return Planned(tuple(_moves(before, after)), displaced, refusals, made)

    def causes(
        self, since: Since, planned: Planned, slipped: Sequence[Move], trials: int
    ) -> Mapping[str, Moved]:
        if self._last is None or not all(_is_arrival(change, since) for change in since.changes):
            return causes_of(since, planned, trials)
        before, fleet, now, roomier = self._last

        def without(undone: Sequence[Change]) -> Starts:
            out = sorted(self.place_of(change.key) for change in undone)
            found = replanned(before.less(out), fleet, now, roomier)
            return _nobody if found is None else partial(self._start_in, found[0], out)

        if len(since.changes) == 1:
            return _of_one(since.changes[0], slipped, without)
        moved = ((m.key, m.was, None if m.place is None else m.place.start) for m in slipped)
        known = [(key, was, start) for key, was, start in moved if was is not None]
        return {one.key: one for one in explained(known, since.changes, planned.displaced, without, trials)}

    def _start_in(self, state: _State, out: list[int], key: str) -> int | None:
        """Where somebody starts in a state that lacks those numbered `out`."""
        i = self.place_of(key)
        i -= bisect_left(out, i)
        missing = state.requests[i].key != key or state.table[i, _SPOT] == NOWHERE
        return None if missing else int(state.table[i, _START])

    def _planned_plainly(self, before: _State, engine: Engine, world: Snapshot) -> Planned:
        changed, plan = engine(world)
        table = before.table.copy()
        for i, request in enumerate(before.requests):
            place = plan.placements.get(request.key)
            table[i, _SPOT] = NOWHERE if place is None else self._numbers[place.pool]
            table[i, _START] = 0 if place is None else place.start
        self._table, self._last = _promised(table), None
        moves = _moves(before, _State(self._pools, before.requests, table))
        return Planned(tuple(moves), tuple(plan.displaced), plan.refusals, lambda: (changed, plan))

    def at(self, i: int) -> Request:
        """The request of that rank, with its promise."""
        return _State(self._pools, self._filed, self._table).request(i)

    def place_of(self, key: str) -> int:
        """Its number in the rank; raises KeyError."""
        return bisect_left(self._ranks, self._by_key[key])

    def keys(self) -> Iterator[str]:
        """By rank."""
        return (request.key for request in self._filed)

    def _insert(self, request: Request) -> None:
        rank = rank_key(request)
        i = bisect_left(self._ranks, rank)
        self._ranks.insert(i, rank)
        self._filed.insert(i, request)
        self._by_key[request.key] = rank
        self._table = np.insert(self._table, i, self._row(request), axis=0)
        self._bounded += request.latest < FOREVER

    def _delete(self, key: str) -> None:
        i = self.place_of(key)
        self._bounded -= self._filed[i].latest < FOREVER
        del self._ranks[i], self._filed[i], self._by_key[key]
        self._table = np.delete(self._table, i, axis=0)

    def _row(self, request: Request) -> list[int]:
        promise = request.promise
        spot, start = (NOWHERE, 0) if promise is None else (self._numbers[promise.pool], promise.start)
        pools = [self._numbers[key] for key in request.pools]
        filled = [*pools, *[NOWHERE] * (len(self._pools) - len(pools))]
        asked = (request.nodes, request.duration, request.not_before, request.may_displace)
        return [*asked, spot, start, *filled]


class _Requests(Mapping[str, Request]):
    """Requests made when somebody looks."""

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


def _of_one(
    change: Change, slipped: Sequence[Move], without: Callable[[Sequence[Change]], Starts]
) -> dict[str, Moved]:
    """As `explained`, of a single change: one trial answers for everybody."""
    start, found = without((change,)), {}
    for move in slipped:
        was, place = move.was or 0, move.place
        held = start(move.key)
        proven = held is not None and held <= was
        now = None if place is None else place.start
        found[move.key] = Moved(move.key, was, now, (change,), proven)
    return found


def _nobody(key: str) -> int | None:  # noqa: ARG001
    """No start at all."""
    return None


def replanned(
    before: _State, fleet: Fleet, now: int, roomier: bool
) -> tuple[_State, tuple[Displaced, ...]] | None:
    """The plan as another state, and who gave way; None where promises do not all stand."""
    world = _world(before, fleet, now)
    asked, gone = world.asked, world.gone
    fresh = bool((asked.spot == NOWHERE).any())
    late = (asked.spot != NOWHERE) & (asked.start < np.maximum(now, asked.wish))
    if late.any() or not all_stand(world):
        return None
    if fresh:
        place(world)
    count = int(gone.size[0])
    if roomier or count:
        compress(world)
    after = before.table.copy()
    after[:, _SPOT], after[:, _START] = asked.spot, asked.start
    pairs = zip(gone.who[:count].tolist(), gone.whom[:count].tolist(), strict=True)
    displaced = tuple(Displaced(before.requests[i].key, before.requests[j].key) for i, j in pairs)
    return _State(before.pools, before.requests, after), displaced


def _world(state: _State, fleet: Fleet, now: int) -> World:
    """The arrays, and room for all that can be needed: everybody is put once more and moves once at most."""
    columns = [state.table[:, column].copy() for column in range(_POOLS)]
    nodes, duration, wish, displaces, spot, start = columns
    pools, size, count = np.ascontiguousarray(state.table[:, _POOLS:]), nodes.size, len(state.pools)
    asked = Asked(nodes, duration, wish, displaces == 1, pools, spot, start)
    holds = _holds(asked, fleet, state.pools, now)
    width = holds.at.shape[1]
    shape = (count, width + 4 * size + 8)
    return World(
        asked,
        holds,
        Steps(np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64), _none(count)),
        _shown(asked, count, now),
        Gone(_none(size), _none(size), _none(1)),
        Section(np.empty(width + 2, dtype=np.int64), np.empty(width + 2, dtype=np.int64)),
        now,
    )


def _none(size: int) -> Ints:
    return np.zeros(size, dtype=np.int64)


def _holds(asked: Asked, fleet: Fleet, pools: Sequence[PoolKey], now: int) -> Holds:
    """All instants at which nodes are taken or come free, by pool and in order of time."""
    parts = [_hold(asked, fleet, key, number, now) for number, key in enumerate(pools)]
    width = max((at.size for at, _, _ in parts), default=0) + 2 * asked.nodes.size + 8
    # Half the bytes are half the work of making room in the middle.
    made = [np.empty((len(pools), width), dtype=kind) for kind in (np.int64, np.int32, np.int32)]
    for number, part in enumerate(parts):
        for column, values in zip(made, part, strict=True):
            column[number, : values.size] = values
    there = [fleet.pools[key] for key in pools]
    return Holds(
        made[0],
        made[1],
        made[2],
        np.array([at.size for at, _, _ in parts], dtype=np.int64),
        np.array([fleet.free(key) for key in pools], dtype=np.int64),
        np.array([pool.prepare for pool in there], dtype=np.int64),
        np.array([pool.drain for pool in there], dtype=np.int64),
    )


def _hold(asked: Asked, fleet: Fleet, key: PoolKey, number: int, now: int) -> tuple[Ints, Ints, Ints]:
    pool, (until, back) = fleet.pools[key], fleet.returning(key)
    who = np.flatnonzero(asked.spot == number)
    start, nodes = asked.start[who], asked.nodes[who]
    begin, end = np.maximum(now, start - pool.prepare), start + asked.duration[who] + pool.drain
    at = np.concatenate((until, begin, end))
    order = at.argsort(kind="stable")
    leases = np.full(until.size, NOWHERE, dtype=np.int64)
    change = np.concatenate((back, -nodes, nodes))
    return at[order], change[order], np.concatenate((leases, who, who))[order]


def _shown(asked: Asked, pools: int, now: int) -> Shown:
    """Nothing is shown yet."""
    axes = (asked.nodes, asked.duration)
    nodes, duration = (
        _marks(axis, most) for axis, most in zip(axes, (_MOST_NODES, _MOST_DURATIONS), strict=True)
    )
    below = [
        there.searchsorted(axis, "right") - 1 for there, axis in zip((nodes, duration), axes, strict=True)
    ]
    above = [there.searchsorted(axis) for there, axis in zip((nodes, duration), axes, strict=True)]
    marks = np.ascontiguousarray(np.stack((*below, *above), axis=1))
    reach = np.append(duration[1:] - 1, FOREVER).astype(np.int64)
    return Shown(np.full((pools, nodes.size, duration.size), now, dtype=np.int64), marks, reach)


def _marks(values: Ints, most: int) -> Ints:
    """The values, or of many so many that are equally common, with the least."""
    rising = np.unique(values)
    if rising.size <= most:
        return rising
    return np.unique(np.append(np.sort(values)[:: -(-values.size // most)], rising[0]))


def _promised(table: Ints) -> Ints:
    """The table once its starts are promises."""
    found = table.copy()
    found[:, _DISPLACES] = table[:, _SPOT] != NOWHERE
    return found


def _moves(before: _State, after: _State) -> Iterator[Move]:
    columns = [_SPOT, _START]
    changed = (before.table[:, columns] != after.table[:, columns]).any(axis=1)
    for i in np.flatnonzero(changed).tolist():
        was = None if before.table[i, _SPOT] == NOWHERE else int(before.table[i, _START])
        yield Move(before.requests[i].key, was, after.placement(i))


def _is_arrival(change: Change, since: Since) -> bool:
    """Undoing it is leaving one request out."""
    known = change.key in since.requests or change.key in since.leases
    return change.kind is ChangeKind.REQUEST and not known
