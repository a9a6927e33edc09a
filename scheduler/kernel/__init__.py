"""A compiled engine for large queues: the same plans as the plain one, a hundred times faster.

It is a small library in C that comes in the wheel (`scheduler.kernel.library`); where there is none, all queues are
planned with the plain engine.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from scheduler.kernel.library import load
from scheduler.snapshot import Plan, Snapshot

PER_REQUEST_S, PER_POOL_S = 40e-6, 10e-6
"""Least time of the plain engine per request, and per pool that it may use (docs/explain/benchmarks.md)."""
PAYS_S = 0.01
"""The compiled engine makes plans that take the plain one longer than this. For shorter plans it would cost as much to
prepare the arrays as it saves."""
LONGEST = 1 << 40
"""Longest duration in seconds for which sums fit 64 bits."""

SAMPLE = 64
"""Requests whose pools are counted to estimate the total."""


def engine_for(snapshot: Snapshot) -> Callable[[Snapshot], Plan] | None:
    """The compiled engine, if this snapshot is worth it and can be converted; None: use the plain engine."""
    if plain_seconds(snapshot) < PAYS_S or not _can_be_numbered(snapshot) or load() is None:
        return None
    from scheduler.kernel.engine import planned

    return planned


def plain_seconds(snapshot: Snapshot) -> float:
    """Approximate lower bound of the plain engine's time."""
    some = [len(request.pools) for request in islice(snapshot.requests.values(), SAMPLE)]
    pools = sum(some) / max(1, len(some))
    return len(snapshot.requests) * (PER_REQUEST_S + PER_POOL_S * pools)


def _can_be_numbered(snapshot: Snapshot) -> bool:
    return all(0 < r.duration < LONGEST and r.nodes > 0 for r in snapshot.requests.values())
