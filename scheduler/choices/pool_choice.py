"""Which of the pools that a request may use serve it, in which order, and which only after a long wait. Pure.

A request may prefer the lowest price or the least sufficient memory; clusters marked burst come last, and only if no
other pool gives a start in time. The promised pool stays available, so that a changed choice moves no request later.
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
"""By cluster: clusters that are used only when the wait elsewhere is too long."""


@dataclass(frozen=True, slots=True)
class Choosing:
    """Inputs of a choice: the request's terms, since when it waits, its promise, and its remaining duration."""

    spec: RequestSpec
    since: int
    promise: Promise | None = None
    duration: timedelta | None = None  # None: the whole duration


@dataclass(frozen=True, slots=True)
class Choice:
    """As `Request.pools` and `Request.fallback`."""

    pools: tuple[PoolKey, ...]
    fallback: Mapping[PoolKey, int] = field(default_factory=dict)


def choice(asks: Choosing, usable: tuple[PoolKey, ...], pools: Pools, bursts: Bursts) -> Choice:
    """The pools among `usable` (see `scheduler.choices.fit`) that serve the request, in order of preference.

    A burst cluster is held back until its wait is over; if no other cluster fits, it is used at once.
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
    """The pool that serves a request with this choice and these earliest starts; None: none."""
    best: PoolKey | None = None
    for since in sorted({-FOREVER, *chosen.fallback.values()}):
        if best is not None and starts[best] <= since:
            break
        group = [key for key in chosen.pools if key in starts and chosen.fallback.get(key, -FOREVER) <= since]
        best = min(group, key=lambda key: (starts[key], chosen.pools.index(key)), default=None)
    return best


def is_timely(start: int, since: int, burst: Burst) -> bool:
    """Whether a start elsewhere is early enough not to use that cluster."""
    return start <= since + int(burst.after.total_seconds())


def is_short(duration: timedelta, burst: Burst) -> bool:
    """Whether that cluster accepts requests of this duration."""
    return burst.max_duration is None or duration <= burst.max_duration


def _preferred(asks: Choosing, keys: tuple[PoolKey, ...], pools: Pools) -> Choice:
    """The cheapest, or those with least memory, first; the others after the request's maxWait."""
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
    """Price of one node per hour: all its GPUs are paid."""
    return pool.price_per_gpu_hour * pool.gpus_per_node


def _memory(pool: Pool) -> float:
    return float(pool.memory_per_gpu)


_VALUES: Mapping[str, Callable[[Pool], float]] = {"price": _price, "memory": _memory}
"""The value to minimise, by the request's preference."""


def _can_ever_hold(asks: Choosing, pool: Pool) -> bool:
    def is_out(window: Window) -> bool:  # a window that begins later is maintenance in the far future
        return window.begin <= asks.since and window.end >= FOREVER

    out = sum(any(map(is_out, windows)) for windows in pool.windows.values())
    return len(pool.nodes) - out >= asks.spec.nodes
