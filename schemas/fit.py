"""Which pools could hold a request, whenever they are free, and why an admin must agree to it.

Pure; when it gets nodes the planner decides.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, Protocol

from schemas.cluster import Pool
from schemas.gpr import RequestSpec
from schemas.project import ProjectSpec
from schemas.slice import SliceSpec
from schemas.units import format_duration

Reason = Literal[
    "QuotaExceeded",
    "NodeLimitExceeded",
    "DurationNeedsApproval",
    "PriorityNeedsApproval",
    "GpuHoursNeedApproval",
    "ShapeNeedsApproval",
]


@dataclass(frozen=True, slots=True)
class ApprovalNeed:
    """What an admin has to agree to; `message` goes on after the request's name: "asks for …"."""

    reason: Reason
    message: str


class Offer(Protocol):
    """What a need is judged by: one node of a pool."""

    @property
    def gpus_per_node(self) -> int: ...
    @property
    def gpu_shape(self) -> str: ...


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


def approval_needs(
    spec: RequestSpec, slice_: SliceSpec, project: ProjectSpec, pools: Collection[Offer]
) -> tuple[ApprovalNeed, ...]:
    """Why an admin must approve a request that `pools` fit: not even the smallest is within quota, or a rule of the
    project says so."""
    gpus = min((spec.nodes * pool.gpus_per_node for pool in pools), default=0)
    most = project.limits.nodes_per_request
    needs: list[ApprovalNeed] = []
    if slice_.quota is not None and gpus > slice_.quota.gpus:
        text = f"asks for {gpus} GPUs but its slice may hold {slice_.quota.gpus} per request without approval"
        needs.append(ApprovalNeed("QuotaExceeded", text))
    if spec.nodes > most:
        text = f"asks for {spec.nodes} nodes but a request may hold {most} without approval"
        needs.append(ApprovalNeed("NodeLimitExceeded", text))
    return (*needs, *_by_policy(spec, project, gpus, {pool.gpu_shape for pool in pools}))


def _by_policy(
    spec: RequestSpec, project: ProjectSpec, gpus: int, offered: Collection[str]
) -> tuple[ApprovalNeed, ...]:
    policy, needs = project.approval, []
    if policy.duration is not None and spec.duration > policy.duration:
        asked, most = format_duration(spec.duration), format_duration(policy.duration)
        text = f"asks for {asked} but a request may last {most} without approval"
        needs.append(ApprovalNeed("DurationNeedsApproval", text))
    if policy.priority is not None and spec.priority > policy.priority:
        text = f"asks for priority {spec.priority} but may have {policy.priority} without approval"
        needs.append(ApprovalNeed("PriorityNeedsApproval", text))
    if policy.gpu_hours is not None and gpus > free_gpus_by_hours(spec, policy.gpu_hours):
        hours = gpus * spec.duration.total_seconds() / 3600
        text = f"asks for {hours:g} GPU-hours but a request may take {policy.gpu_hours} without approval"
        needs.append(ApprovalNeed("GpuHoursNeedApproval", text))
    shapes = sorted({*offered, *spec.gpu_shapes}.intersection(policy.gpu_shapes))
    if shapes:
        text = f"may get {', '.join(shapes)}, which nobody gets without approval"
        needs.append(ApprovalNeed("ShapeNeedsApproval", text))
    return tuple(needs)


def free_gpus_by_hours(spec: RequestSpec, gpu_hours: int) -> int:
    """The most GPUs that a request of this duration may hold within so many GPU-hours."""
    return int(gpu_hours * 3600 // spec.duration.total_seconds())


def free_priority(slice_: SliceSpec, project: ProjectSpec) -> int:
    """The highest priority that an approval need not bind: the slice's ceiling, or the policy's below it."""
    return min(slice_.limits.max_priority, project.approval.priority or slice_.limits.max_priority)


def admins_needed(project: ProjectSpec, nodes: int, gpus: int) -> int:
    """How many admins have to approve what holds so much: two beyond the project's second threshold."""
    above = project.approval.two_admins_above
    beyond = above is not None and (
        (above.nodes is not None and nodes > above.nodes) or (above.gpus is not None and gpus > above.gpus)
    )
    return 2 if beyond else 1
