"""Step 3 of a plan on promises that all stand, compiled: see `scheduler.simulating.replanning`.

Held by tests/scheduler/test_replanning.py: the same answers as `scheduler.plan.plan`.
"""

from __future__ import annotations

from scheduler.kernel.compiling import compiled, entry
from scheduler.simulating.replanning import NEVER, NOWHERE, Shown, Steps, World, hold_of, place_in, show


@entry
def compress(w: World) -> None:
    """Step 3: in rank order everybody moves to their earliest start among all others."""
    w.shown.begin[:] = w.now  # what step 2 has shown counts higher ranks alone
    for pool in range(w.holds.size.size):
        _draw(w, pool)
    for i in range(w.asked.nodes.size):
        if w.asked.spot[i] != NOWHERE:
            _advance(w, i)


@compiled
def _draw(w: World, pool: int) -> None:
    h, at, free = w.holds, w.steps.at[pool], w.steps.free[pool]
    at[0], free[0] = w.now, h.base[pool]
    size = 1
    for k in range(h.size[pool]):
        if h.at[pool, k] > at[size - 1]:
            at[size], free[size] = h.at[pool, k], free[size - 1]
            size += 1
        free[size - 1] += h.change[pool, k]
    w.steps.size[pool] = size


@compiled
def _advance(w: World, i: int) -> None:
    a, h, s = w.asked, w.holds, w.steps
    pool, nodes = a.spot[i], a.nodes[i]
    begin, end = hold_of(w, i, pool, a.start[i])
    best, found, is_lifted = NOWHERE, a.start[i], False
    for k in range(a.pools.shape[1]):
        other = a.pools[i, k]
        if other == NOWHERE:
            break
        prepare = h.prepare[other]
        least = _least(w, i, other)
        if least + prepare >= found:
            continue
        if other == pool:
            _add(s, pool, begin, end, nodes)
        at = _gap(w, i, other, least, found - prepare)
        if a.wish[i] - prepare <= w.now:  # who may not begin yet shows nothing for those who may
            show(w.shown, other, i, found - prepare if at == NEVER else at)
        if at != NEVER:
            best, found, is_lifted = other, at + prepare, is_lifted or other == pool
        elif other == pool:
            _add(s, pool, begin, end, -nodes)
    if best == NOWHERE:
        return
    if not is_lifted:
        _add(s, pool, begin, end, nodes)
    _give(w.shown, pool, begin - h.prepare[pool] - h.drain[pool])
    a.spot[i], a.start[i] = best, found
    begin, end = hold_of(w, i, best, found)
    _add(s, best, begin, end, -nodes)


@compiled
def _least(w: World, i: int, other: int) -> int:
    """No hold of the request that is better than its own begins before this in that pool."""
    a, h, marks = w.asked, w.holds, w.shown.marks
    begin, end = hold_of(w, i, other, a.start[i])
    floor = max(w.now, a.wish[i] - h.prepare[other])
    shown = max(floor, w.shown.begin[other, marks[i, 0], marks[i, 1]])
    if other != a.spot[i] or floor >= begin:
        return int(shown)
    near = a.start[i] - (a.duration[i] + h.drain[other]) - 2 * h.prepare[other] + 1
    if shown >= near and _free_at(w.steps, other, begin - 1) < a.nodes[i]:
        return end  # what is left are holds that lie over the instant before its own, and that one is full
    return int(min(shown, max(floor, near)))


@compiled
def _give(b: Shown, pool: int, begin: int) -> None:
    """Room appeared: a hold may begin so much before it as it is long; `begin` is less the times beside durations."""
    for duration in range(b.begin.shape[2]):
        cap = begin - b.reach[duration] + 1
        for nodes in range(b.begin.shape[1]):
            b.begin[pool, nodes, duration] = min(b.begin[pool, nodes, duration], cap)


@compiled
def _step_of(s: Steps, pool: int, instant: int) -> int:
    return max(place_in(s.at[pool], s.size[pool], instant + 1) - 1, 0)


@compiled
def _free_at(s: Steps, pool: int, instant: int) -> int:
    return s.free[pool, _step_of(s, pool, instant)]  # type: ignore[no-any-return] # a whole number


@compiled
def _gap(w: World, i: int, pool: int, after: int, before: int) -> int:
    """First instant of [after, before) at which the request's nodes are free for long enough; NEVER: there is none."""
    s, need = w.steps, w.asked.nodes[i]
    length = w.asked.duration[i] + w.holds.prepare[pool] + w.holds.drain[pool]
    at, free = s.at[pool], s.free[pool]
    k = _step_of(s, pool, after)
    begin = after if free[k] >= need else NEVER
    for j in range(k + 1, s.size[pool]):
        if begin != NEVER and at[j] - begin >= length:
            return begin
        if free[j] < need:
            begin = NEVER
            if at[j] >= before:
                return NEVER
        elif begin == NEVER:
            begin = at[j]
            if begin >= before:
                return NEVER
    return begin if begin < before else NEVER


@compiled
def _add(s: Steps, pool: int, begin: int, end: int, amount: int) -> None:
    first = _cut(s, pool, begin)
    last = _cut(s, pool, end)
    for k in range(first, last):
        s.free[pool, k] += amount


@compiled
def _cut(s: Steps, pool: int, instant: int) -> int:
    """Makes a step begin there; its number."""
    at, free, size = s.at[pool], s.free[pool], s.size[pool]
    place = place_in(at, size, instant)
    if place < size and at[place] == instant:
        return place
    for k in range(size, place, -1):
        at[k], free[k] = at[k - 1], free[k - 1]
    at[place], free[place] = instant, free[place - 1]
    s.size[pool] = size + 1
    return place
