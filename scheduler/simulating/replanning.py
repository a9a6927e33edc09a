"""A plan on promises that all stand, compiled: `scheduler.plan`, answer for answer, where most of it is not needed.

A replay plans at every arrival and every end, and from one plan to the next nearly everything stays. Where the nodes
of each pool are alike, slices bind nobody and every promise still holds, the three steps of `scheduler.plan` shrink:
step 1 is one look at whether free nodes ever fall below none; in step 2 what higher ranks leave is a walk along the
holds in order of time that passes lower ranks by; step 3 is left out where nobody gave way and nothing came free.

Requests are numbered by rank. Holds are instants at which nodes are taken or given back, with whose they are; -1 are
leases. Nothing here takes memory: all of it is in the `World`. Held by tests/scheduler/test_replanning.py: the same
answers as `scheduler.plan.plan`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.kernel.compiling import compiled, entry

NEVER = 1 << 61
NOWHERE = -1

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]


class Asked(NamedTuple):
    """By rank. `pools` has a row for each request, filled up with -1; `spot` and `start` are where it stands."""

    nodes: Ints
    duration: Ints
    wish: Ints
    displaces: NDArray[np.bool_]
    pools: Ints
    spot: Ints
    start: Ints


class Holds(NamedTuple):
    """By pool, in order of time: nodes given (positive) or taken, and by whom; `size` of them; `base`: free now."""

    at: Ints
    change: Shorts
    who: Shorts
    size: Ints
    base: Ints
    prepare: Ints
    drain: Ints


class Steps(NamedTuple):
    """By pool: free nodes from each instant on; `size` of them."""

    at: Ints
    free: Ints
    size: Ints


class Shown(NamedTuple):
    """No hold of at least so many nodes and such a length begins before this: by pool, and mark of each.

    `marks` has of each request the marks below its nodes and duration and those above; `reach` the longest duration
    that a mark stands for.
    """

    begin: Ints
    marks: Ints
    reach: Ints


class Gone(NamedTuple):
    """Who gave way to whom, in order; `size` of them."""

    who: Ints
    whom: Ints
    size: Ints


class Section(NamedTuple):
    """One stretch of time to try things on: its steps, the end behind them, and what is free in each."""

    at: Ints
    free: Ints


class World(NamedTuple):
    """All that is looked at and changed."""

    asked: Asked
    holds: Holds
    steps: Steps
    shown: Shown
    gone: Gone
    section: Section
    now: int


@entry
def all_stand(w: World) -> bool:
    """Step 1: free nodes never fall below none, so that every hold stands beside the others."""
    h = w.holds
    for pool in range(h.size.size):
        free, k = h.base[pool], 0
        while k < h.size[pool]:
            instant = h.at[pool, k]
            while k < h.size[pool] and h.at[pool, k] == instant:
                free += h.change[pool, k]
                k += 1
            if free < 0:
                return False
    return True


@entry
def place(w: World) -> None:
    """Step 2: whoever stands nowhere gets a place, in rank order; lower ranks give way."""
    a = w.asked
    for i in range(a.nodes.size):
        if a.spot[i] == NOWHERE:
            pool, start = _earliest(w, i)
            if pool != NOWHERE:
                if a.displaces[i]:
                    pool = _with_room(w, i, pool, start)
                a.spot[i], a.start[i] = pool, start
                begin, end = hold_of(w, i, pool, start)
                _insert(w.holds, pool, begin, -a.nodes[i], i)
                _insert(w.holds, pool, end, a.nodes[i], i)


@compiled
def hold_of(w: World, i: int, pool: int, start: int) -> tuple[int, int]:
    """Since when and until when the request holds nodes for a start."""
    begin = max(w.now, start - w.holds.prepare[pool])
    return begin, start + w.asked.duration[i] + w.holds.drain[pool]


@compiled
def _earliest(w: World, i: int) -> tuple[int, int]:
    """What leases and higher ranks leave; all ranks, where the request may not push anybody aside."""
    a, h = w.asked, w.holds
    best, found = NOWHERE, NEVER
    until = i if a.displaces[i] else a.nodes.size
    for k in range(a.pools.shape[1]):
        pool = a.pools[i, k]
        if pool == NOWHERE:
            break
        prepare = h.prepare[pool]
        after = max(w.now, a.wish[i] - prepare)
        length = a.duration[i] + prepare + h.drain[pool]
        if a.displaces[i]:
            # Higher ranks only ever take more, so that what one of them looked for in vain stays out of reach.
            after = max(after, w.shown.begin[pool, w.shown.marks[i, 0], w.shown.marks[i, 1]])
        begin = _first_gap(h, pool, until, a.nodes[i], length, after)
        if a.displaces[i] and a.wish[i] - prepare <= w.now:
            show(w.shown, pool, i, begin)
        if begin != NEVER and begin + prepare < found:
            best, found = pool, begin + prepare
    return best, found


@compiled
def _first_gap(h: Holds, pool: int, until: int, need: int, length: int, after: int) -> int:
    """First instant from `after` on with `need` free for so long, counting leases and those ranked before `until`."""
    at, change, who, size = h.at[pool], h.change[pool], h.who[pool], h.size[pool]
    free, k = h.base[pool], 0
    while k < size and at[k] <= after:
        free += change[k] * (who[k] < until)
        k += 1
    begin = after if free >= need else NEVER
    while k < size:
        instant = at[k]
        if begin != NEVER and instant - begin >= length:
            return begin
        while k < size and at[k] == instant:
            if who[k] < until:
                free += change[k]
            k += 1
        if free < need:
            begin = NEVER
        elif begin == NEVER:
            begin = instant
    return begin


@compiled
def _fits(w: World, i: int, pool: int, start: int) -> bool:
    """Enough nodes are free for the whole hold, counting everybody."""
    h, need = w.holds, w.asked.nodes[i]
    begin, end = hold_of(w, i, pool, start)
    free, k, size = h.base[pool], 0, h.size[pool]
    while k < size and h.at[pool, k] <= begin:
        free += h.change[pool, k]
        k += 1
    while free >= need and k < size and h.at[pool, k] < end:
        instant = h.at[pool, k]
        while k < size and h.at[pool, k] == instant:
            free += h.change[pool, k]
            k += 1
    return bool(free >= need)


@compiled
def _undisturbing(w: World, i: int, pool: int, start: int) -> int:
    """The first other pool that gives the same start without moving anybody."""
    found = NOWHERE
    for k in range(w.asked.pools.shape[1]):
        other = w.asked.pools[i, k]
        if other == NOWHERE or found != NOWHERE:
            break
        floor = max(w.now + w.holds.prepare[other], w.asked.wish[i])
        if other != pool and floor <= start and _fits(w, i, other, start):
            found = other
    return found


@compiled
def _with_room(w: World, i: int, pool: int, start: int) -> int:
    """The pool in which there is room at `start`: made free, if there is none without."""
    begin, end = hold_of(w, i, pool, start)
    steps, short = _cut_out(w, pool, begin, end, w.asked.nodes[i])
    if short == 0:
        return pool
    other = _undisturbing(w, i, pool, start)
    if other != NOWHERE:
        return other
    _make_room(w, i, pool, steps, short)
    return pool


@compiled
def _make_room(w: World, i: int, pool: int, steps: int, short: int) -> None:
    """The lowest ranks that hold nodes where they are short go; the highest of them return if not needed."""
    a, g, need = w.asked, w.gone, w.asked.nodes[i]
    first, j = g.size[0], a.nodes.size
    low, high = _short(w, steps, need)
    while short > 0:
        j -= 1
        if a.spot[j] == pool and _is_short(w, low, high, need, j):
            short -= _change(w, steps, need, j, 1)
            low, high = _short(w, steps, need)
            g.who[g.size[0]] = j
            g.size[0] += 1
    last = first
    for k in range(g.size[0] - 1, first - 1, -1):
        if _change(w, steps, need, g.who[k], -1) != 0:
            _change(w, steps, need, g.who[k], 1)
        else:
            g.who[k] = NOWHERE
    for k in range(first, g.size[0]):
        if g.who[k] != NOWHERE:
            begin, end = hold_of(w, g.who[k], pool, a.start[g.who[k]])
            _give_back(w.holds, pool, begin, g.who[k])
            _give_back(w.holds, pool, end, g.who[k])
            a.spot[g.who[k]] = NOWHERE
            g.who[last], g.whom[last] = g.who[k], i
            last += 1
    for k in range((last - first) // 2):
        g.who[first + k], g.who[last - 1 - k] = g.who[last - 1 - k], g.who[first + k]
    g.size[0] = last


@compiled
def _cut_out(w: World, pool: int, begin: int, end: int, need: int) -> tuple[int, int]:
    """Fills the section; how many steps it has, and in how many of them nodes are short."""
    h, at, free = w.holds, w.section.at, w.section.free
    level, k = h.base[pool], 0
    while k < h.size[pool] and h.at[pool, k] <= begin:
        level += h.change[pool, k]
        k += 1
    at[0], free[0] = begin, level
    steps = 1
    while k < h.size[pool] and h.at[pool, k] < end:
        if h.at[pool, k] != at[steps - 1]:
            at[steps], free[steps] = h.at[pool, k], free[steps - 1]
            steps += 1
        free[steps - 1] += h.change[pool, k]
        k += 1
    at[steps] = end
    short = 0
    for step in range(steps):
        short += free[step] < need
    return steps, short


@compiled
def _short(w: World, steps: int, need: int) -> tuple[int, int]:
    """The first step in which nodes are short, and the one behind the last."""
    low, high = 0, steps
    while high > 0 and w.section.free[high - 1] >= need:
        high -= 1
    while low < high and w.section.free[low] >= need:
        low += 1
    return low, high


@compiled
def _is_short(w: World, low: int, high: int, need: int, j: int) -> bool:
    """Whether nodes are short somewhere in these steps while `j` holds some."""
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
def _change(w: World, steps: int, need: int, j: int, sign: int) -> int:
    """Gives what `j` holds to the section, or takes it; how many more steps are enough now, or fewer (negative)."""
    at, free, mended = w.section.at, w.section.free, 0
    since, until = hold_of(w, j, w.asked.spot[j], w.asked.start[j])
    for k in range(steps):
        if at[k] < until and at[k + 1] > since:
            was = free[k] >= need
            free[k] += sign * w.asked.nodes[j]
            mended += (free[k] >= need) - was
    return mended


@compiled
def place_in(at: Ints, size: int, instant: int) -> int:
    """The first of `size` rising instants that is not before this one."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if at[middle] < instant:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _insert(h: Holds, pool: int, instant: int, change: int, who: int) -> None:
    size = h.size[pool]
    place = place_in(h.at[pool], size, instant)
    for k in range(size, place, -1):
        h.at[pool, k], h.change[pool, k] = h.at[pool, k - 1], h.change[pool, k - 1]
        h.who[pool, k] = h.who[pool, k - 1]
    h.at[pool, place], h.change[pool, place], h.who[pool, place] = instant, change, who
    h.size[pool] = size + 1


@compiled
def _give_back(h: Holds, pool: int, instant: int, who: int) -> None:
    """What it does at that instant stays in the list and changes nothing any more."""
    k = place_in(h.at[pool], h.size[pool], instant)
    while h.who[pool, k] != who:
        k += 1
    h.change[pool, k], h.who[pool, k] = 0, -1


@compiled
def show(b: Shown, pool: int, i: int, begin: int) -> None:
    """A search for the request found no begin before this one."""
    for nodes in range(b.marks[i, 2], b.begin.shape[1]):
        for duration in range(b.marks[i, 3], b.begin.shape[2]):
            b.begin[pool, nodes, duration] = max(b.begin[pool, nodes, duration], begin)
