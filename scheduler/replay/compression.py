"""Step 3 of a plan on promises that all hold, compiled: see `scheduler.replay.replanning`."""

from __future__ import annotations

from scheduler.kernel.compilation import compiled, entry
from scheduler.replay.replanning import NOWHERE, Shown, World, hold_of, show
from scheduler.replay.step_functions import NEVER, add, first_gap, free_at


@entry
def compress(w: World) -> None:
    """Step 3: in rank order every request moves to its earliest start among all others."""
    w.shown.begin[:] = w.now  # the bounds of step 2 count higher ranks only
    for i in range(w.asked.nodes.size):
        if w.asked.spot[i] != NOWHERE:
            _advance(w, i)


@compiled
def _advance(w: World, i: int) -> None:
    a, t, s = w.asked, w.times, w.steps
    pool, nodes = a.spot[i], a.nodes[i]
    begin, end = hold_of(w, i, pool, a.start[i])
    best, found, is_lifted = NOWHERE, a.start[i], False
    for k in range(a.pools.shape[1]):
        other = a.pools[i, k]
        if other == NOWHERE:
            break
        prepare = t.prepare[other]
        least = _least(w, i, other)
        if least + prepare >= found:
            continue
        if other == pool:
            add(s, pool, begin, end, nodes)
        length = a.duration[i] + prepare + t.drain[other]
        at = first_gap(s, other, nodes, length, least, found - prepare)
        if a.wish[i] - prepare <= w.now:  # a request that may not begin yet proves nothing for others
            show(w.shown, other, i, found - prepare if at == NEVER else at)
        if at != NEVER:
            best, found, is_lifted = other, at + prepare, is_lifted or other == pool
        elif other == pool:
            add(s, pool, begin, end, -nodes)
    if best == NOWHERE:
        return
    if not is_lifted:
        add(s, pool, begin, end, nodes)
    _give(w.shown, pool, begin - t.prepare[pool] - t.drain[pool])
    a.spot[i], a.start[i] = best, found
    begin, end = hold_of(w, i, best, found)
    add(s, best, begin, end, -nodes)


@compiled
def _least(w: World, i: int, other: int) -> int:
    """A bound: in that pool no better hold of the request than its own begins before this."""
    a, t, marks = w.asked, w.times, w.shown.marks
    begin, end = hold_of(w, i, other, a.start[i])
    floor = max(w.now, a.wish[i] - t.prepare[other])
    shown = max(floor, w.shown.begin[other, marks[0, i], marks[1, i]])
    if other != a.spot[i] or floor >= begin:
        return int(shown)
    near = a.start[i] - (a.duration[i] + t.drain[other]) - 2 * t.prepare[other] + 1
    if shown >= near and free_at(w.steps, other, begin - 1) < a.nodes[i]:
        return end  # the remaining holds cover the instant before its own, and that instant is full
    return int(min(shown, max(floor, near)))


@compiled
def _give(b: Shown, pool: int, begin: int) -> None:
    """Room appeared: a hold may begin earlier by its length. `begin` is its begin, less preparation and draining."""
    for duration in range(b.begin.shape[2]):
        cap = begin - b.reach[duration] + 1
        for nodes in range(b.begin.shape[1]):
            b.begin[pool, nodes, duration] = min(b.begin[pool, nodes, duration], cap)
