"""Search bounds, compiled: `scheduler.calendars.bounds.Bounds` as one table for each side and pool.

Bounds only say where a search may begin, so marks that differ from the plain engine's change no answer. Instants are
kept as seconds since now, at most `FARTHEST`, which is far enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.kernel.compilation import compiled
from scheduler.kernel.timeline import Lines, gaps_around

FARTHEST = (1 << 31) - 1
WORTH = 4
"""Least gain of a bound, as a part of the least duration: for less, searching a little more is cheaper."""


class Shown(NamedTuple):
    """`table` is flat, by side, pool, and the marks of wishes, nodes and durations; `sizes` has the lengths of the last
    four. `nodes` and `durations` have the least value of each mark, `forgotten` the pools of side 0 to reset."""

    table: NDArray[np.int32]
    sizes: NDArray[np.int64]
    nodes: NDArray[np.int64]
    durations: NDArray[np.int64]
    forgotten: NDArray[np.bool_]
    now: int


@compiled
def known(b: Shown, side: int, pool: int, below: NDArray[np.int64]) -> int:
    """Lower bound for the begin of a hold of a request with these marks below it."""
    s = b.sizes
    row = ((side * s[0] + pool) * s[1] + below[0]) * s[2] + below[1]
    return b.now + b.table[row * s[3] + below[2]]


@compiled
def show(b: Shown, side: int, pool: int, above: NDArray[np.int64], begin: int) -> None:
    """Record that a search for a request with these marks above it found no begin before this one."""
    seconds, s = np.int32(min(begin - b.now, FARTHEST)), b.sizes
    if above[2] == s[3]:
        return
    slack = b.durations[0] // WORTH
    for wish in range(above[0], s[1]):
        first = ((side * s[0] + pool) * s[1] + wish) * s[2]
        for row in range(first + above[1], first + s[2]):
            if b.table[row * s[3] + above[2]] >= seconds - slack:
                break  # larger sizes mostly have a later bound already
            _raise(b.table[row * s[3] + above[2] : (row + 1) * s[3]], seconds)


@compiled
def _raise(cells: NDArray[np.int32], least: np.int32) -> None:
    for cell in range(cells.size):
        cells[cell] = max(cells[cell], least)


@compiled
def _lower(cells: NDArray[np.int32], most: np.int32) -> None:
    for cell in range(cells.size):
        cells[cell] = min(cells[cell], most)


@compiled
def give(b: Shown, a: Lines, line: int, pool: int, begin: int, end: int, margin: int) -> None:
    """Room appeared on [begin, end) of the first side: requests that fit into the gaps around it may begin there."""
    s = b.sizes
    for nodes in range(s[2]):
        since, longest = gaps_around(a, line, b.nodes[nodes], begin, end)
        if longest < b.durations[0] + margin:
            break
        seconds = np.int32(min(max(since - b.now, 0), FARTHEST))
        fitting = np.searchsorted(b.durations, longest - margin, side="right")
        for wish in range(s[1]):
            first = ((pool * s[1] + wish) * s[2] + nodes) * s[3]
            _lower(b.table[first : first + fitting], seconds)


@compiled
def forget(b: Shown) -> None:
    """Forget the bounds of pools where room appeared."""
    size = b.sizes[1] * b.sizes[2] * b.sizes[3]
    for pool in range(b.sizes[0]):
        if b.forgotten[pool]:
            b.forgotten[pool] = False
            b.table[pool * size : (pool + 1) * size] = 0
