"""Where a request may start, compiled: the same results as `scheduler.calendars.board.Board`.

There are two sides: 0 is the board with all requests on it, 1 has only leases and higher ranks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.kernel.compilation import compiled
from scheduler.kernel.pools import Pools, Shares, earliest, has_room, room, shift, take
from scheduler.kernel.shown import Shown, give, known, show
from scheduler.kernel.slices import Slices, gap, is_free, occupy, vacate
from scheduler.kernel.timeline import FOREVER, NEVER, Lines


class RequestArrays(NamedTuple):
    """The waiting requests, by rank. `first` says where the pools of each begin in `pool` and `since`."""

    nodes: NDArray[np.int64]
    duration: NDArray[np.int64]
    wish: NDArray[np.int64]
    slice: NDArray[np.int64]
    displaces: NDArray[np.bool_]
    first: NDArray[np.int64]
    pool: NDArray[np.int64]
    since: NDArray[np.int64]
    falls_back: NDArray[np.bool_]
    below: NDArray[np.int64]
    above: NDArray[np.int64]


class Spots(NamedTuple):
    """Where each request is placed: its pool (-1: nowhere) and its start."""

    pool: NDArray[np.int64]
    start: NDArray[np.int64]


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
    least: NDArray[np.int64]


@compiled
def hold_begin(w: World, pool: int, start: int) -> int:
    """When the hold for a start begins; if the start is nearer than the preparation time, now."""
    return max(w.shown.now, start - w.pools.prepare[pool])


@compiled
def floor(w: World, i: int, pool: int) -> int:
    """The earliest possible start of the request in this pool, whatever is free."""
    return max(w.shown.now + w.pools.prepare[pool], w.asked.wish[i])


@compiled
def put(w: World, side: int, i: int, pool: int, start: int, wanted: Shares) -> None:
    """Take free nodes and the slice."""
    begin, end = hold_begin(w, pool, start), start + w.asked.duration[i]
    take(
        w.lines,
        w.pools,
        side,
        pool,
        begin,
        end + w.pools.drain[pool],
        w.asked.nodes[i],
        i,
        w.shares,
        wanted,
    )
    occupy(w.slices, side, w.asked.slice[i], start, end, i)
    w.spots.pool[i], w.spots.start[i] = pool, start


@compiled
def move_nodes(w: World, side: int, i: int, sign: int) -> None:
    """Take exactly the nodes of the spot, or give them back."""
    pool, start = w.spots.pool[i], w.spots.start[i]
    end = start + w.asked.duration[i] + w.pools.drain[pool]
    begin = hold_begin(w, pool, start)
    shift(w.lines, w.pools, side, pool, begin, end, w.asked.nodes[i], i, w.shares, sign)


@compiled
def copy_above(w: World, i: int) -> None:
    """Put a request on the second side as it is on the first."""
    move_nodes(w, 1, i, -1)
    start = w.spots.start[i]
    occupy(w.slices, 1, w.asked.slice[i], start, start + w.asked.duration[i], i)


@compiled
def take_out(w: World, i: int) -> None:
    """Give back what the request holds, on the first side."""
    move_nodes(w, 0, i, 1)
    leave(w, i)


@compiled
def leave(w: World, i: int) -> None:
    """The request, whose nodes were given back, is nowhere now."""
    vacate(w.slices, 0, w.asked.slice[i], w.spots.start[i])
    w.shown.forgotten[w.spots.pool[i]] = True
    w.spots.pool[i] = -1


@compiled
def nodes_free(w: World, i: int, pool: int, start: int) -> bool:
    """Whether enough nodes are free on the first side for the whole hold."""
    end = start + w.asked.duration[i] + w.pools.drain[pool]
    return has_room(w.lines, w.pools, pool, w.asked.nodes[i], hold_begin(w, pool, start), end)


@compiled
def slice_free(w: World, i: int, start: int) -> bool:
    """Whether no other request of the slice runs at that time, on the first side."""
    return is_free(w.slices, 0, w.asked.slice[i], start, start + w.asked.duration[i])


@compiled
def note_candidates(w: World, side: int, i: int) -> None:
    """Note the bound of each of the request's pools: no start before it is possible."""
    first, marks = w.asked.first[i], w.asked.below[i]
    for k in range(w.asked.first[i + 1] - first):
        pool = w.asked.pool[first + k]
        w.least[k] = max(floor(w, i, pool), known(w.shown, side, pool, marks) + w.pools.prepare[pool])


@compiled
def earliest_spot(w: World, side: int, i: int) -> tuple[int, int]:
    """The earliest (pool, start) among the request's pools; (-1, NEVER) if none ever has room."""
    note_candidates(w, side, i)
    return search(w, side, i, -1, NEVER)


@compiled
def search(w: World, side: int, i: int, place: int, start: int) -> tuple[int, int]:
    """The best of the noted candidates, held back least first; with a `place`, only what is better."""
    first = w.asked.first[i]
    count = w.asked.first[i + 1] - first
    falls_back = w.asked.falls_back[i]
    best, best_start = -1, NEVER
    while True:
        k = _next(w, first, count, falls_back)
        least = w.least[k] if k >= 0 else NEVER
        if least == NEVER:
            break
        w.least[k] = NEVER
        since = w.asked.since[first + k]
        before = limit(w, i, place, start, since)
        if best >= 0:
            if best_start <= since or (not falls_back and least > best_start):
                break
            before = min(before, best_start + (since == w.asked.since[first + best] and k < best))
        if least < before:
            found = _earliest_in(w, side, i, w.asked.pool[first + k], least, before)
            if found != NEVER:
                best, best_start = k, found
    return (w.asked.pool[first + best] if best >= 0 else -1), best_start


@compiled
def _next(w: World, first: int, count: int, falls_back: bool) -> int:
    """The candidate to search next: of those held back least the one that may be earliest, in the request's order."""
    this = 0
    for k in range(1, count):
        if w.least[k] < w.least[this]:
            this = k
    if not falls_back or count == 0:
        return this if count else -1
    this = -1
    for k in range(count):
        if w.least[k] != NEVER:
            earlier = this < 0 or w.asked.since[first + k] < w.asked.since[first + this]
            same = this >= 0 and w.asked.since[first + k] == w.asked.since[first + this]
            if earlier or (same and w.least[k] < w.least[this]):
                this = k
    return this


@compiled
def limit(w: World, i: int, place: int, start: int, since: int) -> int:
    """The instant before which a start in a pool held back until `since` is better than the one at `place`."""
    if place < 0:
        return FOREVER
    own = held_back_until(w, i, place)
    if since < own:
        return start + 1
    return start if since == own or start > since else -FOREVER


@compiled
def held_back_until(w: World, i: int, pool: int) -> int:
    """The instant until which the request does not use this pool if others give a start."""
    for k in range(w.asked.first[i], w.asked.first[i + 1] if w.asked.falls_back[i] else 0):
        if w.asked.pool[k] == pool:
            return w.asked.since[k]
    return -FOREVER


@compiled
def _earliest_in(w: World, side: int, i: int, pool: int, least: int, before: int) -> int:
    prepare, slice_ = w.pools.prepare[pool], w.asked.slice[i]
    nodes, duration = w.asked.nodes[i], w.asked.duration[i]
    length, until = duration + prepare + w.pools.drain[pool], before - prepare
    # Looking past `before` costs little, and its result saves many other searches.
    begin = earliest(w.lines, w.pools, side, pool, nodes, length, least - prepare, FOREVER)
    show(w.shown, side, pool, w.asked.above[i], begin)
    if begin >= until:
        return NEVER
    if slice_ < 0 or w.slices.count[side, slice_] == 0:
        return begin + prepare
    while begin != NEVER:
        start = begin + prepare
        free_from = gap(w.slices, side, slice_, duration, start, before)
        if free_from == NEVER or free_from == start:
            return free_from
        # The slice is busy at that time: continue where it is free.
        begin = earliest(w.lines, w.pools, side, pool, nodes, length, free_from - prepare, until)
    return NEVER


@compiled
def advance(w: World, i: int) -> None:
    """Move the request to its earliest spot among all others, if there is a better one."""
    place, start = w.spots.pool[i], w.spots.start[i]
    first, found, own = w.asked.first[i], False, False
    note_candidates(w, 0, i)
    for k in range(w.asked.first[i + 1] - first):
        pool = w.asked.pool[first + k]
        if pool == place:
            _once_lifted(w, i, k)
        if w.least[k] >= limit(w, i, place, start, w.asked.since[first + k]):
            w.least[k] = NEVER
        else:
            found, own = True, own or pool == place
    if not found:
        return
    # Its own nodes matter only when its own pool is searched.
    if own:
        move_nodes(w, 0, i, 1)
    vacate(w.slices, 0, w.asked.slice[i], start)
    pool, better = search(w, 0, i, place, start)
    if pool < 0:
        if own:
            move_nodes(w, 0, i, -1)
        occupy(w.slices, 0, w.asked.slice[i], start, start + w.asked.duration[i], i)
        return
    if not own:
        move_nodes(w, 0, i, 1)
    put(w, 0, i, pool, better, w.nothing)
    begin, end = hold_begin(w, place, start), start + w.asked.duration[i] + w.pools.drain[place]
    margin = w.pools.prepare[place] + w.pools.drain[place]
    give(w.shown, w.lines, w.pools.base[place], place, begin, end, margin)


@compiled
def _once_lifted(w: World, i: int, k: int) -> None:
    """The bound of the request's own pool without its own hold there."""
    pool, start = w.spots.pool[i], w.spots.start[i]
    least = floor(w, i, pool)
    if least >= start:
        return
    begin = hold_begin(w, pool, start)
    reach = start - (w.asked.duration[i] + w.pools.prepare[pool] + w.pools.drain[pool]) + 1
    if w.least[k] >= reach and room(w.lines, w.pools, 0, pool, begin - 1, begin) < w.asked.nodes[i]:
        # The remaining holds cover the instant before its own, and that instant is full.
        show(w.shown, 0, pool, w.asked.above[i], begin)
        w.least[k] = start
    else:
        w.least[k] = min(w.least[k], max(least, reach))
