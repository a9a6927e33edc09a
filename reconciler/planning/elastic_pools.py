"""Target sizes of elastic pools: which nodes arrived or left, and what to request or let go next. Pure.

Sizes are facts: they are committed before a cluster gets them, and a cluster with another size gets them again.
`scheduler.calendars.elastic` says what the plan needs when. Held by tests/cases/reconciler/model/pools.yaml:
  * a node that serves a request, or that a promise is bound to, is never let go;
  * unrequested nodes are kept until they are let go like any other: no size is set because of them;
  * a pool stays between its minimum and its maximum;
  * nodes that do not arrive move promises with a true cause, and are reported once per pool for each vain wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Facts, Seen, Wanted
from reconciler.model.statuses import live
from scheduler.calendars.elastic import Sizes, existing, expected, is_placeholder, sizes
from scheduler.causes.changes import Known, pool_key
from scheduler.snapshot import ChangeKind, Plan, Pool, PoolKey, Snapshot
from schemas.documents.elastic import Elastic
from schemas.documents.pool import Pool as PoolSpec
from schemas.reading.units import seconds
from schemas.status.gpr_status import Cause
from schemas.status.inventory import Ask, PoolScale


@dataclass(frozen=True, slots=True)
class Came:
    """The current sizes, events, and the pools whose nodes did not arrive in time."""

    scales: Mapping[PoolKey, PoolScale]
    events: tuple[Event, ...] = ()
    late: frozenset[PoolKey] = frozenset()


def elastic_pools(wanted: Wanted) -> dict[PoolKey, PoolSpec]:
    return {
        (name, pool.name): pool
        for name, spec in wanted.clusters.items()
        if spec.mode == "manage"
        for pool in spec.pools
        if pool.elastic is not None
    }


def came(facts: Facts, wanted: Wanted, seen: Seen, now: datetime) -> Came:
    """The outcome of earlier scaling requests; for an unreachable cluster nothing changes."""
    scales: dict[PoolKey, PoolScale] = {}
    events: list[Event] = []
    late: set[PoolKey] = set()
    for key, pool in sorted(elastic_pools(wanted).items()):
        view, terms, scale = seen.views.get(key[0]), pool.elastic, facts.scales.get(key)
        assert terms is not None
        if view is None:
            scales |= {} if scale is None else {key: scale}
            continue
        if scale is None:
            size = view.sizes.get(pool.name, pool.size)
            scale = PoolScale(wanted=min(max(size, terms.min), terms.max))
        after, waited = _late(_after(scale, pool.node_names(), now), terms, now)
        scales[key] = after
        if waited:
            late.add(key)
        if _latest(after) > _latest(scale):
            events.append(_told_late(key, after, now))
    return Came(scales, tuple(events), frozenset(late))


def _after(scale: PoolScale, names: tuple[str, ...], now: datetime) -> PoolScale:
    """Adjusted for nodes that came or left; one that left by itself counts as requested again.

    Surplus nodes count as wanted: letting them go is decided and reported first.
    """
    leaving = tuple(name for name in scale.leaving if name in names)
    if len(names) <= scale.wanted:
        leaving = ()  # other nodes left instead, or as many were requested again
    stay = len(names) - len(leaving)
    wanted, coming = max(scale.wanted, stay), max(0, scale.wanted - stay)
    asks: list[Ask] = []
    for ask in reversed(scale.asks):  # the earliest request is assumed to be served first
        nodes = min(ask.nodes, coming)
        coming -= nodes
        asks += [ask.edited(nodes=nodes)] if nodes else []
    fresh = [Ask(at=now, nodes=coming)] if coming else []
    asks = [*reversed(asks), *fresh]
    return scale.edited(wanted=wanted, leaving=leaving, asks=tuple(asks))


def _late(scale: PoolScale, terms: Elastic, now: datetime) -> tuple[PoolScale, bool]:
    """Overdue nodes are expected later; also returns whether there are any."""
    waits = int(terms.scale_up.total_seconds())
    asks = tuple(ask.edited(late=_times_late(ask, waits, now)) for ask in scale.asks)
    return scale.edited(asks=asks), asks != scale.asks


def _times_late(ask: Ask, waits: int, now: datetime) -> int:
    late = ask.late
    while expected(seconds(ask.at), late, waits) <= seconds(now):
        if expected(seconds(ask.at), late + 1, waits) == expected(seconds(ask.at), late, waits):
            break  # a point beyond which longer steps are useless
        late += 1
    return late


def _latest(scale: PoolScale) -> int:
    """The highest number of vain waits of its requests: reported when it rises, not for each request."""
    return max((ask.late for ask in scale.asks), default=0)


def _told_late(key: PoolKey, scale: PoolScale, now: datetime) -> Event:
    nodes, coming = (sum(ask.nodes for ask in scale.asks if ask.late >= late) for late in (1, 0))
    so_many = f"{nodes} of {coming}" if coming > nodes else str(nodes)
    text = (
        f"{so_many} nodes requested for {key[0]}/{key[1]} did not arrive in time; check its autoscaler, its "
        "quota, and whether the provider has such machines available"
    )
    return Event(now, EventReason.NODES_LATE, text, "", key[0])


def known_causes(
    before: Snapshot | None, world: Snapshot, late: frozenset[PoolKey]
) -> Iterator[tuple[tuple[ChangeKind, str], Known]]:
    """Why elastic pools have less free capacity than before, if the only reason is time or late nodes."""
    for key, pool in world.pools.items():
        old = None if before is None else before.pools.get(key)
        if key in late:
            yield (ChangeKind.POOL, pool_key(key)), Known(Cause.NODE_LOST, pool_key(key))
        elif before is not None and old is not None and _only_later(old, pool, world.now - before.now):
            yield (ChangeKind.POOL, pool_key(key)), Known(Cause.CONTROLLER_ABSENT, "controller")


def _only_later(old: Pool, pool: Pool, passed: int) -> bool:
    """True if unrequested nodes have only moved into the future with the clock."""
    terms = replace(old, nodes=(), windows={}, withheld=(), open=pool.open)
    if not any(map(is_placeholder, pool.nodes)) or terms != replace(pool, nodes=(), windows={}, withheld=()):
        return False
    ends = {kept.end + passed for kept in old.withheld} | {kept.end for kept in old.withheld}
    return all(kept.end in ends for kept in pool.withheld)


def rescaled(facts: Facts, world: Snapshot, planned: Plan, wanted: Wanted) -> tuple[Facts, tuple[Event, ...]]:
    """The facts with the nodes to request and to let go now, and the events."""
    pools = {
        key: pool
        for key, pool in elastic_pools(wanted).items()
        if key in facts.scales and key in world.pools and world.pools[key].open
    }
    if not pools:
        return facts, ()
    terms = {key: pool.elastic for key, pool in pools.items() if pool.elastic is not None}
    needed, taken = sizes(world, planned, terms), _taken(facts, planned)
    scales, events = dict(facts.scales), list[Event]()
    for key in sorted(pools):
        scale = _scaled(key, (world.pools[key], terms[key], needed[key]), facts, taken)
        if scale != scales[key]:
            events.append(_told(key, scales[key], scale, facts.at))
            scales[key] = scale
    return (replace(facts, scales=scales), tuple(events)) if events else (facts, ())


def _taken(facts: Facts, planned: Plan) -> frozenset[tuple[str, str]]:
    """Nodes, by cluster, that requests hold or that their promises are bound to."""
    held = {
        (status.assignment.cluster, node)
        for status in live(facts.requests).values()
        if status.assignment is not None and status.released_at is None
        for node in status.assignment.nodes
    }
    return frozenset(held | {(p.pool[0], node) for p in planned.placements.values() for node in p.bound})


def _scaled(
    key: PoolKey,
    of: tuple[Pool, Elastic, Sizes],
    facts: Facts,
    taken: frozenset[tuple[str, str]],
) -> PoolScale:
    pool, terms, needed = of
    scale, there = facts.scales[key], existing(pool)
    sound = _usual(pool)
    # A node that is out of service or has its own maintenance does not count: another one must replace it.
    odd = sum(pool.windows.get(name, ()) != sound and (key[0], name) not in taken for name in there)
    least, most = (min(size + odd, terms.max) for size in (needed.least, needed.most))
    if least > scale.wanted:
        missing = least - len(there) - sum(ask.nodes for ask in scale.asks)
        fresh = (Ask(at=facts.at, nodes=missing),) if missing > 0 else ()
        return scale.edited(wanted=least, asks=(*scale.asks, *fresh))
    if most >= scale.wanted:
        return scale
    idle = [name for name in there if (key[0], name) not in taken and pool.windows.get(name, ()) == sound]
    idle.sort(key=lambda name: -len(facts.faults.get((key[0], name), ())))
    leaving = idle[: max(0, len(there) - most)]
    size = max(most, len(there) - len(leaving))
    if size >= scale.wanted:
        return scale
    asks = _newest_dropped(scale.asks, size - len(there))
    return scale.edited(wanted=size, asks=asks, leaving=(*scale.leaving, *leaving))


def _usual(pool: Pool) -> tuple[object, ...]:
    """The most common calendar of the pool's nodes; new nodes get it too."""
    counted: dict[tuple[object, ...], int] = {}
    for name in pool.nodes:
        windows = pool.windows.get(name, ())
        counted[windows] = counted.get(windows, 0) + 1 + len(pool.nodes) * is_placeholder(name)
    return max(counted, key=lambda windows: counted[windows], default=())


def _newest_dropped(asks: tuple[Ask, ...], kept: int) -> tuple[Ask, ...]:
    """The oldest requests, up to `kept` nodes together."""
    found = []
    for ask in asks:
        nodes = min(ask.nodes, max(0, kept))
        kept -= nodes
        found += [ask.edited(nodes=nodes)] if nodes else []
    return tuple(found)


def _told(key: PoolKey, old: PoolScale, new: PoolScale, at: datetime) -> Event:
    where = f"{key[0]}/{key[1]}"
    if new.wanted > old.wanted:
        text = f"{where} grows by {new.wanted - old.wanted} to {new.wanted} nodes"
        return Event(at, EventReason.POOL_GROWS, text, "", key[0])
    names = ", ".join(sorted(set(new.leaving) - set(old.leaving)))
    text = f"{where} may shrink from {old.wanted} to {new.wanted} nodes" + (f": {names}" if names else "")
    return Event(at, EventReason.POOL_SHRINKS, text, "", key[0])
