"""Which requests give way to another, compiled: the same results as `scheduler.choices.displacement`.

The lowest ranks that hold nodes during a shortage go, until there is none; then those that need not go after all
return, highest first. With unequal nodes no single instant is short: then those go that hold nodes of a group at an
instant at which the group alone is too small. All others that the plain engine lifts return there, because with enough
nodes in one group the rest does not matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.kernel.compilation import compiled
from scheduler.kernel.holders import Holders, gather
from scheduler.kernel.pools import room
from scheduler.kernel.search import World, hold_begin, move_nodes
from scheduler.kernel.timeline import NEVER, first_below, last_below, lowest

RETURNED = -1


class Scratch(NamedTuple):
    """Scratch space for one period: the requests that hold nodes, and those that go."""

    others: NDArray[np.int64]
    gone: NDArray[np.int64]


@compiled
def hold_of(w: World, other: int) -> tuple[int, int]:
    """The hold of a reservation."""
    pool, start = w.spots.pool[other], w.spots.start[other]
    return hold_begin(w, pool, start), start + w.asked.duration[other] + w.pools.drain[pool]


@compiled
def lift_those_in_the_way(w: World, h: Holders, t: Scratch, i: int, pool: int, start: int) -> int:
    """Lift the requests in the way of request `i` and note them in `t.gone`; returns their number."""
    begin, end = hold_begin(w, pool, start), start + w.asked.duration[i] + w.pools.drain[pool]
    need, gone, count = w.asked.nodes[i], t.gone, 0
    enough = _enough_alone(w, pool, need, begin, end)
    low, high = _short(w, pool, need, begin, end)
    left = gather(h, pool, low, high, i, t.others) if low < high else 0
    _heap(t.others, left)
    while low < high:
        # Those passed over need not be checked again: shortages only shrink.
        last, left = _next(t.others, left), left - 1
        if _is_to_blame(w, pool, enough, low, high, last):
            move_nodes(w, 0, last, 1)
            gone[count] = last
            count += 1
            low, high = _short(w, pool, need, low, end)
    # The last one is needed: without it there were too few.
    for k in range(count - 2, -1, -1):
        move_nodes(w, 0, gone[k], -1)
        low, high = _short(w, pool, need, begin, end)
        if low < high:
            move_nodes(w, 0, gone[k], 1)
        else:
            gone[k] = RETURNED
    return _packed(gone, count)


@compiled
def _short(w: World, pool: int, need: int, begin: int, end: int) -> tuple[int, int]:
    """From the first to the last instant at which fewer than `need` are free; (0, 0) if there is none."""
    if w.pools.groups[pool] > 1:
        return (begin, end) if room(w.lines, w.pools, 0, pool, begin, end) < need else (0, 0)
    line = w.pools.base[pool]
    low = first_below(w.lines, line, need, begin, end)
    return (0, 0) if low == NEVER else (low, last_below(w.lines, line, need, end))


@compiled
def _enough_alone(w: World, pool: int, need: int, begin: int, end: int) -> int:
    """Free nodes of one group that are enough whatever the others have; lasting nodes may be fewer than none."""
    groups = w.pools.groups[pool]
    if groups == 1:
        return need
    return need - min(0, lowest(w.lines, w.pools.base[pool] + groups, begin, end))


@compiled
def _is_to_blame(w: World, pool: int, enough: int, low: int, high: int, other: int) -> bool:
    """Whether fewer than `enough` are free at some instant of its hold within [low, high)."""
    p, s = w.pools, w.shares
    begin, end = hold_of(w, other)
    if begin >= high or end <= low:
        return False
    if p.groups[pool] == 1:  # nodes are short at both ends, so most need no search
        return begin <= low or end >= high or lowest(w.lines, p.base[pool], begin, end) < enough
    for share in range(s.first[other], s.first[other] + s.count[other]):
        group = s.group[share]
        if group == p.base[pool] + p.groups[pool] or (p.ends[group] >= high and p.since[group] <= low):
            if lowest(w.lines, group, max(begin, low), min(end, high)) < enough:
                return True
    return False


@compiled
def _packed(gone: NDArray[np.int64], count: int) -> int:
    """Move those that do not return to the front; returns their number."""
    kept = 0
    for k in range(count):
        if gone[k] != RETURNED:
            gone[kept] = gone[k]
            kept += 1
    return kept


@compiled
def _heap(numbers: NDArray[np.int64], count: int) -> None:
    """Make a heap of the first `count` numbers, the greatest first."""
    for k in range(count // 2 - 1, -1, -1):
        _sink(numbers, k, count)


@compiled
def _next(numbers: NDArray[np.int64], count: int) -> int:
    """Take the greatest number, which is the lowest rank, off a heap of that size."""
    greatest = numbers[0]
    numbers[0] = numbers[count - 1]
    _sink(numbers, 0, count - 1)
    return greatest


@compiled
def _sink(numbers: NDArray[np.int64], k: int, count: int) -> None:
    number = numbers[k]
    while 2 * k + 1 < count:
        child = 2 * k + 1
        if child + 1 < count and numbers[child + 1] > numbers[child]:
            child += 1
        if numbers[child] <= number:
            break
        numbers[k], k = numbers[child], child
    numbers[k] = number
