"""From documents, statuses and node records to the planner's `Snapshot`. Pure.

The same function builds the world as last committed and as it is now, so that what differs between the two is what
happened, and every cause of a slip can be tried by undoing it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.conditions import clean_by, lease_duration
from reconciler.facts import IN_SERVICE, Facts, NodeKey, Seen, Wanted
from scheduler.fit import limit_violations, usable_pools
from scheduler.rank import Rank, overtaking, rank
from scheduler.snapshot import FOREVER, Lease, Pool, PoolKey, Promise, Request, Snapshot, Window
from schemas.cluster import ClusterSpec
from schemas.status import Assignment, GPRStatus, NodeRecord, NodeState, Phase
from schemas.units import seconds

ALWAYS = (Window(0, FOREVER),)


def manifest_pools(clusters: Mapping[str, ClusterSpec]) -> dict[PoolKey, Pool]:
    """Pools as the manifests describe them: all nodes sound, maintenance as windows."""
    return {
        (name, pool.name): Pool(
            key=(name, pool.name),
            gpu_shape=pool.gpu_shape,
            gpus_per_node=pool.gpus_per_node,
            memory_per_gpu=pool.memory_per_gpu,
            nodes=pool.node_names(),
            prepare=int(spec.prepare.total_seconds()),
            drain=int(spec.drain.total_seconds()),
            rdma=pool.rdma,
            secondary_network=pool.secondary_network,
            instance_type=pool.instance_type,
            price_per_gpu_hour=(
                spec.price_per_gpu_hour if pool.price_per_gpu_hour is None else pool.price_per_gpu_hour
            ),
            observed=spec.mode == "observe",
            discovered=pool.discovered,
            windows=_maintenance(spec, pool.name, pool.node_names()),
        )
        for name, spec in clusters.items()
        for pool in spec.pools
    }


def _maintenance(spec: ClusterSpec, pool: str, names: tuple[str, ...]) -> dict[str, tuple[Window, ...]]:
    windows: dict[str, tuple[Window, ...]] = {}
    for item in spec.maintenance:
        window = Window(seconds(item.begin), seconds(item.end))
        hit = names if pool in item.pools else tuple(n for n in names if n in item.nodes)
        for node in hit:
            windows[node] = (*windows.get(node, ()), window)
    return windows


def build_snapshot(
    wanted: Wanted, facts: Facts, seen: Seen | None, anew: Collection[str] | None = None
) -> Snapshot:
    """The planner's world at `facts.at`; `seen` None: as committed, with no look at workloads.

    `anew` are the requests that take a place now (see `asked_anew`): no promise binds them, and only they may push
    others aside; None: everyone without a promise may.
    """
    pools = {
        key: _with_health(
            pool, facts.nodes, facts.clusters.get(key[0], None) is None or facts.clusters[key[0]].reachable
        )
        for key, pool in wanted.pools.items()
    }
    leases = {
        key: lease
        for key, status in facts.requests.items()
        if (lease := lease_of(key, status, wanted, facts)) is not None
    }
    pools = _with_guests(pools, leases.values())
    ready = slices_with_waiting_pods(seen)
    requests = {
        key: request
        for key, status in facts.requests.items()
        if (request := _request(key, status, wanted, ready)) is not None
    }
    if anew is not None:
        requests = {key: _as_asked(request, key in anew) for key, request in requests.items()}
    return Snapshot(now=seconds(facts.at), pools=pools, leases=leases, requests=requests)


def asked_anew(before: Facts, after: Facts) -> frozenset[str]:
    """Who waits in `after` and took the place since `before`: filed, approved, requeued, asking for more, or let past.

    A move by an admin is a re-reading of the rank: whoever is ahead of somebody because of it plans anew.
    """
    return let_past(before, after) | frozenset(
        key
        for key, status in after.requests.items()
        if status.phase is Phase.QUEUED
        and (
            (old := before.requests.get(key)) is None
            or old.phase is not Phase.QUEUED
            or old.filed_at != status.filed_at
        )
    )


def moved(before: Facts, after: Facts) -> frozenset[str]:
    """Requests that waited and wait, and that an admin moved among those of their priority."""
    return frozenset(
        key
        for key, status in after.requests.items()
        if (old := before.requests.get(key)) is not None
        and old is not status  # most are untouched
        and old.accepted_spec.move != status.accepted_spec.move
        and _keeps_place(old, status)
    )


def let_past(before: Facts, after: Facts) -> frozenset[str]:
    """Who is ahead of somebody because an admin moved one of the two."""
    if not moved(before, after):
        return frozenset()
    waiting = {
        key: (old, status)
        for key, status in after.requests.items()
        if (old := before.requests.get(key)) is not None and _keeps_place(old, status)
    }
    ranks = [{key: _rank(key, pair[i]) for key, pair in waiting.items()} for i in (0, 1)]
    return overtaking(*ranks)


def _keeps_place(old: GPRStatus, new: GPRStatus) -> bool:
    """Whether it waited and waits, and nothing but a move can have changed its place."""
    return (
        old.phase is Phase.QUEUED
        and new.phase is Phase.QUEUED
        and old.filed_at == new.filed_at
        and old.accepted_spec.priority == new.accepted_spec.priority
    )


def _rank(key: str, status: GPRStatus) -> Rank:
    return rank(status.accepted_spec.priority, status.accepted_spec.move, seconds(status.filed_at), key)


def _as_asked(request: Request, anew: bool) -> Request:
    if anew:
        return replace(request, promise=None, may_displace=True)
    return replace(request, may_displace=request.promise is not None)


def _with_health(pool: Pool, nodes: Mapping[NodeKey, NodeRecord], is_open: bool) -> Pool:
    windows = dict(pool.windows)
    for name in pool.nodes:
        record = nodes.get((pool.key[0], name))
        if record is not None and record.state not in IN_SERVICE:
            windows[name] = ALWAYS
    return replace(pool, windows=windows, open=is_open)


def _with_guests(pools: Mapping[PoolKey, Pool], leases: Iterable[Lease]) -> dict[PoolKey, Pool]:
    """Pools in which nodes that came from another pool under a lease are busy until that lease lets them go."""
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
    """The pool in which the nodes are now: the manifest may have renamed it, or moved them, since they were decided."""
    named = (held.cluster, held.pool)
    others = sorted(key for key in pools if key[0] == held.cluster and key != named)
    keys = (key for key in (named, *others) if key in pools)
    return next((key for key in keys if not set(held.nodes).isdisjoint(pools[key].nodes)), named)


def lease_of(key: str, status: GPRStatus, wanted: Wanted, facts: Facts) -> Lease | None:
    """The nodes a request holds; those of a lease that is over count until they are clean or overdue."""
    held = status.assignment
    start = status.start_time or status.estimated_start_time
    end = status.end_time or status.estimated_end_time
    if held is None or start is None or end is None or status.held_from is None:
        return None
    spec = wanted.clusters.get(held.cluster)
    nodes, drain = held.nodes, 0 if spec is None else int(spec.drain.total_seconds())
    held_until = seconds(end) + drain
    if status.phase is Phase.RELEASING:
        clean = {c.node for c in status.checks if c.stage == "post"}
        nodes = tuple(n for n in nodes if n not in clean and not _is_dirty(facts, held.cluster, n))
        due = clean_by(status, timedelta(seconds=drain))
        held_until = max(held_until, seconds(due or end), seconds(facts.at) + 1)
    elif status.phase not in {Phase.PROVISIONING, Phase.PROVISIONED}:
        return None
    return Lease(
        key=key,
        slice=status.accepted_spec.slice,
        pool=home_of(held, wanted.pools),
        nodes=nodes,
        held_from=seconds(status.held_from),
        start=min(seconds(start), seconds(end)),
        end=seconds(end),
        held_until=held_until,
    )


def _is_dirty(facts: Facts, cluster: str, node: str) -> bool:
    record = facts.nodes.get((cluster, node))
    return record is not None and record.state is NodeState.DIRTY


def _request(key: str, status: GPRStatus, wanted: Wanted, ready: frozenset[str] | None) -> Request | None:
    spec = status.accepted_spec
    slice_ = wanted.slices.get(spec.slice)
    if status.phase is not Phase.QUEUED or slice_ is None or limit_violations(spec, slice_):
        return None
    limit = status.approval.limit if status.approval is not None else None
    pools = usable_pools(spec, slice_, wanted.project, wanted.pools, limit)
    managed = tuple(p for p in pools if not wanted.pools[p].observed)
    promise = promise_of(status) if managed else None
    waits = spec.start == "promised" or (
        spec.start == "ready" and ready is not None and spec.slice not in ready
    )
    return Request(
        key=key,
        slice=spec.slice,
        nodes=spec.nodes,
        duration=int(lease_duration(status).total_seconds()),
        pools=managed or pools,
        priority=spec.priority,
        move=spec.move,
        filed_at=seconds(status.filed_at),
        not_before=0 if spec.not_before is None else seconds(spec.not_before),
        promise=promise,
        movable=not waits,
    )


def promise_of(status: GPRStatus) -> Promise | None:
    """The committed start of a waiting request."""
    start, cluster, pool = (
        status.estimated_start_time,
        status.estimated_cluster,
        status.estimated_pool,
    )
    if start is None or cluster is None or pool is None:
        return None
    return Promise(pool=(cluster, pool), start=seconds(start), bound=status.bound_nodes)


def slices_with_waiting_pods(seen: Seen | None) -> frozenset[str] | None:
    """Slices in which a GPU workload is pending; None when nobody looked."""
    if seen is None:
        return None
    return frozenset(
        w.slice for view in seen.views.values() for w in view.workloads if w.gpus > 0 and w.phase == "Pending"
    )


def leased_nodes(facts: Facts) -> dict[NodeKey, str]:
    """Which request (by uid) each node belongs to, as committed."""
    return {
        (status.assignment.cluster, node): status.uid
        for status in facts.requests.values()
        if status.assignment is not None
        and status.phase in {Phase.PROVISIONING, Phase.PROVISIONED, Phase.RELEASING}
        for node in status.assignment.nodes
    }


def stray_nodes(facts: Facts, seen: Seen) -> frozenset[NodeKey]:
    """Nodes that a cluster shows with a lease nobody has: not clean, whatever the reason."""
    holders = leased_nodes(facts)
    return frozenset(
        (cluster, node.name)
        for cluster, view in seen.views.items()
        for node in view.nodes.values()
        if node.lease is not None and holders.get((cluster, node.name)) != node.lease.uid
    )


def at(facts: Facts, now: datetime) -> Facts:
    """The same facts at another instant."""
    return replace(facts, at=now)
