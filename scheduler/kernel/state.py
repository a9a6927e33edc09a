"""The arrays for compiled planning, made from rows of requests and lines of pools. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from scheduler.calendars.node_binding import Held, wanted_shares
from scheduler.kernel.fleet import Fleet
from scheduler.kernel.rows import (
    DURATION,
    ELSEWHERE,
    FALLBACK,
    MAY_DISPLACE,
    MOVABLE,
    NO_PROMISE,
    NODES,
    NOT_BEFORE,
    POOLS,
    PROMISED_POOL,
    PROMISED_START,
    SLICE,
    Rows,
)
from scheduler.kernel.world import (
    NOBODY,
    STEPS,
    Lines,
    Pools,
    Promises,
    RequestArrays,
    Shares,
    Shown,
    Slices,
    Spots,
    World,
    lines,
)
from scheduler.snapshot import FOREVER, Lease, Pool, Promise, Request, Snapshot, Window

Ints = NDArray[np.int64]

MOST = (8, 24, 384)
"""Marks of wishes, nodes and durations for search bounds: more make bounds tighter and costlier."""


def asked_of(rows: Rows, fleet: Fleet, snapshot: Snapshot) -> tuple[RequestArrays, Sequence[Ints]]:
    """The requests by rank, with pools that are open; and the marks of the axes for bounds."""
    table, now = rows.table, snapshot.now
    first, pool, since = _pools(rows, fleet)
    nodes, duration = table[:, NODES].copy(), table[:, DURATION].copy()
    pinned = (table[:, PROMISED_POOL] != NO_PROMISE) & (table[:, MOVABLE] == 0)
    promised = np.where(pinned, table[:, PROMISED_START], now)
    wish = np.maximum(np.maximum(table[:, NOT_BEFORE], promised), now)
    axes = (wish, nodes, duration)
    marks = [_marks(axis, most) for axis, most in zip(axes, MOST, strict=True)]
    places = [_places(axis, there) for axis, there in zip(axes, marks, strict=True)]
    asked = RequestArrays(
        nodes,
        duration,
        wish,
        _slices(rows, snapshot.leases.values()),
        (table[:, MAY_DISPLACE] == 1) | (table[:, PROMISED_POOL] != NO_PROMISE),
        first,
        pool,
        since,
        table[:, FALLBACK] >= 0,
        np.column_stack([below for below, _ in places]).astype(np.int64),
        np.column_stack([above for _, above in places]).astype(np.int64),
    )
    return asked, marks


def _pools(rows: Rows, fleet: Fleet) -> tuple[Ints, Ints, Ints]:
    """For each request the range of its pools, the pools, and until when it is held back from each."""
    ends, listed = np.array(rows.names.ends, dtype=np.int64), rows.table[:, POOLS]
    counts = np.diff(ends)[listed]
    first = np.append(0, counts.cumsum())
    member = np.repeat(ends[listed] - first[:-1], counts) + np.arange(first[-1])
    pool = np.array(rows.names.members, dtype=np.int64)[member]
    since = np.full(pool.size, -FOREVER, dtype=np.int64)
    for i in np.flatnonzero(rows.table[:, FALLBACK] >= 0).tolist():
        request = rows.requests[i]
        for k, key in enumerate(request.pools, int(first[i])):
            since[k] = request.fallback.get(key, -FOREVER)
    usable = np.array([*(there.open for there in fleet.pools), False])[pool]  # the last is elsewhere
    if usable.all():
        return first, pool, since
    kept = np.append(0, usable.cumsum())
    return kept[first], pool[usable], since[usable]


def _slices(rows: Rows, leases: Iterable[Lease]) -> Ints:
    """The slice of each request; -1 if it is alone in it and cannot conflict."""
    numbers, slice_ = rows.names.slices, rows.table[:, SLICE]
    members = np.bincount(slice_ + 1, minlength=len(numbers) + 1)
    members[[numbers[lease.slice] + 1 for lease in leases if lease.slice in numbers]] += 1
    members[0] = 0
    return np.where(members[slice_ + 1] > 1, slice_, -1)


def _marks(values: Ints, most: int) -> Ints:
    """The values, or if there are many, equally common ones including the least."""
    rising = np.sort(values)
    marks = rising[np.append(True, rising[1:] != rising[:-1])] if rising.size else rising
    if marks.size <= most:
        return marks
    return np.unique(rising[:: max(1, rising.size // most)])


def _places(values: Ints, marks: Ints) -> tuple[Ints, Ints]:
    """For each value the index of the greatest mark <= value, and of the smallest mark >= value."""
    above = marks.searchsorted(values)
    there = marks[np.minimum(above, marks.size - 1)] if marks.size else values
    return above - (there != values), above


def shown_of(marks: Sequence[Ints], pools: int, sides: int, now: int) -> Shown:
    """Empty bounds."""
    sizes = [pools, *(there.size for there in marks)]
    table = np.zeros(sides * int(np.prod(sizes)), dtype=np.int32)
    forgotten = np.zeros(pools, dtype=np.bool_)
    return Shown(table, np.array(sizes, dtype=np.int64), marks[1], marks[2], forgotten, now)


def pools_of(fleet: Fleet) -> Pools:
    """Lines and times of each pool."""
    prepare = np.array([pool.prepare for pool in fleet.pools], dtype=np.int64)
    drain = np.array([pool.drain for pool in fleet.pools], dtype=np.int64)
    return Pools(fleet.base, fleet.groups, prepare, drain, fleet.ends, fleet.since, fleet.ends.size)


def lines_of(fleet: Fleet, shares: Shares, sides: int, room: int) -> Lines:
    """Space for all lines of all sides.

    A step is made at most twice per line that a hold is taken from, and each request is put in step 1 or 2, in step
    3, and once on the other side: six times for all of them. All requests of a pool are put once more each time that
    some change nodes; that happens only while half of the space is left, so one such time and the six fit into it.
    """
    touched = int(shares.first[-1]) + shares.counts.size
    return lines(sides * fleet.ends.size, 2 * sides * fleet.at.size + 20 * room * touched + STEPS)


def shares_of(asked: RequestArrays, fleet: Fleet) -> Shares:
    """Space for the shares of each request: none if all its pools have one group."""
    groups = np.append(np.where(fleet.groups > 1, fleet.groups, 0), 0)
    most = np.zeros(asked.nodes.size, dtype=np.int64)
    if groups.any() and asked.pool.size:
        filled = np.flatnonzero(np.diff(asked.first))
        most[filled] = np.maximum.reduceat(groups[asked.pool], asked.first[:-1][filled])
    return empty_shares(np.concatenate(([0], np.minimum(most, asked.nodes).cumsum())))


def empty_shares(first: Ints) -> Shares:
    """No shares yet."""
    size = int(first[-1])
    return Shares(
        first.astype(np.int64),
        np.zeros(first.size - 1, dtype=np.int64),
        np.zeros(size, dtype=np.int64),
        np.zeros(size, dtype=np.int64),
    )


def slices_of(rows: Rows, leases: Iterable[Lease], now: int, sides: int) -> Slices:
    """When each slice already runs a lease, with space for all of its requests, on that many sides."""
    numbers = rows.names.slices
    running: dict[int, list[tuple[int, int]]] = {}
    for lease in leases:
        begin = max(lease.start, now)
        if lease.slice in numbers and lease.end > begin:
            running.setdefault(numbers[lease.slice], []).append((begin, lease.end))
    joined = {number: _joined(stretches) for number, stretches in running.items()}
    sizes = np.bincount(rows.table[:, SLICE] + 1, minlength=len(numbers) + 1)[1:]
    for number, stretches in joined.items():
        sizes[number] += len(stretches)
    first = np.concatenate(([0], sizes.cumsum())).astype(np.int64)
    slices = Slices(
        first,
        np.zeros((sides, len(numbers)), dtype=np.int64),
        *(np.zeros((sides, int(first[-1])), dtype=np.int64) for _ in range(3)),
    )
    for number, stretches in joined.items():
        there = slice(first[number], first[number] + len(stretches))
        slices.counts[:, number] = len(stretches)
        slices.begin[:, there] = [begin for begin, _ in stretches]
        slices.end[:, there] = [end for _, end in stretches]
        slices.who[:, there] = NOBODY
    return slices


def _joined(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Disjoint and sorted: leases of one slice may overlap."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(stretches):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def standing_of(snapshot: Snapshot, rows: Rows, asked: RequestArrays) -> Promises:
    """Which promises may hold, if there is room."""
    table = rows.table
    pool, start = table[:, PROMISED_POOL].copy(), table[:, PROMISED_START].copy()
    late = start < np.maximum(snapshot.now, table[:, NOT_BEFORE])
    # Only pools that are open and named by the request count.
    owner = np.repeat(np.arange(asked.nodes.size), np.diff(asked.first))
    own = np.zeros(asked.nodes.size, dtype=np.bool_)
    own[owner[asked.pool == pool[owner]]] = True
    standing = np.where(own & ~late & (pool >= 0), pool, ELSEWHERE)
    return Promises(np.where(pool == NO_PROMISE, NO_PROMISE, standing), start)


def wanted_of(rows: Rows, fleet: Fleet, standing: Promises, shares: Shares, now: int) -> Shares:
    """The groups that served promises, for unequal nodes."""
    wanted = empty_shares(shares.first)
    for number in np.flatnonzero(fleet.groups > 1).tolist():
        lines_, stretches = fleet.group_lines(number), fleet.free[number].stretches()
        there = np.flatnonzero(standing.pool == number)
        # Most are bound to no group that ends, and use lasting nodes.
        wanted.counts[there] = 1
        wanted.group[shares.first[there]] = lines_[FOREVER]
        wanted.nodes[shares.first[there]] = rows.table[there, NODES]
        for i in there.tolist():
            promise = rows.requests[i].promise
            if promise is not None and promise.bound:
                found = _wanted(rows.requests[i], promise, fleet.pools[number], stretches, now)
                write_shares(wanted, i, [(lines_[end], count) for end, count in found])
    return wanted


def _wanted(
    request: Request, promise: Promise, pool: Pool, stretches: Mapping[str, tuple[Window, ...]], now: int
) -> Sequence[tuple[int, int]]:
    end = promise.start + request.duration + pool.drain
    hold = Window(max(now, promise.start - pool.prepare), end)
    return wanted_shares(stretches, Held(request.key, request.nodes, hold), promise.bound)


def write_shares(shares: Shares, i: int, found: Iterable[tuple[int, int]]) -> None:
    """Write the shares of request `i`: lines and nodes, soonest end first. Empty shares need no space."""
    count, first = 0, int(shares.first[i])
    for line, nodes in found:
        if nodes > 0:
            shares.group[first + count], shares.nodes[first + count] = line, nodes
            count += 1
    shares.counts[i] = count


def world_of(snapshot: Snapshot, rows: Rows, fleet: Fleet, sides: int, room: int) -> tuple[World, Promises]:
    """The whole world, with lines still to be drawn and `room` times the usual space for their steps."""
    asked, marks = asked_of(rows, fleet, snapshot)
    shares = shares_of(asked, fleet)
    standing = standing_of(snapshot, rows, asked)
    most = int(np.diff(asked.first).max(initial=0))
    world = World(
        lines_of(fleet, shares, sides, room),
        pools_of(fleet),
        asked,
        slices_of(rows, snapshot.leases.values(), snapshot.now, sides),
        shown_of(marks, len(fleet.keys), sides, snapshot.now),
        Spots(np.full(asked.nodes.size, -1, dtype=np.int64), np.zeros(asked.nodes.size, dtype=np.int64)),
        shares,
        wanted_of(rows, fleet, standing, shares, snapshot.now),
        empty_shares(np.zeros(asked.nodes.size + 1, dtype=np.int64)),
        np.zeros(max(1, most), dtype=np.int64),
    )
    return world, standing
