"""Who gives way to a request that needs room, compiled: `scheduler.displacing`, answer for answer.

Of those of lower rank the lowest go, as few as needed: first the lowest that hold nodes where they are short, until
they are not; then the highest of those return, if they are not needed after all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.kernel.compiling import compiled
from scheduler.kernel.holders import Holders, gather
from scheduler.kernel.searching import World, hold_begin
from scheduler.kernel.timeline import FOREVER, NEVER, section


class Scratch(NamedTuple):
    """Where one look at a stretch of time is noted: its steps, who holds nodes there, and who goes."""

    at: NDArray[np.int64]
    free: NDArray[np.int64]
    others: NDArray[np.int64]
    gone: NDArray[np.int64]
    group: NDArray[np.int64]
    first: NDArray[np.int64]


RETURNED = -1


@compiled
def who_gives_way(w: World, h: Holders, t: Scratch, i: int, pool: int, start: int) -> int:
    """Fills `t.gone` with those that request `i` needs gone to stand there; how many they are."""
    begin, end = hold_begin(w, pool, start), start + w.asked.duration[i] + w.pools.drain[pool]
    if w.pools.groups[pool] == 1:
        return _of_equal_nodes(w, h, t, i, pool, begin, end)
    return _of_groups(w, h, t, i, pool, begin, end)


@compiled
def _of_equal_nodes(w: World, h: Holders, t: Scratch, i: int, pool: int, begin: int, end: int) -> int:
    need = w.asked.nodes[i]
    steps = section(w.lines, w.pools.base[pool], begin, end, t.at, t.free, 0)
    t.at[steps] = end
    low, high = _short(t, steps, need)
    count = gather(h, pool, low, high, i, t.others) if low < high else 0
    gone, last = 0, NEVER
    while low < high:
        last = _lowest(w, t, count, last, low, high, steps, need)
        _change(w, t, steps, last, w.asked.nodes[last])
        t.gone[gone] = last
        gone += 1
        low, high = _short(t, steps, need)
    for k in range(gone - 1, -1, -1):
        other = t.gone[k]
        _change(w, t, steps, other, -w.asked.nodes[other])
        low, high = _short(t, steps, need)
        if low < high:
            _change(w, t, steps, other, w.asked.nodes[other])
        else:
            t.gone[k] = RETURNED
    return _packed(t, gone)


@compiled
def _short(t: Scratch, steps: int, need: int) -> tuple[int, int]:
    """From the first to the last instant at which fewer are free; nothing: (0, 0)."""
    low, high = np.int64(0), np.int64(0)
    for k in range(steps):
        if t.free[k] < need:
            if low == high:
                low = t.at[k]
            high = t.at[k + 1]
    return low, high


@compiled
def _lowest(w: World, t: Scratch, count: int, last: int, low: int, high: int, steps: int, need: int) -> int:
    """The lowest rank above `last` (a lower rank is a higher number) that holds nodes where they are short."""
    this = -1
    for k in range(count):
        other = t.others[k]
        if this < other < last:
            begin, end = hold_of(w, other)
            if begin < high and end > low and _is_short_within(t, steps, need, begin, end):
                this = other
    return this


@compiled
def _is_short_within(t: Scratch, steps: int, need: int, begin: int, end: int) -> bool:
    for k in range(steps):
        if t.free[k] < need and t.at[k] < end and t.at[k + 1] > begin:
            return True
    return False


@compiled
def _change(w: World, t: Scratch, steps: int, other: int, amount: int) -> None:
    begin, end = hold_of(w, other)
    for k in range(steps):
        if t.at[k] < end and t.at[k + 1] > begin:
            t.free[k] += amount


@compiled
def hold_of(w: World, other: int) -> tuple[int, int]:
    """The hold of a reservation."""
    pool, start = w.spots.pool[other], w.spots.start[other]
    return hold_begin(w, pool, start), start + w.asked.duration[other] + w.pools.drain[pool]


@compiled
def _of_groups(w: World, h: Holders, t: Scratch, i: int, pool: int, begin: int, end: int) -> int:
    """Where nodes are not all alike no step is to blame alone: anybody who holds nodes meanwhile may go."""
    need, rows = w.asked.nodes[i], _sections(w, t, pool, begin, end)
    count = gather(h, pool, begin, end, i, t.others)
    gone, last = 0, NEVER
    while _throughout(t, rows) < need:
        this = -1
        for k in range(count):
            if this < t.others[k] < last:
                this = t.others[k]
        last = this
        _change_groups(w, t, rows, last, 1)
        t.gone[gone] = last
        gone += 1
    for k in range(gone - 1, -1, -1):
        _change_groups(w, t, rows, t.gone[k], -1)
        if _throughout(t, rows) < need:
            _change_groups(w, t, rows, t.gone[k], 1)
        else:
            t.gone[k] = RETURNED
    return _packed(t, gone)


@compiled
def _sections(w: World, t: Scratch, pool: int, begin: int, end: int) -> int:
    """Notes the steps on [begin, end) of each group that can have nodes free throughout; how many groups there are.

    The steps of row r lie from `t.first[r]` on, and behind them stands the end.
    """
    base, groups, rows = w.pools.base[pool], w.pools.groups[pool], 0
    t.first[0] = 0
    for group in range(base + 1, base + groups + 1):
        if group == base + groups or (w.pools.ends[group] >= end and w.pools.since[group] <= begin):
            first = t.first[rows]
            last = first + section(w.lines, group, begin, end, t.at, t.free, first)
            t.at[last] = end
            t.group[rows] = group
            rows += 1
            t.first[rows] = last + 1
    return rows


@compiled
def _throughout(t: Scratch, rows: int) -> int:
    """Nodes free on all of the stretch, over all groups."""
    total = 0
    for row in range(rows):
        least = np.int64(FOREVER)
        for k in range(t.first[row], t.first[row + 1] - 1):
            least = min(least, t.free[k])
        total += least
    return total


@compiled
def _change_groups(w: World, t: Scratch, rows: int, other: int, sign: int) -> None:
    begin, end = hold_of(w, other)
    for share in range(w.shares.first[other], w.shares.first[other] + w.shares.count[other]):
        for row in range(rows):
            if t.group[row] == w.shares.group[share]:
                for k in range(t.first[row], t.first[row + 1] - 1):
                    if t.at[k] < end and t.at[k + 1] > begin:
                        t.free[k] += sign * w.shares.nodes[share]


@compiled
def _packed(t: Scratch, gone: int) -> int:
    """Those that do not return, together at the front; how many they are."""
    kept = 0
    for k in range(gone):
        if t.gone[k] != RETURNED:
            t.gone[kept] = t.gone[k]
            kept += 1
    return kept
