"""The arrays of compiled planning. Requests are numbered by rank; the code in `native/` says what it does with them.

Each tuple has the fields of the struct of the same name in C, in its order (`scheduler.kernel.native` passes them).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STEPS, HOLDS = 32, 64
"""Steps in a block of a line, and holds in a block of `Holders`."""
NEVER = 1 << 61
"""No instant: later than `scheduler.snapshot.FOREVER` by any margin."""
NOBODY = -1
"""Runner of a lease: it never gives way."""

Ints = NDArray[np.int64]
Halves = NDArray[np.int32]
Bools = NDArray[np.bool_]


class Lines(NamedTuple):
    """The arena of lines. `first` and `entries` are the directory; `at` and `value` are the blocks."""

    first: Ints
    entries: Halves
    at: Ints
    value: Halves
    line: Ints
    free: Ints


def lines(count: int, steps: int) -> Lines:
    """Space for `count` lines with at most that many `steps` in total. Memory is used only as it is written."""
    blocks = count + 2 * (steps // STEPS) + 8
    entries = 4 * (count + 2 * blocks)
    return Lines(
        np.empty(entries, dtype=np.int64),
        np.empty((entries, 5), dtype=np.int32),
        np.empty((blocks, STEPS), dtype=np.int64),
        np.empty((blocks, STEPS), dtype=np.int32),
        np.zeros((count, 3), dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


def is_half_full(found: Lines) -> bool:
    """Whether half of its blocks or of its directory are in use."""
    blocks, entries = map(int, found.free)
    return 2 * blocks > len(found.at) or 2 * entries > len(found.first)


class Drawn(NamedTuple):
    """The steps of all lines of a side; `first` says where those of each begin."""

    first: Ints
    at: Ints
    value: Ints


class Pools(NamedTuple):
    """By pool: its first line and number of groups. By line: the group's end, and when it first has free time.

    A pool whose free time all ends together is one line. Any other pool has a line for their sum, then one for each
    instant at which some free time ends, the last for nodes that stay. `width` is the number of lines of a side; lines
    of the second side follow those of the first.
    """

    base: Ints
    groups: Ints
    prepare: Ints
    drain: Ints
    ends: Ints
    since: Ints
    width: int


class RequestArrays(NamedTuple):
    """The waiting requests, by rank. `first` says where the pools of each begin in `pool` and `since`."""

    nodes: Ints
    duration: Ints
    wish: Ints
    slice: Ints
    displaces: Bools
    first: Ints
    pool: Ints
    since: Ints
    falls_back: Bools
    below: Ints
    above: Ints


class Slices(NamedTuple):
    """By slice: where its stretches begin; on each side: their number, times and runners."""

    first: Ints
    counts: Ints
    begin: Ints
    end: Ints
    who: Ints


class Shown(NamedTuple):
    """Search bounds. `table` is flat, by side, pool, and the marks of wishes, nodes and durations; `sizes` has the
    lengths of the last four. `nodes` and `durations` have the least value of each mark, `forgotten` the pools of side 0
    to reset."""

    table: Halves
    sizes: Ints
    nodes: Ints
    durations: Ints
    forgotten: Bools
    now: int


class Spots(NamedTuple):
    """Where requests are placed: the pool of each (-1: nowhere) and its start."""

    pool: Ints
    start: Ints


class Shares(NamedTuple):
    """By request: where its shares begin, their number, and the group's line and nodes of each."""

    first: Ints
    counts: Ints
    group: Ints
    nodes: Ints


class World(NamedTuple):
    """All state of a plan; `least` is scratch space for the candidates of one search."""

    lines: Lines
    pools: Pools
    asked: RequestArrays
    slices: Slices
    shown: Shown
    spots: Spots
    shares: Shares
    wanted: Shares
    nothing: Shares
    least: Ints


class Holders(NamedTuple):
    """Which requests hold nodes when. By pool: the number of rows (`length`) and the `longest` hold. By row: its first
    begin, its last end, and the block with the begins, ends and owners of its holds."""

    length: Ints
    longest: Ints
    first: Ints
    last: Ints
    entries: Halves
    begin: Ints
    end: Ints
    who: Ints
    state: Ints


def holders(pools: int, requests: int, puts: int) -> Holders:
    """Space for this many; `puts` bounds the total number of puts."""
    blocks = pools + 2 * (puts // HOLDS) + 8
    rows = 2 * (requests // HOLDS) + 2 * (puts // HOLDS) + 8
    return Holders(
        np.zeros(pools, dtype=np.int64),
        np.zeros(pools, dtype=np.int64),
        np.empty((pools, rows), dtype=np.int64),
        np.empty((pools, rows), dtype=np.int64),
        np.empty((pools, rows, 2), dtype=np.int32),
        np.empty((blocks, HOLDS), dtype=np.int64),
        np.empty((blocks, HOLDS), dtype=np.int64),
        np.empty((blocks, HOLDS), dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


class Scratch(NamedTuple):
    """Scratch space for one period: the requests that hold nodes, and those that go."""

    others: Ints
    gone: Ints


class Promises(NamedTuple):
    """Promises by rank: the pool (-1 if it cannot hold, -2 without a promise), and the start."""

    pool: Ints
    start: Ints


class Outcome(NamedTuple):
    """Which request gave way to which (-1: to none), in order; `size` has their number."""

    who: Ints
    whom: Ints
    size: Ints
