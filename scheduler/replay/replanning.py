"""The arrays of a replay's plan on promises that all hold: the same results as `scheduler.plan`, with less work.

A replay plans at every arrival and every end, and nearly everything stays from one plan to the next. If the nodes of
each pool are equal, slices do not matter and every promise still holds, the three steps of `scheduler.plan` shrink:
step 1 checks that the number of free nodes is never negative; in step 2 what higher ranks leave is built for the first
request without a place, and extended on the way to the next; step 3 is skipped if no
request gave way and no nodes became free.

Requests are numbered by rank. Each tuple has the fields of its struct in `scheduler/kernel/native/replay.h`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NOWHERE = -1

Ints = NDArray[np.int64]


class RankedRequests(NamedTuple):
    """By rank. `pools` has a row per request, padded with -1; `spot` is its current pool, `start` its start there."""

    nodes: Ints
    duration: Ints
    wish: Ints
    displaces: NDArray[np.bool_]
    pools: Ints
    spot: Ints
    start: Ints


class Times(NamedTuple):
    """By pool."""

    prepare: Ints
    drain: Ints


class Steps(NamedTuple):
    """Free nodes over time, by row: instants, the free nodes from each on, and their number (`size`). The first is the
    beginning of time."""

    at: Ints
    free: Ints
    size: Ints


class Shown(NamedTuple):
    """`begin`, by pool and marks: no hold of at least that many nodes and that length begins before it.

    `marks` has the greatest marks below each request's nodes and duration, then the smallest marks above them; `reach`
    the longest duration of each mark.
    """

    begin: Ints
    marks: Ints
    reach: Ints


class Gone(NamedTuple):
    """Which request gave way to which, in order; `size` has their number."""

    who: Ints
    whom: Ints
    size: Ints


class Section(NamedTuple):
    """A stretch of time for trials: when its steps begin, then its end; and the nodes free in each step."""

    at: Ints
    free: Ints


class World(NamedTuple):
    """All state of a plan.

    `steps` has a row per pool with all requests on it, then a row per pool with only leases and the ranks before
    `counted`.
    """

    asked: RankedRequests
    times: Times
    steps: Steps
    shown: Shown
    gone: Gone
    section: Section
    counted: int
    now: int
