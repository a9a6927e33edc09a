"""How many nodes of each shape are free in each coming hour: as planned, and if requests end when they likely do. Pure.

A node counts as free in an hour if nothing needs it for any part of that hour. The likely figures are those of a second
plan, in which every lease and request is as long as requests of its kind usually are; with too few finished requests
they are unknown.

Held by tests/reconciler/planning/test_free_hours.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median

from reconciler.model.facts import Facts
from reconciler.planning.forecast_inputs import is_enough, lesson
from scheduler.estimates.habits import Drawing, Uses
from scheduler.plan import plan
from scheduler.snapshot import FOREVER, Lease, Plan, Pool, PoolKey, Request, Snapshot

HOUR = 3600
MOST_HOURS = 24 * 14
DRAWINGS = 9
"""Futures whose median is the likely length."""

Span = tuple[int, int, int]
"""[begin, end) in which so many nodes are needed."""


@dataclass(frozen=True, slots=True)
class FreeHour:
    """The nodes of a shape in one hour from `begin`."""

    shape: str
    begin: int
    nodes: int  # that exist or will, and are not out for good
    free: int
    likely: int | None  # None: too few requests have ended


@dataclass(frozen=True, slots=True)
class Needs:
    """Which nodes are needed when, by pool. Costs two plans; serves every question about one world."""

    certain: Mapping[PoolKey, list[Span]]
    usual: Mapping[PoolKey, list[Span]] | None  # None: too few requests have ended


def needs_of(facts: Facts, world: Snapshot, planned: Plan) -> Needs:
    """As planned, and with likely lengths."""
    likely_world = likely(facts, world)
    return Needs(
        _needs(world, planned), None if likely_world is None else _needs(likely_world, plan(likely_world))
    )


def free_hours(world: Snapshot, needs: Needs, hours: int, pools: Iterable[PoolKey]) -> list[FreeHour]:
    """By shape, then by hour; the first hour begins now."""
    chosen = [world.pools[key] for key in sorted(pools)]
    shapes = sorted({pool.gpu_shape for pool in chosen})
    begins = [world.now + number * HOUR for number in range(hours)]
    return [_row(shape, begin, chosen, needs) for shape in shapes for begin in begins]


def _row(shape: str, begin: int, pools: Iterable[Pool], needs: Needs) -> FreeHour:
    own = [pool for pool in pools if pool.gpu_shape == shape]
    return FreeHour(
        shape,
        begin,
        sum(len(set(pool.nodes) - _gone(pool)) for pool in own),
        sum(_free(pool, needs.certain.get(pool.key, []), begin) for pool in own),
        None
        if needs.usual is None
        else sum(_free(pool, needs.usual.get(pool.key, []), begin) for pool in own),
    )


def _gone(pool: Pool) -> set[str]:
    """Nodes that are out for good."""
    return {
        node for node, windows in pool.windows.items() if any(window.end >= FOREVER for window in windows)
    }


def _free(pool: Pool, needs: Iterable[Span], begin: int) -> int:
    """Nodes that nothing needs in any part of the hour."""
    if not pool.open or pool.observed:
        return 0
    end = begin + HOUR
    out = sum(
        any(window.begin < end and begin < window.end for window in windows)
        for windows in pool.windows.values()
    )
    spans = [span for span in needs if span[0] < end and begin < span[1]]
    withheld = [
        (one.begin, one.end, one.nodes) for one in pool.withheld if one.begin < end and begin < one.end
    ]
    return max(0, len(pool.nodes) - out - _most([*spans, *withheld]))


def _most(spans: list[Span]) -> int:
    """The most nodes that are needed at the same time."""
    steps = sorted(
        (at, change) for begin, end, count in spans for at, change in ((begin, count), (end, -count))
    )
    most = level = 0
    for _, change in steps:
        level += change
        most = max(most, level)
    return most


def _needs(world: Snapshot, planned: Plan) -> dict[PoolKey, list[Span]]:
    found: dict[PoolKey, list[Span]] = {}
    for pool, span in (*_leases(world), *_placements(world, planned)):
        found.setdefault(pool, []).append(span)
    return found


def _leases(world: Snapshot) -> Iterator[tuple[PoolKey, Span]]:
    """A leased node that is out for good is counted once: as out."""
    for lease in world.leases.values():
        pool = world.pools.get(lease.pool)
        if pool is not None:
            held = len(set(lease.nodes) - _gone(pool))
            yield lease.pool, (lease.held_from, lease.held_until, held)


def _placements(world: Snapshot, planned: Plan) -> Iterator[tuple[PoolKey, Span]]:
    for key, place in planned.placements.items():
        request, pool = world.requests.get(key), world.pools[place.pool]
        if request is not None:
            yield place.pool, (place.start - pool.prepare, place.end + pool.drain, request.nodes)


# -- likely ends -------------------------------------------------------------------------------------------------------


def likely(facts: Facts, world: Snapshot) -> Snapshot | None:
    """The same world with usual lengths; None: too few requests have ended."""
    if not is_enough(facts):
        return None
    uses = Uses(lesson(facts, world).learnt.past.released)
    draws = [uses.drawn(float(number)) for number in range(DRAWINGS)]
    leases = {key: _usual_lease(world, key, draws) for key in world.leases}
    requests = {key: _usual_request(world, key, draws) for key in world.requests}
    return replace(world, leases=leases, requests=requests)


def _share(draws: list[Drawing], kind: tuple[str, str, int], after: float) -> float:
    """The share of its time that such a request usually uses, above what it has used."""
    return median(draw(kind, after, (number + 0.5) / len(draws)) for number, draw in enumerate(draws))


def _usual_lease(world: Snapshot, key: str, draws: list[Drawing]) -> Lease:
    lease = world.leases[key]
    pool = world.pools.get(lease.pool)
    length = lease.end - lease.start
    if pool is None or length <= 0 or world.now >= lease.end:
        return lease
    used = max(0.0, (world.now - lease.start) / length)
    share = _share(draws, (lease.slice, pool.gpu_shape, length), used)
    end = max(world.now + 1, lease.start + int(share * length))
    return replace(
        lease, end=min(end, lease.end), held_until=lease.held_until - lease.end + min(end, lease.end)
    )


def _usual_request(world: Snapshot, key: str, draws: list[Drawing]) -> Request:
    request = world.requests[key]
    pool = next((world.pools[name] for name in request.pools if name in world.pools), None)
    if pool is None:
        return request
    share = _share(draws, (request.slice, pool.gpu_shape, request.duration), 0.0)
    return replace(request, duration=max(60, int(share * request.duration)))
