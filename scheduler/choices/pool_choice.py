"""Which of the pools that a request may use serve it, in which order, and which only when the wait is long. Pure.

A request may prefer the lowest price or the least memory that is enough; clusters marked burst come last, and only
where all others give no start in time. What a request is promised stays open to it, so that a choice that changes
moves nobody later.

Held by tests/scheduler/choices/test_pool_choice.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from scheduler.choices.fit import Pools
from scheduler.snapshot import FOREVER, Pool, PoolKey, Promise, Window
from schemas.documents.elastic import Burst
from schemas.documents.gpr import RequestSpec

Bursts = Mapping[str, Burst]
"""By cluster: those that are used only when the wait elsewhere is too long."""


@dataclass(frozen=True, slots=True)
class Choosing:
    """What a choice reads of a request: its wish, since when it waits, what it is promised, and what is left of it."""

    spec: RequestSpec
    since: int
    promise: Promise | None = None
    duration: timedelta | None = None  # None: all of it


@dataclass(frozen=True, slots=True)
class Choice:
    """As `Request.pools` and `Request.fallback`."""

    pools: tuple[PoolKey, ...]
    fallback: Mapping[PoolKey, int] = field(default_factory=dict)


def choice(asks: Choosing, usable: tuple[PoolKey, ...], pools: Pools, bursts: Bursts) -> Choice:
    """Of the pools it may use (see `scheduler.choices.fit`), in order of preference, those that serve it.

    A burst cluster holds back until its wait is over; where nothing else fits, or nothing else is asked for, there is
    nothing to wait for.
    """
    own = tuple(key for key in usable if key[0] not in bursts)
    length = asks.spec.duration if asks.duration is None else asks.duration
    away = tuple(key for key in usable if key[0] in bursts and is_short(length, bursts[key[0]]))
    chosen = _preferred(asks, own, pools) if own else _preferred(asks, away, pools)
    if not own:
        return chosen
    held_back = {key: asks.since + int(bursts[key[0]].after.total_seconds()) for key in away}
    return Choice((*chosen.pools, *away), {**chosen.fallback, **held_back})


def served(chosen: Choice, starts: Mapping[PoolKey, int]) -> PoolKey | None:
    """Where a request with this choice goes, when these are its earliest starts in each pool; None: nowhere."""
    best: PoolKey | None = None
    for since in sorted({-FOREVER, *chosen.fallback.values()}):
        if best is not None and starts[best] <= since:
            break
        group = [key for key in chosen.pools if key in starts and chosen.fallback.get(key, -FOREVER) <= since]
        best = min(group, key=lambda key: (starts[key], chosen.pools.index(key)), default=None)
    return best


def is_timely(start: int, since: int, burst: Burst) -> bool:
    """Whether a start elsewhere is early enough for that cluster not to be used."""
    return start <= since + int(burst.after.total_seconds())


def is_short(duration: timedelta, burst: Burst) -> bool:
    """Whether that cluster takes requests so long."""
    return burst.max_duration is None or duration <= burst.max_duration


def _preferred(asks: Choosing, keys: tuple[PoolKey, ...], pools: Pools) -> Choice:
    """The cheapest, or those of least memory, first; the others once the request has waited as long as it would."""
    value = _VALUES.get(asks.spec.prefer)
    if value is None or not keys:
        return Choice(keys)
    able = [key for key in keys if _can_ever_hold(asks, pools[key])] or keys
    best = min(value(pools[key]) for key in able)
    first = tuple(key for key in keys if value(pools[key]) == best)
    rest = tuple(sorted((key for key in keys if key not in first), key=lambda key: value(pools[key])))
    if asks.spec.max_wait is not None:
        since = asks.since + int(asks.spec.max_wait.total_seconds())
        return Choice((*first, *rest), dict.fromkeys(rest, since))
    promise = asks.promise
    if promise is not None and promise.pool in rest:
        return Choice((*first, promise.pool), {promise.pool: promise.start})
    return Choice(first)


def _price(pool: Pool) -> float:
    """Of one node for an hour: all its GPUs are paid."""
    return pool.price_per_gpu_hour * pool.gpus_per_node


def _memory(pool: Pool) -> float:
    return float(pool.memory_per_gpu)


_VALUES: Mapping[str, Callable[[Pool], float]] = {"price": _price, "memory": _memory}
"""What is to be least; by what a request prefers."""


def _can_ever_hold(asks: Choosing, pool: Pool) -> bool:
    def is_out(window: Window) -> bool:  # one that begins later is maintenance far out of sight
        return window.begin <= asks.since and window.end >= FOREVER

    out = sum(any(map(is_out, windows)) for windows in pool.windows.values())
    return len(pool.nodes) - out >= asks.spec.nodes
