"""Free nodes over time as step functions, compiled: a row of an array for each pool.

A row is searched by bisection and changed by moving all later steps. Up to some thousands of steps that costs less than
the blocks of `scheduler.kernel.timeline`, which are for a hundred thousand. Steps are never forgotten.

Held by tests/scheduler/replay/test_replanning.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.kernel.compilation import compiled

NEVER = 1 << 61

Ints = NDArray[np.int64]


class Steps(NamedTuple):
    """By row: instants, the free nodes from each on, and their number (`size`). The first is the beginning of time."""

    at: Ints
    free: Ints
    size: Ints


@compiled
def place_in(at: Ints, size: int, instant: int) -> int:
    """Index of the first of `size` rising instants that is not before this one."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if at[middle] < instant:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def step_of(s: Steps, row: int, instant: int) -> int:
    """The step that contains `instant`."""
    return max(place_in(s.at[row], s.size[row], instant + 1) - 1, 0)


@compiled
def free_at(s: Steps, row: int, instant: int) -> int:
    """Nodes free at `instant`."""
    return s.free[row, step_of(s, row, instant)]  # type: ignore[no-any-return] # a whole number


@compiled
def has_room(s: Steps, row: int, need: int, begin: int, end: int) -> bool:
    """Whether that many are free on all of [begin, end)."""
    at, free, k = s.at[row], s.free[row], step_of(s, row, begin)
    while k < s.size[row] and free[k] >= need and at[k] < end:
        k += 1
    return bool(k == s.size[row] or at[k] >= end)


@compiled
def first_gap(s: Steps, row: int, need: int, length: int, after: int, before: int) -> int:
    """First b in [after, before) with at least `need` on all of [b, b + length); NEVER if there is none."""
    at, free = s.at[row], s.free[row]
    k = step_of(s, row, after)
    begin = after if free[k] >= need else NEVER
    for j in range(k + 1, s.size[row]):
        if begin != NEVER and at[j] - begin >= length:
            return begin
        if free[j] < need:
            begin = NEVER
            if at[j] >= before:
                return NEVER
        elif begin == NEVER:
            begin = at[j]
            if begin >= before:
                return NEVER
    return begin if begin < before else NEVER


@compiled
def add(s: Steps, row: int, begin: int, end: int, amount: int) -> None:
    """Add `amount` on [begin, end), which is not empty."""
    first = _cut(s, row, begin)
    last = _cut(s, row, end)
    free = s.free[row, first:last]  # compilers vectorise a loop over a slice from index 0
    for k in range(free.size):
        free[k] += amount


@compiled
def _cut(s: Steps, row: int, instant: int) -> int:
    """Make a step begin there; returns its index."""
    at, free, size = s.at[row], s.free[row], s.size[row]
    place = place_in(at, size, instant)
    if place < size and at[place] == instant:
        return place
    for k in range(size, place, -1):
        at[k], free[k] = at[k - 1], free[k - 1]
    at[place], free[place] = instant, free[place - 1]
    s.size[row] = size + 1
    return place
