"""How many more nodes of a shape bring waits under a target: recent requests, replayed with more nodes. Pure.

Replays use the real planner in simulated time (`scheduler.replay`). The number is found by doubling, then
bisecting: with few exceptions, more nodes mean shorter waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from scheduler.replay.record import Record
from scheduler.replay.simulation import Rules, Simulation
from scheduler.replay.trace import Trace
from scheduler.snapshot import PoolKey

MOST_REPLAYED = 2000
"""The newest requests are replayed, at most this many: one such replay takes seconds."""
FEWEST = 10
"""With fewer requests a p90 is meaningless."""


@dataclass(frozen=True, slots=True)
class Tried:
    """With this many more nodes, 90 % waited at most `p90_s`; None: some never started."""

    nodes: int
    p90_s: int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """`tried` has every replayed number in ascending order; `nodes` None: even the maximum is not enough."""

    requests: int
    pool: PoolKey
    tried: tuple[Tried, ...]
    nodes: int | None


def needed(trace: Trace, shape: str, target_s: int, most: int) -> Answer | None:
    """The fewest nodes to add to the largest pool of the shape; None: too few requests, or no such pool."""
    pools = [key for key, pool in trace.pools.items() if pool.gpu_shape == shape]
    pool = max(pools, key=lambda key: (len(trace.pools[key].nodes), key), default=None)
    recent = replace(trace, arrivals=trace.arrivals[-MOST_REPLAYED:])
    keys = frozenset(a.request.key for a in recent.arrivals if not set(pools).isdisjoint(a.request.pools))
    if pool is None or len(keys) < FEWEST:
        return None
    found: dict[int, Tried] = {}

    def enough(nodes: int) -> bool:
        if nodes not in found:
            found[nodes] = Tried(nodes, p90(_replayed(recent, pool, nodes), keys))
        wait = found[nodes].p90_s
        return wait is not None and wait <= target_s

    nodes = fewest(enough, most)
    return Answer(len(keys), pool, tuple(found[n] for n in sorted(found)), nodes)


def fewest(enough: Callable[[int], bool], most: int) -> int | None:
    """The smallest number from 0 to `most` that is enough, if `enough` is monotonic; None: none is."""
    if enough(0):
        return 0
    low, high = 0, 1
    while not enough(min(high, most)):
        if high >= most:
            return None
        low, high = high, high * 2
    high = min(high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _replayed(trace: Trace, key: PoolKey, nodes: int) -> tuple[Record, ...]:
    pool, more = trace.pools[key], [f"~{number}" for number in range(nodes)]
    pools = {**trace.pools, key: replace(pool, nodes=(*pool.nodes, *more))}
    simulation = Simulation(replace(trace, pools=pools), rules=Rules(trial_work=0))
    for _ in simulation.instants():
        pass
    return simulation.result().records


def p90(records: Iterable[Record], keys: frozenset[str]) -> int | None:
    """The 90th percentile of the waits (nearest rank); None: that request never started."""
    waits = sorted(
        (record.wait if record.wait is not None else 1 << 60) for record in records if record.key in keys
    )
    found = waits[-(-9 * len(waits) // 10) - 1]
    return None if found >= 1 << 60 else found
