"""Which pools could hold a request, whenever they are free. Pure; the planner decides when."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.cluster import Pool
from schemas.gpr import RequestSpec


def pool_fits(spec: RequestSpec, pool: Pool) -> bool:
    """Whether a node of `pool` is what `spec` asks for; how many nodes there are is the caller's question."""
    return not misfits(spec, pool)


def misfits(spec: RequestSpec, pool: Pool) -> tuple[str, ...]:
    """The fields of `spec` that a node of `pool` does not satisfy, in the order of the document's fields."""
    lacks = (
        ("gpusPerNode", pool.gpus_per_node < spec.gpus_per_node),
        ("gpuShape", bool(spec.gpu_shapes) and pool.gpu_shape not in spec.gpu_shapes),
        ("memoryPerGpu", pool.memory_per_gpu < spec.memory_per_gpu),
        ("instanceType", spec.instance_type not in (None, pool.instance_type)),
        ("network.rdma", spec.network.rdma and not pool.rdma),
        ("network.secondary", spec.network.secondary and not pool.secondary_network),
    )
    return tuple(field for field, lacking in lacks if lacking)


def gpus_held(spec: RequestSpec, pool: Pool) -> int:
    """GPUs the request would hold there: whole nodes, so all GPUs of each."""
    return spec.nodes * pool.gpus_per_node


def approval_reasons(
    spec: RequestSpec, pools: Iterable[Pool], quota_gpus: int | None, nodes_per_request: int
) -> tuple[str, ...]:
    """Why an admin must approve: QuotaExceeded when even the smallest of `pools` holds too many GPUs."""
    reasons = []
    held = min((gpus_held(spec, pool) for pool in pools), default=0)
    if quota_gpus is not None and held > quota_gpus:
        reasons.append("QuotaExceeded")
    if spec.nodes > nodes_per_request:
        reasons.append("NodeLimitExceeded")
    return tuple(reasons)
