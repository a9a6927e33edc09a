"""Planning on promises that all hold, compiled: the same results as `scheduler.plan`, where most of it is not needed.

A replay plans at every arrival and every end, and nearly everything stays from one plan to the next. If the nodes of
each pool are equal, slices do not matter and every promise still holds, the three steps of `scheduler.plan` shrink:
step 1 checks that the number of free nodes is never negative; in step 2 what higher ranks leave is built for the first
request without a place, and extended on the way to the next; step 3 (`scheduler.replay.compression`) is skipped if no
request gave way and no nodes became free.

Requests are numbered by rank. Nothing here allocates memory: all arrays are in the `World`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.kernel.compilation import compiled, entry
from scheduler.replay.step_functions import NEVER, Steps, add, first_gap, has_room, place_in, step_of

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


@entry
def place(w: World) -> None:
    """Step 2: requests without a place get one, in rank order; lower ranks give way."""
    a, counted, pools = w.asked, w.counted, w.times.prepare.size
    for i in range(a.nodes.size):
        if a.spot[i] != NOWHERE:
            continue
        for j in range(counted, i):
            if a.spot[j] != NOWHERE:
                begin, end = hold_of(w, j, a.spot[j], a.start[j])
                add(w.steps, pools + a.spot[j], begin, end, -a.nodes[j])
        counted = i
        pool, start = _earliest(w, i)
        if pool != NOWHERE:
            if a.displaces[i]:
                pool = _with_room(w, i, pool, start)
            a.spot[i], a.start[i] = pool, start
            begin, end = hold_of(w, i, pool, start)
            add(w.steps, pool, begin, end, -a.nodes[i])


@compiled
def hold_of(w: World, i: int, pool: int, start: int) -> tuple[int, int]:
    """When the request's hold for that start begins and ends."""
    begin = max(w.now, start - w.times.prepare[pool])
    return begin, start + w.asked.duration[i] + w.times.drain[pool]


@compiled
def _earliest(w: World, i: int) -> tuple[int, int]:
    """The earliest (pool, start) that leases and higher ranks leave; all ranks, if the request may displace none."""
    a, t, marks = w.asked, w.times, w.shown.marks
    best, found = NOWHERE, NEVER
    side = t.prepare.size if a.displaces[i] else 0
    for k in range(a.pools.shape[1]):
        pool = a.pools[i, k]
        if pool == NOWHERE:
            break
        prepare = t.prepare[pool]
        after = max(w.now, a.wish[i] - prepare)
        length = a.duration[i] + prepare + t.drain[pool]
        if a.displaces[i]:
            # Higher ranks only take more nodes, so what one of them did not find is not there later either.
            after = max(after, w.shown.begin[pool, marks[0, i], marks[1, i]])
        begin = first_gap(w.steps, side + pool, a.nodes[i], length, after, NEVER)
        if a.displaces[i] and a.wish[i] - prepare <= w.now:
            show(w.shown, pool, i, begin)
        if begin != NEVER and begin + prepare < found:
            best, found = pool, begin + prepare
    return best, found


@compiled
def _undisturbing(w: World, i: int, pool: int, start: int) -> int:
    """The first other pool with the same start that displaces no request."""
    found = NOWHERE
    for k in range(w.asked.pools.shape[1]):
        other = w.asked.pools[i, k]
        if other == NOWHERE or found != NOWHERE:
            break
        floor = max(w.now + w.times.prepare[other], w.asked.wish[i])
        if other != pool and floor <= start:
            begin, end = hold_of(w, i, other, start)
            if has_room(w.steps, other, w.asked.nodes[i], begin, end):
                found = other
    return found


@compiled
def _with_room(w: World, i: int, pool: int, start: int) -> int:
    """A pool with room at `start`; if there is none, room is made in `pool`."""
    begin, end = hold_of(w, i, pool, start)
    if has_room(w.steps, pool, w.asked.nodes[i], begin, end):
        return pool
    other = _undisturbing(w, i, pool, start)
    if other != NOWHERE:
        return other
    _make_room(w, i, pool, _cut_out(w, pool, begin, end))
    return pool


@compiled
def _make_room(w: World, i: int, pool: int, steps: int) -> None:
    """The lowest ranks that hold nodes during a shortage go; those that need not go after all return."""
    a, g, need = w.asked, w.gone, w.asked.nodes[i]
    first, j = g.size[0], a.nodes.size
    low, high = _short(w, 0, steps, need)
    while low < high:
        j -= 1
        if a.spot[j] == pool and _is_short(w, low, high, need, j):
            _change(w, steps, need, j, 1)
            low, high = _short(w, low, high, need)
            g.who[g.size[0]] = j
            g.size[0] += 1
    last = first
    for k in range(g.size[0] - 1, first - 1, -1):
        if _change(w, steps, need, g.who[k], -1):
            _change(w, steps, need, g.who[k], 1)
        else:
            g.who[k] = NOWHERE
    for k in range(first, g.size[0]):
        if g.who[k] != NOWHERE:
            begin, end = hold_of(w, g.who[k], pool, a.start[g.who[k]])
            add(w.steps, pool, begin, end, a.nodes[g.who[k]])
            a.spot[g.who[k]] = NOWHERE
            g.who[last], g.whom[last] = g.who[k], i
            last += 1
    for k in range((last - first) // 2):
        g.who[first + k], g.who[last - 1 - k] = g.who[last - 1 - k], g.who[first + k]
    g.size[0] = last


@compiled
def _cut_out(w: World, pool: int, begin: int, end: int) -> int:
    """Fill the section; returns the number of its steps."""
    at, free, size = w.steps.at[pool], w.steps.free[pool], w.steps.size[pool]
    k, steps = step_of(w.steps, pool, begin), 0
    while k < size and at[k] < end:
        w.section.at[steps], w.section.free[steps] = max(begin, at[k]), free[k]
        k, steps = k + 1, steps + 1
    w.section.at[steps] = end
    return steps


@compiled
def _short(w: World, low: int, high: int, need: int) -> tuple[int, int]:
    """The first of these steps in which nodes are short, and the step after the last of them."""
    while high > low and w.section.free[high - 1] >= need:
        high -= 1
    while low < high and w.section.free[low] >= need:
        low += 1
    return low, high


@compiled
def _is_short(w: World, low: int, high: int, need: int, j: int) -> bool:
    """Whether nodes are short in any of these steps during the hold of `j`."""
    at, free, found = w.section.at, w.section.free, False
    since, until = hold_of(w, j, w.asked.spot[j], w.asked.start[j])
    if since >= at[high] or until <= at[low]:
        return False
    for k in range(low, high):
        if found or at[k] >= until:
            break
        found = free[k] < need and at[k + 1] > since
    return found


@compiled
def _change(w: World, steps: int, need: int, j: int, sign: int) -> bool:
    """Add the nodes of `j` to the section, or remove them; returns whether nodes are then short during its hold."""
    at = w.section.at
    since, until = hold_of(w, j, w.asked.spot[j], w.asked.start[j])
    first = max(place_in(at, steps, since + 1) - 1, 0)
    free, is_short = w.section.free[first : place_in(at, steps, until)], False
    for k in range(free.size):
        free[k] += sign * w.asked.nodes[j]
        is_short |= free[k] < need
    return is_short


@compiled
def show(b: Shown, pool: int, i: int, begin: int) -> None:
    """Record that a search for the request found no begin before this one."""
    for nodes in range(b.marks[2, i], b.begin.shape[1]):
        for duration in range(b.marks[3, i], b.begin.shape[2]):
            b.begin[pool, nodes, duration] = max(b.begin[pool, nodes, duration], begin)
