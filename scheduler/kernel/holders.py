"""Which requests hold nodes of a pool in a period, compiled: reservations by the begin of their holds.

They lie in blocks, as the steps of lines do. Each block knows its last end, so that most blocks are skipped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.kernel.compilation import compiled
from scheduler.kernel.timeline import NEVER

SIZE = 64
BLOCK, COUNT = 0, 1
NEXT_BLOCK, BUILT = 0, 1


class Holders(NamedTuple):
    """By pool: the number of rows (`length`) and the `longest` hold. By row: its first begin, its last end, and the
    block with the begins, ends and owners of its holds."""

    length: NDArray[np.int64]
    longest: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    entries: NDArray[np.int32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    who: NDArray[np.int64]
    state: NDArray[np.int64]


def holders(pools: int, requests: int, puts: int) -> Holders:
    """Space for this many; `puts` bounds the total number of puts."""
    blocks = pools + 2 * (puts // SIZE) + 8
    rows = 2 * (requests // SIZE) + 2 * (puts // SIZE) + 8
    return Holders(
        np.zeros(pools, dtype=np.int64),
        np.zeros(pools, dtype=np.int64),
        np.empty((pools, rows), dtype=np.int64),
        np.empty((pools, rows), dtype=np.int64),
        np.empty((pools, rows, 2), dtype=np.int32),
        np.empty((blocks, SIZE), dtype=np.int64),
        np.empty((blocks, SIZE), dtype=np.int64),
        np.empty((blocks, SIZE), dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


@compiled
def _row_of(h: Holders, pool: int, begin: int) -> int:
    low, count = 0, h.length[pool]
    while count > 1:
        half = count >> 1
        if h.first[pool, low + half] <= begin:
            low += half
        count -= half
    return low


@compiled
def insert(h: Holders, pool: int, begin: int, end: int, who: int) -> None:
    """`who` holds nodes on [begin, end)."""
    if h.length[pool] == 0:
        _fresh_row(h, pool, 0)
        h.entries[pool, 0, COUNT] = 0
        h.first[pool, 0], h.last[pool, 0] = begin, end
    h.longest[pool] = max(h.longest[pool], end - begin)
    row = _row_of(h, pool, begin)
    if h.entries[pool, row, COUNT] == SIZE:
        _split(h, pool, row)
        if h.first[pool, row + 1] <= begin:
            row += 1
    block, count = h.entries[pool, row, BLOCK], h.entries[pool, row, COUNT]
    place = count
    while place > 0 and h.begin[block, place - 1] > begin:
        h.begin[block, place], h.end[block, place] = h.begin[block, place - 1], h.end[block, place - 1]
        h.who[block, place] = h.who[block, place - 1]
        place -= 1
    h.begin[block, place], h.end[block, place], h.who[block, place] = begin, end, who
    h.entries[pool, row, COUNT] = count + 1
    h.first[pool, row] = min(h.first[pool, row], begin)
    h.last[pool, row] = max(h.last[pool, row], end) if count else end


@compiled
def _fresh_row(h: Holders, pool: int, row: int) -> None:
    """Insert a row with an empty block; later rows move up by one."""
    for other in range(h.length[pool], row, -1):
        h.first[pool, other], h.last[pool, other] = h.first[pool, other - 1], h.last[pool, other - 1]
        h.entries[pool, other, BLOCK] = h.entries[pool, other - 1, BLOCK]
        h.entries[pool, other, COUNT] = h.entries[pool, other - 1, COUNT]
    h.entries[pool, row, BLOCK] = h.state[NEXT_BLOCK]
    h.state[NEXT_BLOCK] += 1
    h.length[pool] += 1


@compiled
def _split(h: Holders, pool: int, row: int) -> None:
    """The later half of a full row becomes the next one."""
    half = SIZE // 2
    _fresh_row(h, pool, row + 1)
    old, fresh = h.entries[pool, row, BLOCK], h.entries[pool, row + 1, BLOCK]
    for j in range(half):
        h.begin[fresh, j], h.end[fresh, j] = h.begin[old, half + j], h.end[old, half + j]
        h.who[fresh, j] = h.who[old, half + j]
    h.entries[pool, row, COUNT] = h.entries[pool, row + 1, COUNT] = half
    h.first[pool, row + 1] = h.begin[fresh, 0]
    _measure(h, pool, row)
    _measure(h, pool, row + 1)


@compiled
def _measure(h: Holders, pool: int, row: int) -> None:
    block, last = h.entries[pool, row, BLOCK], np.int64(-NEVER)
    for j in range(h.entries[pool, row, COUNT]):
        last = max(last, h.end[block, j])
    h.last[pool, row] = last


@compiled
def remove(h: Holders, pool: int, begin: int, who: int) -> None:
    """Remove the hold of `who` that begins there."""
    row = _row_of(h, pool, begin)
    while True:
        block, count = h.entries[pool, row, BLOCK], h.entries[pool, row, COUNT]
        for j in range(count):
            if h.who[block, j] == who:
                for k in range(j, count - 1):
                    h.begin[block, k], h.end[block, k] = h.begin[block, k + 1], h.end[block, k + 1]
                    h.who[block, k] = h.who[block, k + 1]
                h.entries[pool, row, COUNT] = count - 1
                _measure(h, pool, row)
                return
        row -= 1  # an earlier row may have equal begins


@compiled
def gather(h: Holders, pool: int, begin: int, end: int, after: int, found: NDArray[np.int64]) -> int:
    """Requests ranked after `after` that hold nodes at any time of [begin, end), unordered; returns their number."""
    count = 0
    # A hold that reaches beyond `begin` began at most the longest hold before it.
    for row in range(_row_of(h, pool, begin - h.longest[pool]), h.length[pool]):
        if h.first[pool, row] >= end:
            break
        if h.last[pool, row] > begin:
            block, size = h.entries[pool, row, BLOCK], h.entries[pool, row, COUNT]
            begins, ends, who = h.begin[block, :size], h.end[block], h.who[block]
            for j in range(begins.size):
                if who[j] > after and begins[j] < end and ends[j] > begin:
                    found[count] = who[j]
                    count += 1
    return count
