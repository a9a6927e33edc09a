"""Which pools can serve a request, whether it needs an admin, and what would fit if no pool can.

Slices already include the project's bounds: `schemas.rules.limits.in_project`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from scheduler.snapshot import Pool, PoolKey
from schemas.documents.approval import ApprovalLimit
from schemas.documents.gpr import RequestSpec
from schemas.documents.project import ProjectSpec
from schemas.documents.slice import SliceSpec
from schemas.rules.fit import ApprovalNeed, approval_needs, needs_there
from schemas.rules.limits import LimitViolation, bounds_nodes, broken, broken_there

Pools = Mapping[PoolKey, Pool]
MOST_GPUS = 1_000_000
"""The largest limit that an approval can state."""
NO_POOLS: Pools = MappingProxyType({})


def candidate_pools(spec: RequestSpec, slice_: SliceSpec, pools: Pools) -> tuple[PoolKey, ...]:
    """Pools whose nodes fit and suffice, or may, in order of preference; closed pools included.

    The order: the request's clusters (else the slice's), its shapes, the smallest node, the order of `pools`.
    """
    clusters = _clusters(spec, slice_)
    bounds, has_bounds = slice_.limits, bounds_nodes(slice_.limits)
    shapes = spec.gpu_shapes
    fitting = [
        (
            clusters.index(key[0]),
            shapes.index(pool.gpu_shape) if shapes else 0,
            pool.gpus_per_node,
            pool.memory_per_gpu,
            place,
            key,
        )
        for place, (key, pool) in enumerate(pools.items())
        if _is_such(spec, clusters, pool) and not (has_bounds and broken_there(spec, bounds, (key[0], pool)))
    ]
    return tuple(key for *_, key in sorted(fitting))


def usable_pools(
    spec: RequestSpec, slice_: SliceSpec, project: ProjectSpec, pools: Pools, approved: ApprovalLimit | None
) -> tuple[PoolKey, ...]:
    """Candidates within what the request may hold: by its approval, or without one."""
    candidates = candidate_pools(spec, slice_, pools)
    if approved is not None:
        if approved.nodes < spec.nodes:
            return ()
        return tuple(key for key in candidates if spec.nodes * pools[key].gpus_per_node <= approved.gpus)
    offered = {key: (key[0], pools[key]) for key in candidates}
    if approval_needs(spec, slice_, project, offered.values()):
        return ()
    return tuple(key for key in candidates if not needs_there(spec, slice_, project, offered[key]))


def approval_reasons(
    spec: RequestSpec, slice_: SliceSpec, project: ProjectSpec, pools: Pools
) -> tuple[ApprovalNeed, ...]:
    """Why the request needs an admin; see `schemas.rules.fit`."""
    fitting = [(key[0], pools[key]) for key in candidate_pools(spec, slice_, pools)]
    return approval_needs(spec, slice_, project, fitting)


def largest_hold(spec: RequestSpec, slice_: SliceSpec, pools: Pools) -> ApprovalLimit:
    """What the request would hold in the pool with the largest nodes that it may use."""
    held = [spec.nodes * pools[key].gpus_per_node for key in candidate_pools(spec, slice_, pools)]
    gpus = max(held, default=spec.nodes * spec.gpus_per_node)
    return ApprovalLimit(gpus=min(gpus, MOST_GPUS), nodes=spec.nodes)


def limit_violations(
    spec: RequestSpec, slice_: SliceSpec, pools: Pools = NO_POOLS
) -> tuple[LimitViolation, ...]:
    """Hard limits that no approval lifts: of the request itself, and those that exclude all of its `pools`.

    A request that fits in no pool breaks no limit.
    """
    found, limits = broken(spec, slice_.limits), slice_.limits
    if found or not (limits.where or limits.max_gpus or limits.max_memory_per_gpu):
        return found
    clusters = _clusters(spec, slice_)
    there = [
        broken_there(spec, slice_.limits, (key[0], pool))
        for key, pool in pools.items()
        if _is_such(spec, clusters, pool)
    ]
    return min(there, key=len, default=())


def would_fit(spec: RequestSpec, slice_: SliceSpec, pools: Pools) -> str:
    """For a request that fits nowhere: what its clusters offer, one clause per kind of node."""
    clusters = _clusters(spec, slice_)
    shapes = slice_.limits.gpu_shapes
    there = [p for k, p in pools.items() if k[0] in clusters and (not shapes or p.gpu_shape in shapes)]
    if not there:
        return f"no GPU nodes that the slice may use exist in {', '.join(clusters) or 'its clusters'}"
    there.sort(key=lambda pool: clusters.index(pool.key[0]))
    return "; ".join(_offer(pool) for pool in there)


def _is_such(spec: RequestSpec, clusters: tuple[str, ...], pool: Pool) -> bool:
    """Whether the pool is in one of these clusters and has enough nodes as requested."""
    return (
        pool.key[0] in clusters
        and (pool.discovered or len(pool.nodes) >= spec.nodes)
        and pool.gpus_per_node >= spec.gpus_per_node
        and pool.memory_per_gpu >= spec.memory_per_gpu
        and (not spec.gpu_shapes or pool.gpu_shape in spec.gpu_shapes)
        and spec.instance_type in (None, pool.instance_type)
        and (pool.rdma or not spec.network.rdma)
        and (pool.secondary_network or not spec.network.secondary)
    )


def _clusters(spec: RequestSpec, slice_: SliceSpec) -> tuple[str, ...]:
    return tuple(name for name in spec.clusters or slice_.clusters if name in slice_.clusters)


def _offer(pool: Pool) -> str:
    networks = [
        name for name, there in (("RDMA", pool.rdma), ("second network", pool.secondary_network)) if there
    ]
    extras = "".join(f", {name}" for name in networks)
    machine = f", {pool.instance_type}" if pool.instance_type else ""
    return (
        f"{'/'.join(pool.key)} has up to {len(pool.nodes)} nodes with {pool.gpus_per_node} {pool.gpu_shape} "
        f"of {pool.memory_per_gpu} GB each{extras}{machine}"
    )
