"""A queue as a table by rank, and its plan as another table, computed by compiled code.

Held by tests/scheduler/replay/test_replanning.py: the same results as `scheduler.plan.plan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scheduler.kernel.native import replay_compress, replay_place
from scheduler.replay.replanning import NOWHERE, Gone, RankedRequests, Section, Shown, Steps, Times, World
from scheduler.replay.replay_fleet import Fleet
from scheduler.snapshot import FOREVER, Placement, PoolKey, Promise, Request

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
(NODES, DURATION, WISH, DISPLACES, SPOT, START) = range(6)
MARKS, POOLS = slice(6, 10), 10
"""Rows of the table, which has a column per request. There are four marks of `Shown.marks`; the pools of a request
follow, padded with -1."""
MOST_NODES, MOST_DURATIONS = 16, 32
"""Marks of search bounds; more make bounds tighter and costlier."""


@dataclass(frozen=True, slots=True)
class State:
    """The queue at one instant, by rank; requests are as filed, promises are in the table."""

    pools: tuple[PoolKey, ...]
    requests: Sequence[Request]
    table: Ints
    axes: tuple[Ints, Ints]

    def request(self, i: int) -> Request:
        """The request with its promise."""
        spot, start, displaces = self.table[[SPOT, START, DISPLACES], i].tolist()
        promise = None if spot == NOWHERE else Promise(self.pools[spot], start)
        return replace(self.requests[i], promise=promise, may_displace=bool(displaces))

    def placement(self, i: int) -> Placement | None:
        """Its place in the plan."""
        spot, start, duration = self.table[[SPOT, START, DURATION], i].tolist()
        if spot == NOWHERE:
            return None
        return Placement(self.requests[i].key, self.pools[spot], start, start + duration)

    def less(self, out: Sequence[int]) -> State:
        """Without the requests of these numbers, which rise."""
        requests = list(self.requests)
        for i in reversed(out):
            del requests[i]
        return replace(self, requests=requests, table=np.delete(self.table, out, axis=1))

    def all(self) -> dict[str, Request]:
        return {request.key: self.request(i) for i, request in enumerate(self.requests)}


def later(before: State, after: State) -> Bools:
    """Requests whose start is later than promised, or lost."""
    lost, moved = after.table[SPOT] == NOWHERE, after.table[START] > before.table[START]
    found: Bools = (before.table[SPOT] != NOWHERE) & (lost | moved)
    return found


def replanned(before: State, fleet: Fleet, now: int, roomier: bool) -> tuple[State, tuple[Ints, Ints]] | None:
    """The plan as another state, and which request gave way to which; None if not all promises hold."""
    table = before.table
    spot, start = table[SPOT], table[START]
    fresh = np.flatnonzero(spot == NOWHERE)
    if ((spot != NOWHERE) & (start < np.maximum(now, table[WISH]))).any():
        return None
    counted = int(fresh[0]) if fresh.size else 0
    drawn = [_drawn(before, fleet, number, counted, now) for number in range(len(before.pools))]
    if any(board.min() < 0 for _, board, _ in drawn):
        return None
    if not fresh.size and not roomier:
        return before, (none(0), none(0))
    world = _world(before, fleet, drawn, counted, now)
    if fresh.size:
        replay_place(world)
    count = int(world.gone.size[0])
    if roomier or count:
        replay_compress(world)
    after = table.copy()
    after[SPOT], after[START] = world.asked.spot, world.asked.start
    gone = (world.gone.who[:count], world.gone.whom[:count])
    return replace(before, table=after), gone


Drawn = tuple[Ints, Ints, Ints]
"""Instants, the free nodes from each on, and those that leases and the counted ranks leave."""


def _drawn(state: State, fleet: Fleet, number: int, counted: int, now: int) -> Drawn:
    key, table = state.pools[number], state.table
    pool, (until, back) = fleet.pools[key], fleet.returning(key)
    who = np.flatnonzero(table[SPOT] == number)
    start, nodes = table[START, who], table[NODES, who]
    instants = np.concatenate((until, start - pool.prepare, start + table[DURATION, who] + pool.drain))
    change = np.concatenate((back, -nodes, nodes))
    order = instants.argsort()
    instants, change = np.maximum(instants[order], now), change[order]
    above = np.concatenate((np.ones(until.size, dtype=np.bool_), who < counted, who < counted))[order]
    last = np.append(np.flatnonzero(instants[1:] != instants[:-1]), instants.size - 1)[: instants.size]
    first = fleet.free(key)
    found = (instants[last], first + change.cumsum()[last], first + (change * above).cumsum()[last])
    if found[0].size and found[0][0] == now:
        return found
    return (np.append(now, found[0]), np.append(first, found[1]), np.append(first, found[2]))


def _world(state: State, fleet: Fleet, drawn: Sequence[Drawn], counted: int, now: int) -> World:
    """The arrays, with space for everything: each request is put and moved at most once."""
    table, pools, size = state.table, [fleet.pools[key] for key in state.pools], len(state.requests)
    nodes, duration, wish, displaces, spot, start = (np.ascontiguousarray(row) for row in table[:6])
    listed = np.ascontiguousarray(table[POOLS:].T)
    width = max(instants.size for instants, _, _ in drawn) + 6 * size + 8
    prepare, drain = [pool.prepare for pool in pools], [pool.drain for pool in pools]
    return World(
        RankedRequests(nodes, duration, wish, displaces == 1, listed, spot.copy(), start.copy()),
        Times(np.array(prepare, dtype=np.int64), np.array(drain, dtype=np.int64)),
        _steps(drawn, width),
        _shown(state, now),
        Gone(none(size), none(size), none(1)),
        Section(np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64)),
        counted,
        now,
    )


def _steps(drawn: Sequence[Drawn], width: int) -> Steps:
    """Rows with all requests, then rows with higher ranks only."""
    rows = 2 * len(drawn)
    at, free = (np.empty((rows, width), dtype=np.int64) for _ in range(2))
    for number, (instants, *sides) in enumerate(drawn):
        for row, levels in zip((number, len(drawn) + number), sides, strict=True):
            at[row, : levels.size], free[row, : levels.size] = instants, levels
    return Steps(at, free, np.array([instants.size for instants, _, _ in drawn] * 2, dtype=np.int64))


def none(size: int) -> Ints:
    """An array of zeros."""
    return np.zeros(size, dtype=np.int64)


def _shown(state: State, now: int) -> Shown:
    """Empty bounds."""
    nodes, duration = state.axes
    reach = np.append(duration[1:] - 1, FOREVER).astype(np.int64)
    begin = np.full((len(state.pools), nodes.size, duration.size), now, dtype=np.int64)
    return Shown(begin, np.ascontiguousarray(state.table[MARKS]), reach)


def marked(axes: tuple[Ints, Ints], values: Sequence[Ints] | Ints) -> Ints:
    """On each axis the index of the greatest mark <= value, then of the smallest mark >= value."""
    below = [axis.searchsorted(there, "right") - 1 for axis, there in zip(axes, values, strict=True)]
    above = [axis.searchsorted(there) for axis, there in zip(axes, values, strict=True)]
    return np.stack((*below, *above))


def marks(values: Ints, most: int) -> Ints:
    """The values, or if there are many, equally common ones including the least."""
    rising = np.unique(values)
    if rising.size <= most:
        return rising
    return np.unique(np.append(np.sort(values)[:: -(-values.size // most)], rising[0]))
