"""When a request would start if it were filed now: one answer per pool that it could use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scheduler.calendars.board import Board, floor
from scheduler.calendars.calendar import PoolCalendar, Steps
from scheduler.calendars.node_binding import Held, wanted_shares
from scheduler.fairness.rank import Rank, rank_key
from scheduler.kernel.placements import Placements
from scheduler.kernel.rows import DURATION, NODES
from scheduler.plan import plan
from scheduler.reasons import no_place
from scheduler.snapshot import FOREVER, Plan, Pool, PoolKey, Request, Snapshot, Window, shown_slice

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Quote:
    """The answer for one pool; without a start, `reason` says why."""

    pool: PoolKey
    gpu_shape: str
    gpus_per_node: int
    memory_per_gpu: int
    free_nodes: int
    price_per_gpu_hour: float
    start: int | None = None
    wait_s: int | None = None
    needs_approval: bool = False
    reason: str | None = None
    message: str | None = None


def quote(
    snapshot: Snapshot,
    request: Request,
    needs_approval: Mapping[PoolKey, bool] | None = None,
    planned: Plan | None = None,
) -> tuple[Quote, ...]:
    """The start in each of `request.pools` alone if `request` were filed now, earliest first.

    `planned` is the snapshot's plan, if the caller has it. For several questions keep a `Quoter`.
    """
    return Quoter(snapshot, planned or plan(snapshot)).quote(request, needs_approval)


class Quoter:
    """A plan prepared for questions: each is answered from what leases and higher ranks leave.

    Promises of lower rank do not count: they would give way after filing. Preparing costs as much as sorting the plan;
    an answer costs one pass over the reservations of each pool asked for.
    """

    def __init__(self, snapshot: Snapshot, planned: Plan) -> None:
        self._snapshot = snapshot
        self._board = Board(snapshot)  # leases alone
        self._order = planned.order
        self._reserved = _reserved(snapshot, planned)
        self._rooms = _rooms(snapshot, planned, self._board, self._reserved)
        self._members = _members(snapshot, self._reserved, planned.order)
        self._slices: dict[str, _Room] = {}
        self._ahead: tuple[int, dict[PoolKey, PoolCalendar]] = (-1, {})

    def quote(
        self, request: Request, needs_approval: Mapping[PoolKey, bool] | None = None
    ) -> tuple[Quote, ...]:
        """The start in each of `request.pools` alone, earliest first.

        `needs_approval` by pool (see `scheduler.choices.fit`) is passed on: such a start holds only if an admin
        approves at once. Any rank is possible; consecutive questions of equal rank are fastest.
        """
        needs, higher = needs_approval or {}, self._higher(rank_key(request))
        if higher != self._ahead[0]:
            self._ahead = (higher, {})
        quotes = [self._answer(request, key, higher) for key in request.pools if key in self._snapshot.pools]
        marked = [replace(answer, needs_approval=needs.get(answer.pool, False)) for answer in quotes]
        return tuple(sorted(marked, key=lambda answer: (answer.start is None, answer.start or 0)))

    def _higher(self, rank: Rank) -> int:
        """Number of the plan's requests that rank at least as high; they come first in its order."""
        low, high = 0, len(self._order)
        while low < high:
            half = (low + high) // 2
            if rank_key(self._snapshot.requests[self._order[half]]) <= rank:
                low = half + 1
            else:
                high = half
        return low

    def _answer(self, request: Request, key: PoolKey, higher: int) -> Quote:
        pool, now = self._snapshot.pools[key], self._snapshot.now
        slice_ = self._slice(shown_slice(request.slice) if pool.observed else request.slice, higher)
        answer = Quote(
            pool=key,
            gpu_shape=pool.gpu_shape,
            gpus_per_node=pool.gpus_per_node,
            memory_per_gpu=pool.memory_per_gpu,
            free_nodes=max(0, self._board.calendars[key].room(now, now + 1)),
            price_per_gpu_hour=pool.price_per_gpu_hour,
        )
        start = self._start(request, pool, higher, slice_) if pool.open else None
        if start is not None:
            return replace(answer, start=start, wait_s=start - now)
        refused = no_place(self._snapshot, replace(request, pools=(key,)))
        return replace(answer, reason=refused.reason, message=refused.message)

    def _start(self, request: Request, pool: Pool, higher: int, slice_: Steps) -> int | None:
        calendar = self._calendar(pool.key, higher)
        length = pool.prepare + request.duration + pool.drain
        start: int | None = floor(pool, request, self._snapshot.now)
        while start is not None:
            begin = calendar.earliest(request.nodes, length, start - pool.prepare)
            if begin is None:
                return None
            start = slice_.first_gap(1, request.duration, begin + pool.prepare)
            if start == begin + pool.prepare:
                return start
        return None

    def _calendar(self, key: PoolKey, higher: int) -> PoolCalendar:
        """Free nodes of a pool that holds only that many of the highest ranks."""
        known = self._ahead[1].get(key)
        if known is None:
            known = self._board.calendars[key]
            if key in self._rooms:
                known = known.having({group: room.left(higher) for group, room in self._rooms[key].items()})
            self._ahead[1][key] = known
        return known

    def _slice(self, slice_: str, higher: int) -> Steps:
        """When the slice is free among that many of the highest ranks: 1 if free, less while it runs something."""
        found = self._slices.get(slice_)
        if found is None:
            there, reserved = np.array(self._members.get(slice_, ()), dtype=np.int64), self._reserved
            one = np.ones(there.size, dtype=np.int64)
            holds = (reserved.number[there], one, reserved.start[there], reserved.end[there])
            found = self._slices[slice_] = _room(self._board.slice_steps(slice_), np.column_stack(holds))
        return found.left(higher)


@dataclass(frozen=True, slots=True)
class _Room:
    """Free nodes of one group, or free times of a slice, and the holds on it: when, how many, and by which rank.

    `at` contains the instants of all holds, for every rank, so that an answer needs no sorting.
    """

    at: Ints
    """Instants at which the count may change, FOREVER after the last."""
    free: Ints
    """Nodes free from each of them on, with leases alone."""
    passed: Ints
    """Number of changes up to each of them."""
    nodes: Ints
    who: Ints

    def left(self, higher: int) -> Steps:
        """What that many of the highest ranks leave."""
        taken = np.zeros(self.nodes.size + 1, dtype=np.int64)
        np.cumsum(np.where(self.who < higher, self.nodes, 0), out=taken[1:])
        return Steps.of(self.at, self.free - taken[self.passed])


@dataclass(frozen=True, slots=True)
class _Reserved:
    """Placements as arrays: index in the plan's order, index of the pool, nodes and times."""

    number: Ints
    pool: Ints
    nodes: Ints
    start: Ints
    end: Ints


def _reserved(snapshot: Snapshot, planned: Plan) -> _Reserved:
    if isinstance(planned.placements, Placements):
        placed = planned.placements.placed
        there = np.flatnonzero(placed.pool >= 0)
        table, start = placed.rows.table[there], placed.start[there]
        return _Reserved(there, placed.pool[there], table[:, NODES], start, start + table[:, DURATION])
    pools = {key: number for number, key in enumerate(snapshot.pools)}
    rows = [
        (number, pools[place.pool], snapshot.requests[key].nodes, place.start, place.end)
        for number, key in enumerate(planned.order)
        if (place := planned.placements.get(key)) is not None
    ]
    return _Reserved(*np.array(rows, dtype=np.int64).reshape(-1, 5).T)


def _rooms(
    snapshot: Snapshot, planned: Plan, board: Board, reserved: _Reserved
) -> dict[PoolKey, dict[int, _Room]]:
    """The room of each pool and group of nodes, with all reservations."""
    found = {}
    order = np.argsort(reserved.pool, kind="stable")
    bounds = reserved.pool[order].searchsorted(np.arange(len(snapshot.pools) + 1))
    for place, pool in enumerate(snapshot.pools.values()):
        there = order[bounds[place] : bounds[place + 1]]
        if there.size:
            begin = np.maximum(snapshot.now, reserved.start[there] - pool.prepare)
            rows = np.column_stack(
                (reserved.number[there], reserved.nodes[there], begin, reserved.end[there] + pool.drain)
            )
            calendar = board.calendars[pool.key]
            groups = _by_group(planned, board, pool, rows)
            found[pool.key] = {group: _room(calendar.steps(group), holds) for group, holds in groups.items()}
    return found


def _by_group(planned: Plan, board: Board, pool: Pool, rows: Ints) -> dict[int, Ints]:
    """Rows of number, nodes, begin and end, by group of nodes."""
    if board.calendars[pool.key].uniform:
        return {FOREVER: rows}
    groups: dict[int, list[tuple[int, int, int, int]]] = {}
    for number, nodes, begin, end in rows.tolist():
        key = planned.order[number]
        held, bound = Held(key, nodes, Window(begin, end)), planned.placements[key].bound
        for group, count in wanted_shares(board.stretches[pool.key], held, bound):
            groups.setdefault(group, []).append((number, count, begin, end))
    return {group: np.array(found, dtype=np.int64) for group, found in groups.items()}


def _room(free: Steps, holds: Ints) -> _Room:
    """Free nodes with leases alone, and the changes by holds in order of time."""
    number, nodes, begin, end = holds.T
    at = np.concatenate((begin, end))
    order = np.argsort(at, kind="stable")
    at = at[order]
    instants = np.unique(np.concatenate((free.instants(), at)))
    return _Room(
        at=np.append(instants, FOREVER),
        free=free.values(instants),
        passed=at.searchsorted(instants, "right"),
        nodes=np.concatenate((nodes, -nodes))[order],
        who=np.concatenate((number, number))[order],
    )


def _members(snapshot: Snapshot, reserved: _Reserved, order: Sequence[str]) -> dict[str, list[int]]:
    """The reservations of each slice."""
    found: dict[str, list[int]] = {}
    for place, number in enumerate(reserved.number.tolist()):
        slice_ = snapshot.requests[order[number]].slice
        if slice_:
            found.setdefault(slice_, []).append(place)
    return found
