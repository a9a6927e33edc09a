"""Step 3 of a plan on promises that all hold, compiled: see `scheduler.replay.replanning`.

Held by tests/scheduler/replay/test_replanning.py: the same answers as `scheduler.plan.plan`.
"""

from __future__ import annotations

from scheduler.kernel.compilation import compiled, entry
from scheduler.replay.replanning import NOWHERE, Shown, World, hold_of, show
from scheduler.replay.step_functions import NEVER, add, first_gap, free_at


@entry
def compress(w: World) -> None:
    """Step 3: in rank order every request moves to its earliest start among all others."""
    w.shown.begin[:] = w.now  # what step 2 has shown counts higher ranks alone
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
        if a.wish[i] - prepare <= w.now:  # who may not begin yet shows nothing for those who may
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
    """No hold of the request that is better than its own begins before this in that pool."""
    a, t, marks = w.asked, w.times, w.shown.marks
    begin, end = hold_of(w, i, other, a.start[i])
    floor = max(w.now, a.wish[i] - t.prepare[other])
    shown = max(floor, w.shown.begin[other, marks[0, i], marks[1, i]])
    if other != a.spot[i] or floor >= begin:
        return int(shown)
    near = a.start[i] - (a.duration[i] + t.drain[other]) - 2 * t.prepare[other] + 1
    if shown >= near and free_at(w.steps, other, begin - 1) < a.nodes[i]:
        return end  # what is left are holds that lie over the instant before its own, and that one is full
    return int(min(shown, max(floor, near)))


@compiled
def _give(b: Shown, pool: int, begin: int) -> None:
    """Room appeared: a hold may begin so much before it as it is long; `begin` is less the times beside durations."""
    for duration in range(b.begin.shape[2]):
        cap = begin - b.reach[duration] + 1
        for nodes in range(b.begin.shape[1]):
            b.begin[pool, nodes, duration] = min(b.begin[pool, nodes, duration], cap)
