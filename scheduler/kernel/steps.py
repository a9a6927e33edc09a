"""The three steps of a plan, compiled: the same results as `scheduler.plan`. Requests are numbered by rank."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.kernel.compilation import compiled, entry
from scheduler.kernel.displaced import Scratch, hold_of, lift_those_in_the_way
from scheduler.kernel.holders import BUILT, Holders, insert, remove
from scheduler.kernel.search import (
    World,
    advance,
    copy_above,
    earliest_spot,
    floor,
    held_back_until,
    hold_begin,
    leave,
    move_nodes,
    nodes_free,
    put,
    slice_free,
    take_out,
)
from scheduler.kernel.shown import forget, known
from scheduler.kernel.timeline import Lines, draw, lowest


class Promises(NamedTuple):
    """Promises by rank: the pool (-1 if it cannot hold, -2 without a promise), and the start."""

    pool: NDArray[np.int64]
    start: NDArray[np.int64]


class Outcome(NamedTuple):
    """Which request gave way to which (-1: to none), in order; `count` has their number."""

    who: NDArray[np.int64]
    whom: NDArray[np.int64]
    count: NDArray[np.int64]


@entry
def draw_lines(
    a: Lines, shift: int, first: NDArray[np.int64], at: NDArray[np.int64], value: NDArray[np.int64]
) -> None:
    """Draw all lines of a side, from line `shift` on; `first` says where the steps of each begin."""
    for line in range(first.size - 1):
        draw(a, shift + line, at[first[line] : first[line + 1]], value[first[line] : first[line + 1]])


@entry
def stand(w: World, p: Promises, o: Outcome, begin: int) -> int:
    """Step 1 from request `begin` on. Returns the request for which others must change nodes, or the number of all."""
    for i in range(begin, p.pool.size):
        if p.pool[i] == -2:
            continue
        if p.pool[i] >= 0 and slice_free(w, i, p.start[i]):
            if nodes_free(w, i, p.pool[i], p.start[i]):
                put(w, 0, i, p.pool[i], p.start[i], w.wanted)
                continue
            if _may_be_bound_anew(w, p, i):
                return i
        displace(o, i, -1)
    return p.pool.size


@entry
def move_all(w: World, there: NDArray[np.int64], starts: NDArray[np.int64], pool: int) -> None:
    """Lift all but the last, then put all at their starts, from the groups in `w.wanted`."""
    for k in range(there.size - 1):
        take_out(w, there[k])
    for k in range(there.size):
        put(w, 0, there[k], pool, starts[k], w.wanted)


@entry
def place(w: World, h: Holders, t: Scratch, o: Outcome, standing: bool) -> None:
    """Step 2."""
    counted = 0
    side = 1 if standing else 0
    for i in range(w.spots.pool.size):
        if w.spots.pool[i] >= 0:
            continue
        for j in range(counted, i if standing else 0):
            if w.spots.pool[j] >= 0:
                copy_above(w, j)
        counted = i
        if not w.asked.displaces[i]:
            forget(w.shown)
        pool, start = earliest_spot(w, side if w.asked.displaces[i] else 0, i)
        if pool < 0:
            continue
        if standing and not (slice_free(w, i, start) and nodes_free(w, i, pool, start)):
            other = _undisturbing(w, i, pool, start)
            if other >= 0:
                pool = other
            else:
                _make_room(w, h, t, o, i, pool, start)
        put(w, 0, i, pool, start, w.nothing)
        if standing and h.state[BUILT]:
            begin, end = hold_of(w, i)
            insert(h, pool, begin, end, i)


@entry
def compress(w: World) -> None:
    """Step 3."""
    forget(w.shown)
    for i in range(w.spots.pool.size):
        if w.spots.pool[i] >= 0:
            advance(w, i)


@compiled
def displace(o: Outcome, who: int, whom: int) -> None:
    o.who[o.count[0]], o.whom[o.count[0]] = who, whom
    o.count[0] += 1


@compiled
def _may_be_bound_anew(w: World, p: Promises, i: int) -> bool:
    """Whether another assignment of nodes might help: they are unequal, and there are enough in total."""
    pool, start = p.pool[i], p.start[i]
    end = start + w.asked.duration[i] + w.pools.drain[pool]
    free = lowest(w.lines, w.pools.base[pool], hold_begin(w, pool, start), end)
    return w.pools.groups[pool] > 1 and free >= w.asked.nodes[i]


@compiled
def _undisturbing(w: World, i: int, pool: int, start: int) -> int:
    """The first other pool with the same start that displaces no request; -1 if there is none."""
    if not slice_free(w, i, start):
        return -1
    reached = max(held_back_until(w, i, pool), start - 1)
    for k in range(w.asked.first[i], w.asked.first[i + 1]):
        other = w.asked.pool[k]
        if other != pool and w.asked.since[k] <= reached and _may_start(w, i, other, start):
            if nodes_free(w, i, other, start):
                return other
    return -1


@compiled
def _may_start(w: World, i: int, pool: int, start: int) -> bool:
    """Whether it may start there: if the second side (higher ranks alone) has no room, it cannot."""
    shown = known(w.shown, 1, pool, w.asked.below[i]) + w.pools.prepare[pool]
    return max(floor(w, i, pool), shown) <= start


@compiled
def _make_room(w: World, h: Holders, t: Scratch, o: Outcome, i: int, pool: int, start: int) -> None:
    """Take out the requests in the way of the spot: all of its slice at that time, and as few others as needed."""
    if not h.state[BUILT]:
        _build(w, h)
    before = o.count[0]
    _clear_slice(w, h, o, i, start)
    for k in range(lift_those_in_the_way(w, h, t, i, pool, start)):
        _remove(w, h, t.gone[k])
        displace(o, t.gone[k], i)
    _sort(o.who, before, o.count[0])


@compiled
def _build(w: World, h: Holders) -> None:
    h.state[BUILT] = 1
    for j in range(w.spots.pool.size):
        if w.spots.pool[j] >= 0:
            begin, end = hold_of(w, j)
            insert(h, w.spots.pool[j], begin, end, j)


@compiled
def _clear_slice(w: World, h: Holders, o: Outcome, i: int, start: int) -> None:
    """Take out requests of the same slice that run at that time: all are of lower rank."""
    slice_, s = w.asked.slice[i], w.slices
    if slice_ < 0:
        return
    end = start + w.asked.duration[i]
    k = s.first[slice_] + s.count[0, slice_] - 1
    while k >= s.first[slice_]:
        if s.end[0, k] <= start:
            break
        if s.begin[0, k] < end:
            who = s.who[0, k]
            move_nodes(w, 0, who, 1)
            _remove(w, h, who)
            displace(o, who, i)
        k -= 1


@compiled
def _remove(w: World, h: Holders, who: int) -> None:
    """Take it off the board; its nodes were given back before."""
    begin, _ = hold_of(w, who)
    remove(h, w.spots.pool[who], begin, who)
    leave(w, who)


@compiled
def _sort(numbers: NDArray[np.int64], first: int, last: int) -> None:
    """In place, rising; there are few."""
    for k in range(first + 1, last):
        number, j = numbers[k], k
        while j > first and numbers[j - 1] > number:
            numbers[j] = numbers[j - 1]
            j -= 1
        numbers[j] = number
