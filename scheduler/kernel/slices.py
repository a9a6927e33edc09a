"""When slices are busy, compiled: disjoint, sorted stretches of each slice on each side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.kernel.compilation import compiled
from scheduler.kernel.timeline import NEVER

NOBODY = -1
"""Runner of a lease: it never gives way."""


class Slices(NamedTuple):
    """By slice: where its stretches begin; on each side: their number, times and runners."""

    first: NDArray[np.int64]
    count: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    who: NDArray[np.int64]


@compiled
def _place(s: Slices, side: int, slice_: int, instant: int) -> int:
    """The first stretch that begins at or after this."""
    low = s.first[slice_]
    high = low + s.count[side, slice_]
    while low < high:
        half = (low + high) >> 1
        if s.begin[side, half] < instant:
            low = half + 1
        else:
            high = half
    return low


@compiled
def is_free(s: Slices, side: int, slice_: int, begin: int, end: int) -> bool:
    """Whether nothing runs on [begin, end)."""
    if slice_ < 0:
        return True
    before = _place(s, side, slice_, end) - 1
    return before < s.first[slice_] or s.end[side, before] <= begin


@compiled
def gap(s: Slices, side: int, slice_: int, length: int, after: int, before: int) -> int:
    """First b in [after, before) at which nothing runs on [b, b + length); NEVER if there is none."""
    place = max(s.first[slice_], _place(s, side, slice_, after) - 1)
    for i in range(place, s.first[slice_] + s.count[side, slice_]):
        if s.begin[side, i] - after >= length:
            break
        after = max(after, s.end[side, i])
    return after if after < before else NEVER


@compiled
def occupy(s: Slices, side: int, slice_: int, begin: int, end: int, who: int) -> None:
    """`who` runs on [begin, end), which is free."""
    if slice_ < 0:
        return
    place = _place(s, side, slice_, begin)
    for i in range(s.first[slice_] + s.count[side, slice_], place, -1):
        s.begin[side, i], s.end[side, i] = s.begin[side, i - 1], s.end[side, i - 1]
        s.who[side, i] = s.who[side, i - 1]
    s.begin[side, place], s.end[side, place], s.who[side, place] = begin, end, who
    s.count[side, slice_] += 1


@compiled
def vacate(s: Slices, side: int, slice_: int, begin: int) -> None:
    """Remove the stretch that begins there."""
    if slice_ < 0:
        return
    s.count[side, slice_] -= 1
    for i in range(_place(s, side, slice_, begin), s.first[slice_] + s.count[side, slice_]):
        s.begin[side, i], s.end[side, i] = s.begin[side, i + 1], s.end[side, i + 1]
        s.who[side, i] = s.who[side, i + 1]
