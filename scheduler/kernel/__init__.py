"""A compiled engine for large queues: the same plans as the plain one, a hundred times faster.

numba is imported only for a queue that is worth it: loading takes half a second, and compiling (once per machine) a
minute. A long-running process calls `warm` at an idle moment; `python -m scheduler.kernel` fills the cache of a
machine or an image.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import islice

from scheduler.kernel import cache
from scheduler.snapshot import Plan, Snapshot

PER_REQUEST_S, PER_POOL_S = 40e-6, 10e-6
"""Least time of the plain engine per request, and per pool that it may use (docs/explain/benchmarks.md)."""
PAYS_S = 0.01
"""Once loaded, the compiled engine makes plans that take the plain one longer than this. For shorter plans it would
cost as much to prepare the arrays as it saves."""
LOADING_S = 0.5
"""If it is cached on disk, it is loaded for a plan that takes the plain engine longer than this."""
COMPILING_S = 75.0
"""If it must be compiled first, it is compiled for a plan that takes the plain engine longer than this."""
LONGEST = 1 << 40
"""Longest duration in seconds for which sums fit 64 bits."""

SAMPLE = 64
"""Requests whose pools are counted to estimate the total."""

_lock = threading.Lock()
_loaded: list[Callable[[Snapshot], Plan]] = []


def engine_for(snapshot: Snapshot) -> Callable[[Snapshot], Plan] | None:
    """The compiled engine, if this snapshot is worth it and can be converted; None: use the plain engine."""
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
    """Load the compiled engine, compiling it first if necessary; later plans use it.

    Takes half a second, or a minute. Safe in any thread, but compiling blocks the others; run
    `python -m scheduler.kernel` in a process of its own before to avoid that.
    """
    with _lock:
        if not _loaded:
            from scheduler.kernel.warm_up import warmed

            _loaded.append(warmed())
            cache.keep()
    return _loaded[0]


def plain_seconds(snapshot: Snapshot) -> float:
    """Approximate lower bound of the plain engine's time."""
    some = [len(request.pools) for request in islice(snapshot.requests.values(), SAMPLE)]
    pools = sum(some) / max(1, len(some))
    return len(snapshot.requests) * (PER_REQUEST_S + PER_POOL_S * pools)


def _can_be_numbered(snapshot: Snapshot) -> bool:
    return all(0 < r.duration < LONGEST and r.nodes > 0 for r in snapshot.requests.values())
