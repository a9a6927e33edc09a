"""Free nodes of pools, compiled: the same results as `scheduler.calendars.calendar.PoolCalendar`, over lines.

A pool whose free time all ends together is one line. Any other pool has a line for their sum, then one for each instant
at which some free time ends, the last for nodes that stay. If the sum is too small for a hold, the groups need not be
searched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.kernel.compilation import compiled
from scheduler.kernel.timeline import NEVER, Lines, add, after_instant, first_below, first_gap, lowest


class Pools(NamedTuple):
    """By pool: its first line and number of groups. By line: the group's end, and when it first has free time.

    `width` is the number of lines of a side; lines of the second side follow those of the first.
    """

    base: NDArray[np.int64]
    groups: NDArray[np.int64]
    prepare: NDArray[np.int64]
    drain: NDArray[np.int64]
    ends: NDArray[np.int64]
    since: NDArray[np.int64]
    width: int


class Shares(NamedTuple):
    """By request: where its shares begin, their number, and the group's line and nodes of each."""

    first: NDArray[np.int64]
    count: NDArray[np.int64]
    group: NDArray[np.int64]
    nodes: NDArray[np.int64]


@compiled
def room(a: Lines, p: Pools, side: int, pool: int, begin: int, end: int) -> int:
    """Nodes free on all of [begin, end)."""
    shift, base, groups = side * p.width, p.base[pool], p.groups[pool]
    if groups == 1:
        return lowest(a, shift + base, begin, end)
    total = lowest(a, shift + base + groups, begin, end)
    for group in range(base + groups - 1, base, -1):
        if p.ends[group] < end:
            break
        if p.since[group] <= begin:
            total += lowest(a, shift + group, begin, end)
    return total


@compiled
def has_room(a: Lines, p: Pools, pool: int, nodes: int, begin: int, end: int) -> bool:
    """Whether that many are free on all of [begin, end), on the first side; returns early if not."""
    if first_below(a, p.base[pool], nodes, begin, end) != NEVER:
        return False
    return p.groups[pool] == 1 or room(a, p, 0, pool, begin, end) >= nodes


@compiled
def earliest(
    a: Lines, p: Pools, side: int, pool: int, nodes: int, length: int, after: int, before: int
) -> int:
    """First b in [after, before) at which `nodes` are free on all of [b, b + length); NEVER if there is none."""
    line, groups = side * p.width + p.base[pool], p.groups[pool]
    if groups == 1:
        return first_gap(a, line, nodes, length, after, before)
    last = p.ends[p.base[pool] + groups - 1]
    while True:
        begin = first_gap(a, line, nodes, length, after, before)
        if begin == NEVER or room(a, p, side, pool, begin, begin + length) >= nodes:
            return begin
        if begin + length > last:  # only lasting nodes are left to count
            return first_gap(a, line + groups, nodes, length, begin, before)
        after = after_instant(a, line, begin)


@compiled
def take(
    a: Lines, p: Pools, side: int, pool: int, begin: int, end: int, nodes: int, i: int, s: Shares, w: Shares
) -> None:
    """Take free nodes for request `i` and note their groups in `s`: those of `w` first, then soonest ends."""
    if p.groups[pool] > 1:
        _share_out(a, p, side, pool, begin, end, nodes, i, s, w)
    else:
        s.count[i] = 0
    shift(a, p, side, pool, begin, end, nodes, i, s, -1)


@compiled
def shift(
    a: Lines, p: Pools, side: int, pool: int, begin: int, end: int, nodes: int, i: int, s: Shares, sign: int
) -> None:
    """Give back or take what request `i` holds, according to its shares."""
    offset, first = side * p.width, s.first[i]
    add(a, offset + p.base[pool], begin, end, sign * nodes)
    for share in range(first, first + s.count[i]):
        add(a, offset + s.group[share], begin, end, sign * s.nodes[share])


@compiled
def _share_out(
    a: Lines, p: Pools, side: int, pool: int, begin: int, end: int, nodes: int, i: int, s: Shares, w: Shares
) -> None:
    base, groups, left = p.base[pool], p.groups[pool], nodes
    s.count[i] = 0
    for wanted in range(w.first[i], w.first[i] + w.count[i]):
        group = w.group[wanted]
        if base < group <= base + groups and p.ends[group] >= end:
            free = lowest(a, side * p.width + group, begin, end)
            left -= _give(s, i, group, min(w.nodes[wanted], left), free)
    for group in range(base + 1, base + groups + 1):
        if left == 0:
            break
        if p.ends[group] >= end and (p.since[group] <= begin or group == base + groups):
            free = lowest(a, side * p.width + group, begin, end)
            left -= _give(s, i, group, left, free)


@compiled
def _give(s: Shares, i: int, group: int, most: int, free: int) -> int:
    """Add up to `most` nodes of a group with `free` free ones to the sorted shares; returns their number."""
    first, count = s.first[i], s.count[i]
    place = first
    while place < first + count and s.group[place] < group:
        place += 1
    known = place < first + count and s.group[place] == group
    given = min(most, free - (s.nodes[place] if known else 0))
    if given <= 0:
        return 0
    if known:
        s.nodes[place] += given
        return given
    for share in range(first + count, place, -1):
        s.group[share], s.nodes[share] = s.group[share - 1], s.nodes[share - 1]
    s.group[place], s.nodes[place] = group, given
    s.count[i] = count + 1
    return given
