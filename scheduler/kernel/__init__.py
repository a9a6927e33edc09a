"""A compiled engine for large queues: the same plans as the plain one makes, a hundred times sooner.

Nothing here imports numba until a queue is worth it: loading takes half a second, and compiling (once for a machine) a
minute. Who plans all day calls `warm` when nobody waits; `python -m scheduler.kernel` fills the cache of a
machine or an image.

Held by tests/scheduler/test_kernel.py: whichever engine plans, the plan is the same, and a small queue imports nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import islice

from scheduler.kernel import cache
from scheduler.snapshot import Plan, Snapshot

PER_REQUEST_S, PER_POOL_S = 40e-6, 10e-6
"""What the plain engine takes for a request, and more for each pool that it may use, at least (docs/benchmarks.md)."""
PAYS_S = 0.01
"""Where the compiled engine is loaded, a plan that plainly takes longer than this is made with it: below, preparing
its arrays costs as much as it saves."""
LOADING_S = 0.5
"""Where it is kept on disk, loading it pays for one plan that plainly takes longer than this."""
COMPILING_S = 75.0
"""Where it has to be compiled first, as much: then planning plainly would take even longer."""
LONGEST = 1 << 40
"""A duration, in seconds, up to which sums of many of them are whole numbers of 64 bits."""

SAMPLE = 64
"""Requests whose pools are counted to guess how many all have."""

_lock = threading.Lock()
_loaded: list[Callable[[Snapshot], Plan]] = []


def engine_for(snapshot: Snapshot) -> Callable[[Snapshot], Plan] | None:
    """The compiled engine, if this snapshot is worth it and can be numbered; otherwise None: plan it plainly."""
    work = plain_seconds(snapshot)
    if work < PAYS_S or not _can_be_numbered(snapshot):
        return None
    if _loaded:
        return _loaded[0]
    if work < LOADING_S or not cache.is_installed():
        return None
    if work < COMPILING_S and not cache.is_kept():
        return None
    return warm()


def warm() -> Callable[[Snapshot], Plan]:
    """Loads the compiled engine, and compiles it first where that was never done; later plans are made with it.

    Takes half a second, or a minute. Safe in any thread, but what is compiled holds others up: a process of
    its own (`python -m scheduler.kernel`) before it does not.
    """
    with _lock:
        if not _loaded:
            from scheduler.kernel.warm_up import warmed

            _loaded.append(warmed())
            cache.keep()
    return _loaded[0]


def plain_seconds(snapshot: Snapshot) -> float:
    """About how long the plain engine takes at least."""
    some = [len(request.pools) for request in islice(snapshot.requests.values(), SAMPLE)]
    pools = sum(some) / max(1, len(some))
    return len(snapshot.requests) * (PER_REQUEST_S + PER_POOL_S * pools)


def _can_be_numbered(snapshot: Snapshot) -> bool:
    return all(0 < r.duration < LONGEST and r.nodes > 0 for r in snapshot.requests.values())
