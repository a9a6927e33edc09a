"""Pools for planning: their manifests, existing nodes, and when each node serves no request. Pure.

Held by tests/cases/reconciler/maintenance.yaml:
  * a node in a window serves no request, whether the window names the cluster, its pool or the node;
  * a node of a reserved pool serves requests only within its reservations;
  * as time passes nothing in a calendar moves: times that come into range were closed before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from reconciler.model.facts import IN_SERVICE, Facts, NodeKey, Wanted
from scheduler.calendars.elastic import AHEAD_S, grown, placeholders
from scheduler.snapshot import FOREVER, Lease, Pool, PoolKey, Window
from schemas.documents.cluster import ClusterSpec
from schemas.documents.elastic import Reserved
from schemas.documents.maintenance import Maintenance
from schemas.documents.pool import Pool as PoolSpec
from schemas.reading.units import seconds
from schemas.status.gpr_status import Assignment
from schemas.status.inventory import PoolScale
from schemas.status.node_status import NodeRecord

ALWAYS = (Window(0, FOREVER),)
SIGHT_S = int(timedelta(days=365).total_seconds())
"""Recurring windows are expanded this far ahead at least: no plan reaches farther, and every window costs."""
STRIDE_S = int(timedelta(days=90).total_seconds())
"""The expanded range grows in such steps, so that calendars stay the same for months."""


def manifest_pools(clusters: Mapping[str, ClusterSpec]) -> dict[PoolKey, Pool]:
    """Pools as in the manifests: all nodes healthy and present, no maintenance (see `pools_at`)."""
    return {
        (name, pool.name): Pool(
            key=(name, pool.name),
            gpu_shape=pool.gpu_shape,
            gpus_per_node=pool.gpus_per_node,
            memory_per_gpu=pool.memory_per_gpu,
            nodes=_largest(pool),
            prepare=int(spec.prepare.total_seconds()),
            drain=int(spec.drain.total_seconds()),
            rdma=pool.rdma,
            secondary_network=pool.secondary_network,
            instance_type=pool.instance_type,
            price_per_gpu_hour=(
                spec.price_per_gpu_hour if pool.price_per_gpu_hour is None else pool.price_per_gpu_hour
            ),
            observed=spec.mode == "observe",
            discovered=pool.discovered and pool.elastic is None,
        )
        for name, spec in clusters.items()
        for pool in spec.pools
    }


def _largest(pool: PoolSpec) -> tuple[str, ...]:
    """Its nodes; for an elastic pool also those it could have."""
    names = pool.node_names()
    return names if pool.elastic is None else (*names, *placeholders(pool.elastic.max - len(names)))


def pools_at(wanted: Wanted, facts: Facts) -> dict[PoolKey, Pool]:
    """Every pool at `facts.at`: leaving and coming nodes, maintenance, health, whether it is open."""
    now, found = seconds(facts.at), {}
    for name, spec in wanted.clusters.items():
        reach = facts.clusters.get(name)
        for item in spec.pools:
            pool = wanted.pools.get((name, item.name))
            if pool is not None:
                pool = _grown(pool, item, facts.scales.get(pool.key), now)
                pool = replace(pool, windows=calendars(spec, item, pool.nodes, now))
                found[pool.key] = _with_health(pool, facts.nodes, reach is None or reach.reachable)
    return {key: found[key] for key in wanted.pools if key in found}


def _grown(pool: Pool, item: PoolSpec, scale: PoolScale | None, now: int) -> Pool:
    if item.elastic is None:
        return pool
    return grown(pool, item.node_names(), item.elastic, scale, now)


def calendars(
    spec: ClusterSpec, pool: PoolSpec, names: Sequence[str], now: int
) -> dict[str, tuple[Window, ...]]:
    """When each node is in maintenance or not reserved from `now` on, sorted and disjoint; others are absent."""
    if not (spec.maintenance or pool.reserved):
        return {}
    whole: list[Window] = []
    single: dict[str, list[Window]] = {}
    for item in spec.maintenance:
        windows = [*occurrences(item, now)]
        if pool.name in item.pools or not (item.pools or item.nodes):
            whole += windows
        else:
            for node in item.nodes:
                single.setdefault(node, []).extend(windows)
    # One object for all nodes of a group: most nodes of a pool share their calendar.
    found: dict[str, tuple[Window, ...]] = {}
    for nodes, away in _unreserved(pool, names, now):
        shared = merged([*whole, *away])
        found |= dict.fromkeys(nodes, shared) if shared else {}
    for node in names:
        if single.get(node):
            found[node] = merged([*found.get(node, ()), *single[node]])
    return found


def _unreserved(
    pool: PoolSpec, names: Sequence[str], now: int
) -> Iterator[tuple[Sequence[str], list[Window]]]:
    """Nodes that share their reservations, and when they have none."""
    steps = sorted(
        {len(names), *(r.nodes for r in pool.reserved if r.nodes is not None and r.nodes < len(names))}
    )
    for first, last in pairwise([0, *steps]):
        held = [item for item in pool.reserved if item.nodes is None or item.nodes >= last]
        yield names[first:last], _between(held, _arrival(pool), now) if pool.reserved else []


def unreserved(
    clusters: Mapping[str, ClusterSpec], pools: Iterable[Pool], now: int
) -> dict[NodeKey, tuple[Window, ...]]:
    """When nodes of reserved pools do not exist, from `now` on, whatever their maintenance."""
    found: dict[NodeKey, tuple[Window, ...]] = {}
    reserved = {
        (name, item.name): item for name, spec in clusters.items() for item in spec.pools if item.reserved
    }
    for pool in pools:
        if pool.key in reserved:
            for nodes, away in _unreserved(reserved[pool.key], pool.nodes, now):
                found |= dict.fromkeys(((pool.key[0], node) for node in nodes), tuple(away))
    return found


def is_within(window: Window, away: Iterable[Window]) -> bool:
    """Whether a window of a calendar has one of these in it: those that overlap or touch were merged."""
    return any(window.begin <= one.begin and one.end <= window.end for one in away)


def _between(held: Iterable[Reserved], arrival: int, now: int) -> list[Window]:
    """The times before, between and after the reservations that end after `now`."""
    at, found = 0, list[Window]()
    for item in sorted(held, key=lambda item: item.begin):
        found.append(Window(at, seconds(item.begin) + arrival))
        at = seconds(item.end)
    return [window for window in (*found, Window(at, FOREVER)) if window.end > now]


def _arrival(pool: PoolSpec) -> int:
    """How long after a reservation's begin its nodes are usable: those of an elastic pool are requested then."""
    return 0 if pool.elastic is None else int(pool.elastic.scale_up.total_seconds()) + AHEAD_S


def occurrences(item: Maintenance, now: int) -> Iterator[Window]:
    """Its windows that end after `now`; an endless recurrence closes everything beyond the expanded range."""
    begin, end = seconds(item.begin), seconds(item.end)
    if item.every is None:
        if end > now:
            yield Window(begin, end)
        return
    step = int(item.every.total_seconds())
    sight = ((now + SIGHT_S) // STRIDE_S + 1) * STRIDE_S
    until = sight if item.until is None else seconds(item.until)
    first = max(0, (now - end) // step + 1)
    for start in range(begin + first * step, min(until, sight), step):
        yield Window(start, start + end - begin)
    if item.until is None or until > sight:
        yield Window(max(sight, begin), FOREVER)


def merged(windows: Iterable[Window]) -> tuple[Window, ...]:
    """The same time as sorted windows that neither overlap nor touch."""
    found: list[Window] = []
    for window in sorted(windows, key=lambda w: (w.begin, w.end)):
        if found and window.begin <= found[-1].end:
            found[-1] = Window(found[-1].begin, max(found[-1].end, window.end))
        else:
            found.append(window)
    return tuple(found)


def _with_health(pool: Pool, nodes: Mapping[NodeKey, NodeRecord], is_open: bool) -> Pool:
    windows = dict(pool.windows)
    for name in pool.nodes if nodes else ():
        record = nodes.get((pool.key[0], name))
        if record is not None and record.state not in IN_SERVICE:
            windows[name] = ALWAYS
    return replace(pool, windows=windows, open=is_open)


def with_guests(pools: Mapping[PoolKey, Pool], leases: Iterable[Lease]) -> dict[PoolKey, Pool]:
    """Pools in which nodes leased from another pool are busy until that lease ends."""
    found = dict(pools)
    for lease in leases:
        home = pools.get(lease.pool)
        guests = set(lease.nodes).difference(() if home is None else home.nodes)
        for key in pools if guests else ():
            if key[0] == lease.pool[0] and key != lease.pool:
                found[key] = _busy(found[key], guests, Window(0, lease.held_until))
    return found


def _busy(pool: Pool, nodes: Collection[str], window: Window) -> Pool:
    hit = {n: (*pool.windows.get(n, ()), window) for n in pool.nodes if n in nodes}
    return replace(pool, windows={**pool.windows, **hit}) if hit else pool


def home_of(held: Assignment, pools: Mapping[PoolKey, Pool]) -> PoolKey:
    """The present pool of the nodes: since they were assigned, the manifest may have renamed it, or moved them."""
    named = (held.cluster, held.pool)
    others = sorted(key for key in pools if key[0] == held.cluster and key != named)
    keys = (key for key in (named, *others) if key in pools)
    return next((key for key in keys if not set(held.nodes).isdisjoint(pools[key].nodes)), named)
