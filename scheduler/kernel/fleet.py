"""Pools as lines: how many nodes are free when, from windows and leases.

Nodes with equal windows and leases have the same free time, so it is computed once per kind of node: a fleet of ten
thousand nodes has a few hundred kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scheduler.calendars.stretches import free_gaps, leases_by_pool
from scheduler.snapshot import FOREVER, Lease, Pool, PoolKey, Snapshot, Window

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FreeTime:
    """The free time of a pool's nodes, by kind of node."""

    pool: Pool
    kinds: Sequence[tuple[Window, ...]]
    kind: Sequence[int]  # of each node, in the pool's order

    def stretches(self) -> dict[str, tuple[Window, ...]]:
        """By name, as in `scheduler.calendars.stretches.free_stretches`."""
        return {name: self.kinds[kind] for name, kind in zip(self.pool.nodes, self.kind, strict=True)}


@dataclass(frozen=True, slots=True)
class Fleet:
    """All pools of a snapshot in order: the lines of each (see `scheduler.kernel.world.Pools`), and their steps."""

    keys: Sequence[PoolKey]
    pools: Sequence[Pool]
    free: Sequence[FreeTime]
    base: Ints
    groups: Ints
    ends: Ints
    since: Ints
    first: Ints  # where the steps of each line begin
    at: Ints
    value: Ints

    def group_lines(self, pool: int) -> dict[int, int]:
        """The line of each group of a pool with unequal nodes, by the group's end."""
        first = int(self.base[pool]) + 1
        return {int(self.ends[line]): line for line in range(first, first + int(self.groups[pool]))}


@dataclass(slots=True)
class _Drawing:
    base: list[int] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    since: list[int] = field(default_factory=list)
    at: list[Ints] = field(default_factory=list)
    value: list[Ints] = field(default_factory=list)

    def line(self, changes: Mapping[int, int], end: int, since: int) -> None:
        """Add a line with these changes at instants; the first is its origin."""
        instants = sorted(changes)
        self.at.append(np.array(instants, dtype=np.int64))
        self.value.append(np.array([changes[at] for at in instants], dtype=np.int64).cumsum())
        self.ends.append(end)
        self.since.append(since)


def fleet_of(snapshot: Snapshot) -> Fleet:
    """Pools with the snapshot's leases only."""
    by_pool, drawing = leases_by_pool(snapshot.leases), _Drawing()
    free = [free_time(pool, by_pool.get(key, ()), snapshot.now) for key, pool in snapshot.pools.items()]
    for times in free:
        _draw(drawing, times, snapshot.now)
    sizes = [line.size for line in drawing.at]
    return Fleet(
        tuple(snapshot.pools),
        tuple(snapshot.pools.values()),
        free,
        _ints(drawing.base),
        _ints(drawing.groups),
        _ints(drawing.ends),
        _ints(drawing.since),
        np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64),
        np.concatenate([_ints(()), *drawing.at]),
        np.concatenate([_ints(()), *drawing.value]),
    )


def free_time(pool: Pool, leases: Iterable[Lease], now: int) -> FreeTime:
    """Free time of every node from `now` on."""
    held: dict[str, list[tuple[int, int]]] = {}
    for lease in leases:
        for name in lease.nodes:
            held.setdefault(name, []).append((lease.held_from, lease.held_until))
    numbers: dict[tuple[object, ...], int] = {}
    kinds: list[tuple[Window, ...]] = []
    kind = []
    for name in pool.nodes:
        windows = pool.windows.get(name, ())
        looks = (id(windows) if windows else 0, *held.get(name, ()))
        number = numbers.setdefault(looks, len(kinds))
        if number == len(kinds):
            busy = [(window.begin, window.end) for window in windows]
            kinds.append(free_gaps([*busy, *held.get(name, ())], now))
        kind.append(number)
    return FreeTime(pool, kinds, kind)


def _draw(drawing: _Drawing, free: FreeTime, now: int) -> None:
    """The lines of a pool: one per end of free time, preceded by their sum if there are several."""
    ends = _by_end(free)
    withheld = _withheld(free.pool, now)
    everything = {now: 0}
    drawing.base.append(len(drawing.at))
    drawing.groups.append(len(ends))
    lines = []
    for end in sorted(ends):
        changes = {now: 0}
        for at, count in ends[end].items():
            changes[at] = changes.get(at, 0) + count
        if end < FOREVER:
            changes[end] = changes.get(end, 0) - sum(ends[end].values())
        else:
            _join(changes, withheld)
        _join(everything, changes)
        lines.append((changes, end, min(ends[end], default=now)))
    if len(lines) > 1:
        drawing.line(everything, FOREVER, now)
    for changes, end, since in lines:
        drawing.line(changes, end, since)


def _by_end(free: FreeTime) -> dict[int, dict[int, int]]:
    """Number of stretches by end and begin."""
    ends: dict[int, dict[int, int]] = {FOREVER: {}}
    for windows, count in zip(free.kinds, np.bincount(free.kind).tolist() if free.kind else (), strict=True):
        for window in windows:
            begins = ends.setdefault(window.end, {})
            begins[window.begin] = begins.get(window.begin, 0) + count
    return ends


def _withheld(pool: Pool, now: int) -> dict[int, int]:
    changes: dict[int, int] = {}
    for kept in pool.withheld:
        begin = max(kept.begin, now)
        if kept.end > begin:
            _join(changes, {begin: -kept.nodes, **({kept.end: kept.nodes} if kept.end < FOREVER else {})})
    return changes


def _join(changes: dict[int, int], others: Mapping[int, int]) -> None:
    for at, amount in others.items():
        changes[at] = changes.get(at, 0) + amount


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)
