"""Which pools could hold a request once they are free, and why an admin must approve it.

Pure; the planner decides when it gets nodes. The limits of one request are in `schemas.rules.limits`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from schemas.documents.gpr import RequestSpec
from schemas.documents.pool import Pool
from schemas.documents.project import ProjectSpec
from schemas.documents.slice import SliceSpec
from schemas.reading.units import format_duration
from schemas.rules.limits import Offered, over_quota

Reason = Literal[
    "QuotaExceeded",
    "NodeLimitExceeded",
    "DurationNeedsApproval",
    "PriorityNeedsApproval",
    "GpuHoursNeedApproval",
    "ShapeNeedsApproval",
    "MonthlyQuotaExceeded",
]
"""Why an admin must approve, in the order of messages; only the controller can know the last one."""


@dataclass(frozen=True, slots=True)
class ApprovalNeed:
    """A reason for approval; `message` continues the request's name: "asks for …"."""

    reason: Reason
    message: str


def pool_fits(spec: RequestSpec, pool: Pool) -> bool:
    """Whether a node of `pool` satisfies `spec`; the number of nodes is not checked."""
    return not misfits(spec, pool)


def misfits(spec: RequestSpec, pool: Pool) -> tuple[str, ...]:
    """The fields of `spec` that a node of `pool` does not satisfy, in the order of the document."""
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
    spec: RequestSpec, slice_: SliceSpec, project: ProjectSpec, offered: Collection[Offered]
) -> tuple[ApprovalNeed, ...]:
    """Why an admin must approve the request: the project's policy, or that no offered pool is within quota."""
    shapes = {node.gpu_shape for _, node in offered} if project.approval.gpu_shapes else ()
    found = [*_of_pools(spec, slice_, project, offered), *_by_policy(spec, project, shapes)]
    if len(found) < 2:  # nearly always
        return tuple(found)
    return tuple(sorted(found, key=lambda need: get_args(Reason).index(need.reason)))


def _of_pools(
    spec: RequestSpec, slice_: SliceSpec, project: ProjectSpec, offered: Collection[Offered]
) -> tuple[ApprovalNeed, ...]:
    """The reasons in the pool with the fewest; on a tie, in the pool with the smallest nodes."""
    of_each = []
    for one in offered:
        needs = needs_there(spec, slice_, project, one)
        if not needs:  # no pool needs fewer
            return ()
        of_each.append((needs, one[1].gpus_per_node))
    least = min(of_each, key=lambda found: (len(found[0]), found[1]), default=((), 0))
    return least[0]


def needs_there(
    spec: RequestSpec, slice_: SliceSpec, project: ProjectSpec, offered: Offered
) -> tuple[ApprovalNeed, ...]:
    """Why an admin must approve nodes of this pool for the request."""
    found, gpus, most = [], spec.nodes * offered[1].gpus_per_node, project.approval.gpu_hours
    beyond = over_quota(spec, slice_, offered)
    if beyond is not None:
        found.append(ApprovalNeed("QuotaExceeded", beyond))
    if most is not None and gpus > free_gpus_by_hours(spec, most):
        hours = gpus * spec.duration.total_seconds() / 3600
        text = f"asks for {hours:g} GPU-hours but a request may take {most} without approval"
        found.append(ApprovalNeed("GpuHoursNeedApproval", text))
    return tuple(found)


def _by_policy(spec: RequestSpec, project: ProjectSpec, offered: Collection[str]) -> Iterator[ApprovalNeed]:
    policy, nodes = project.approval, project.limits.nodes_per_request
    if spec.nodes > nodes:
        text = f"asks for {spec.nodes} nodes but a request may hold {nodes} without approval"
        yield ApprovalNeed("NodeLimitExceeded", text)
    if policy.duration is not None and spec.duration > policy.duration:
        asked, most = format_duration(spec.duration), format_duration(policy.duration)
        text = f"asks for {asked} but a request may last {most} without approval"
        yield ApprovalNeed("DurationNeedsApproval", text)
    if policy.priority is not None and spec.priority > policy.priority:
        text = f"asks for priority {spec.priority} but may have {policy.priority} without approval"
        yield ApprovalNeed("PriorityNeedsApproval", text)
    always = policy.gpu_shapes
    shapes = sorted({*offered, *spec.gpu_shapes}.intersection(always)) if always else ()
    if shapes:
        text = f"may get {', '.join(shapes)}, which always needs approval"
        yield ApprovalNeed("ShapeNeedsApproval", text)


def free_gpus_by_hours(spec: RequestSpec, gpu_hours: int) -> int:
    """The most GPUs that a request of this duration may hold within that many GPU-hours."""
    return int(gpu_hours * 3600 // spec.duration.total_seconds())


def free_priority(slice_: SliceSpec, project: ProjectSpec) -> int:
    """The highest priority that an approval does not bind: the slice's limit, or a lower one of the policy."""
    return min(slice_.limits.max_priority, project.approval.priority or slice_.limits.max_priority)


def admins_needed(project: ProjectSpec, nodes: int, gpus: int) -> int:
    """Number of admins who must approve that many nodes and GPUs: two above the project's second threshold."""
    above = project.approval.two_admins_above
    beyond = above is not None and (
        (above.nodes is not None and nodes > above.nodes) or (above.gpus is not None and gpus > above.gpus)
    )
    return 2 if beyond else 1
