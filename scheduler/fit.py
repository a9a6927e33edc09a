"""Which pools can serve a request, whether it needs an admin, and what would fit if none can."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from scheduler.snapshot import Pool, PoolKey
from schemas.approval import ApprovalLimit
from schemas.fit import ApprovalNeed, approval_needs, free_gpus_by_hours
from schemas.gpr import RequestSpec
from schemas.project import ProjectSpec
from schemas.slice import SliceSpec
from schemas.units import format_duration

Pools = Mapping[PoolKey, Pool]
MOST_GPUS = 1_000_000
"""The largest limit that an approval can name."""


@dataclass(frozen=True, slots=True)
class LimitViolation:
    """A hard limit of the slice that the request breaks; `field` is the request's, `allowed` what would pass."""

    field: Literal["duration", "priority", "nodes", "gpuShape"]
    asked: str
    allowed: str

    @property
    def message(self) -> str:
        """One sentence."""
        return f"{self.field} is {self.asked} but the slice allows {self.allowed}"


def candidate_pools(spec: RequestSpec, slice_: SliceSpec, pools: Pools) -> tuple[PoolKey, ...]:
    """Pools whose nodes fit and are enough, or may become so, in order of preference; closed ones stay in.

    The order: the request's clusters (else the slice's), its shapes, the smallest node, the order of `pools`.
    """
    clusters = _clusters(spec, slice_)
    fitting = [(place, key) for place, key in enumerate(pools) if _fits(spec, slice_, pools[key])]

    def preference(entry: tuple[int, PoolKey]) -> tuple[int, int, int, int, int]:
        place, key = entry
        pool = pools[key]
        shape = spec.gpu_shapes.index(pool.gpu_shape) if spec.gpu_shapes else 0
        return (clusters.index(key[0]), shape, pool.gpus_per_node, pool.memory_per_gpu, place)

    return tuple(key for _, key in sorted(fitting, key=preference))


def usable_pools(
    spec: RequestSpec, slice_: SliceSpec, project: ProjectSpec, pools: Pools, approved: ApprovalLimit | None
) -> tuple[PoolKey, ...]:
    """Candidates within what the request may hold: by its approval, or else by all that needs none."""
    candidates = candidate_pools(spec, slice_, pools)
    if approved is None:
        needs = approval_needs(spec, slice_, project, [pools[key] for key in candidates])
        gpus = _free_gpus(spec, slice_, project)
        return () if needs else _within(spec, candidates, pools, gpus)
    return () if approved.nodes < spec.nodes else _within(spec, candidates, pools, approved.gpus)


def approval_reasons(
    spec: RequestSpec, slice_: SliceSpec, project: ProjectSpec, pools: Pools
) -> tuple[ApprovalNeed, ...]:
    """Why the request needs an admin; see `schemas.fit`."""
    fitting = [pools[key] for key in candidate_pools(spec, slice_, pools)]
    return approval_needs(spec, slice_, project, fitting)


def largest_hold(spec: RequestSpec, slice_: SliceSpec, pools: Pools) -> ApprovalLimit:
    """What the request would hold in the largest-noded pool that it may use."""
    held = [_gpus(spec, pools[key]) for key in candidate_pools(spec, slice_, pools)]
    gpus = max(held, default=spec.nodes * spec.gpus_per_node)
    return ApprovalLimit(gpus=min(gpus, MOST_GPUS), nodes=spec.nodes)


def limit_violations(spec: RequestSpec, slice_: SliceSpec) -> tuple[LimitViolation, ...]:
    """Hard limits that no approval lifts."""
    limits, found = slice_.limits, []
    if limits.max_duration is not None and spec.duration > limits.max_duration:
        asked, most = format_duration(spec.duration), format_duration(limits.max_duration)
        found.append(LimitViolation("duration", asked, f"at most {most}"))
    if spec.priority > limits.max_priority:
        found.append(LimitViolation("priority", str(spec.priority), f"at most {limits.max_priority}"))
    if limits.max_nodes is not None and spec.nodes > limits.max_nodes:
        found.append(LimitViolation("nodes", str(spec.nodes), f"at most {limits.max_nodes}"))
    barred = [shape for shape in spec.gpu_shapes if limits.gpu_shapes and shape not in limits.gpu_shapes]
    if barred:
        found.append(LimitViolation("gpuShape", ", ".join(barred), ", ".join(limits.gpu_shapes)))
    return tuple(found)


def would_fit(spec: RequestSpec, slice_: SliceSpec, pools: Pools) -> str:
    """For a request that fits nowhere: what its clusters have, one clause for each kind of node."""
    clusters = _clusters(spec, slice_)
    there = [pool for key, pool in pools.items() if key[0] in clusters and _shape_allowed(slice_, pool)]
    if not there:
        return f"no GPU nodes that the slice may use exist in {', '.join(clusters) or 'its clusters'}"
    there.sort(key=lambda pool: clusters.index(pool.key[0]))
    return "; ".join(_offer(pool) for pool in there)


def _fits(spec: RequestSpec, slice_: SliceSpec, pool: Pool) -> bool:
    return (
        pool.key[0] in _clusters(spec, slice_)
        and (pool.discovered or len(pool.nodes) >= spec.nodes)
        and pool.gpus_per_node >= spec.gpus_per_node
        and pool.memory_per_gpu >= spec.memory_per_gpu
        and (not spec.gpu_shapes or pool.gpu_shape in spec.gpu_shapes)
        and _shape_allowed(slice_, pool)
        and spec.instance_type in (None, pool.instance_type)
        and (pool.rdma or not spec.network.rdma)
        and (pool.secondary_network or not spec.network.secondary)
    )


def _clusters(spec: RequestSpec, slice_: SliceSpec) -> tuple[str, ...]:
    return tuple(name for name in spec.clusters or slice_.clusters if name in slice_.clusters)


def _shape_allowed(slice_: SliceSpec, pool: Pool) -> bool:
    return not slice_.limits.gpu_shapes or pool.gpu_shape in slice_.limits.gpu_shapes


def _free_gpus(spec: RequestSpec, slice_: SliceSpec, project: ProjectSpec) -> int | None:
    """GPUs the request may hold without an admin's word; None: no bound."""
    hours = project.approval.gpu_hours
    bounds = [] if slice_.quota is None else [slice_.quota.gpus]
    bounds += [] if hours is None else [free_gpus_by_hours(spec, hours)]
    return min(bounds, default=None)


def _within(
    spec: RequestSpec, candidates: tuple[PoolKey, ...], pools: Pools, gpus: int | None
) -> tuple[PoolKey, ...]:
    return tuple(key for key in candidates if gpus is None or _gpus(spec, pools[key]) <= gpus)


def _gpus(spec: RequestSpec, pool: Pool) -> int:
    """Whole nodes are held, so all their GPUs count."""
    return spec.nodes * pool.gpus_per_node


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
