"""Policies of workspaces: the vendor's names for a slice's limits, both ways. Pure.

A priority range is a ceiling, `maxGPRs` are requests in the queue, "1W" is a week and "2M" are two months of 30 days.
Reads give the limits in force, including the project's; writes change the slice's own file.
Held by tests/portal/vendor/test_policy_models.py: reading and writing are inverse.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, ValidationError

from portal.http.context import Changed, Flag, Whole, Wire, example, optional
from portal.http.durations import checked_duration
from portal.http.errors import bad_parameters
from schemas.documents.project import ProjectSpec
from schemas.documents.slice import LimitsWhere, SliceLimits
from schemas.reading.units import format_duration, memory_gb
from schemas.rules.limits import NO_SHAPE
from schemas.rules.problems import quoted

Range = Literal["low", "medium", "high"]
CEILINGS: dict[Range, int] = {"low": 100, "medium": 200, "high": 300}
"""The highest priority of each range."""

WEEK, MONTH = timedelta(weeks=1), timedelta(days=30)
_VENDORS = re.compile(r"([0-9]{1,3})([WM])")

Shapes = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=63)], ...],
    Field(
        max_length=100, description="Shapes that requests may ask for; empty: all.", examples=[["H100-80GB"]]
    ),
]
Gpus = Annotated[
    int | None,
    Field(ge=1, le=1_000_000, description="GPUs of one request, over all its nodes.", examples=[16]),
]
Memory = Annotated[int | None, Field(ge=1, le=4_194_304, description="Most GB per GPU.", examples=[80])]


class GpuConstraints(Wire):
    """The GPUs that requests may ask for."""

    gpu_shapes: Shapes = ()
    max_gpu_per_gpr: Gpus = Field(default=None, alias="maxGPUPerGpr")
    max_memory_per_gpr: Memory = None


class ClusterConstraints(GpuConstraints):
    """The same in one cluster."""

    cluster_name: str = Field(description="The cluster.")


EXAMPLE: dict[str, Any] = {
    "workspaceName": "vision",
    "PriorityRange": "medium",
    "maxPriority": 200,
    "maxGPRs": 3,
    "maxExitDurationPerGPR": "1W",
    "requeueOnFailure": True,
    "enableAutoEviction": True,
    "enforceIdleTimeOut": False,
    "globalGPUConstraints": {"gpuShapes": ["H100-80GB"], "maxGPUPerGpr": 16, "maxMemoryPerGpr": 80},
    "clusterGPUConstraints": [],
}


class Policy(Wire):
    """The limits in force for requests of a workspace."""

    model_config = example(EXAMPLE)

    workspace_name: str = Field(description="The workspace; also the policy's name.")
    priority_range: Range = Field(
        alias="PriorityRange", description="low: 1-100, medium: to 200, high: to 300."
    )
    max_priority: int = Field(description="The exact ceiling, which may lie inside a range.")
    max_gprs: int | None = Field(alias="maxGPRs", description="Requests in the queue; absent: any.")
    max_exit_duration_per_gpr: str | None = Field(
        alias="maxExitDurationPerGPR",
        description='Longest duration: "1W" weeks, "2M" months of 30 days, or "0d6h0m"; absent: any.',
    )
    requeue_on_failure: bool = Field(description="Default for requests.")
    enable_auto_eviction: bool = Field(description="Whether more urgent requests may preempt.")
    enforce_idle_time_out: bool = Field(description="Whether idle nodes are always released.")
    global_gpu_constraints: GpuConstraints = Field(
        alias="globalGPUConstraints", description="The GPUs that requests may ask for."
    )
    cluster_gpu_constraints: tuple[ClusterConstraints, ...] = Field(
        alias="clusterGPUConstraints", description="Tighter limits in some clusters."
    )


class PolicyWish(Wire):
    """Changes of a policy; absent fields stay. 0 or "" removes a limit."""

    model_config = example(
        {"priorityRange": "medium", "maxGPRs": 3, "maxExitDurationPerGPR": "1W", "maxGpuPerGpr": 16}
    )

    priority_range: Range | None = optional(
        "low, medium or high.",
        alias="priorityRange",
        validation_alias=AliasChoices("priorityRange", "PriorityRange"),
    )
    max_gprs: Whole | None = optional("Requests in the queue.", alias="maxGPRs", ge=0, le=1000)
    max_exit_duration_per_gpr: str | None = optional(
        'Longest duration: "1W" weeks, "2M" months of 30 days, or a duration like 0d6h0m.',
        alias="maxExitDurationPerGPR",
        max_length=40,
    )
    requeue_on_failure: Flag | None = optional("Decided by requests and templates; another value is refused.")
    enable_auto_eviction: Flag | None = optional("Decided by the project; another value is refused.")
    enforce_idle_time_out: Flag | None = optional("Decided by the project; another value is refused.")
    gpu_shapes: Shapes | None = optional("Shapes that requests may ask for; empty: all.")
    max_gpu_per_gpr: Whole | None = optional("GPUs of one request.", ge=0, le=1_000_000)
    max_memory_per_gpr: Whole | None = optional("Most GB per GPU.", ge=0, le=4_194_304)


class PolicyChanged(Wire):
    """The requested policy, and where the change is."""

    model_config = example({"policyName": "vision", "change": {"way": "pushed", "commit": "8d5f…"}})

    policy_name: str = Field(description="The workspace's name.")
    change: Changed = Field(description="Where the change is.")


def policy_of(name: str, limits: SliceLimits, project: ProjectSpec) -> Policy:
    """A slice's limits as the vendor's policy."""
    shapes = () if limits.gpu_shapes == NO_SHAPE else limits.gpu_shapes
    return Policy(
        workspace_name=name,
        priority_range=range_of(limits.max_priority),
        max_priority=limits.max_priority,
        max_gprs=limits.max_waiting,
        max_exit_duration_per_gpr=shown(limits.max_duration),
        requeue_on_failure=True,
        enable_auto_eviction=project.scheduling.preemption is not None,
        enforce_idle_time_out=project.scheduling.idle.max_timeout is not None,
        global_gpu_constraints=GpuConstraints(
            gpu_shapes=shapes, max_gpu_per_gpr=limits.max_gpus, max_memory_per_gpr=limits.max_memory_per_gpu
        ),
        cluster_gpu_constraints=tuple(_there(part) for part in limits.where if part.cluster is not None),
    )


def _there(part: LimitsWhere) -> ClusterConstraints:
    shapes = () if part.gpu_shape is None else (part.gpu_shape,)
    return ClusterConstraints(
        cluster_name=part.cluster or "", gpu_shapes=shapes, max_gpu_per_gpr=part.max_gpus or None
    )


def range_of(max_priority: int) -> Range:
    return next(name for name, ceiling in CEILINGS.items() if max_priority <= ceiling)


def shown(value: timedelta | None) -> str | None:
    """A duration in the vendor's notation if it is whole weeks or months, else in ours."""
    if value is None:
        return None
    for unit, letter in ((WEEK, "W"), (MONTH, "M")):
        if value % unit == timedelta() and value // unit <= 999:
            return f"{value // unit}{letter}"
    return format_duration(value)


def longest(text: str) -> timedelta | None:
    """The longest duration; None: no limit. ApiError 422."""
    found = _VENDORS.fullmatch(text)
    if not text:
        return None
    if found is None:
        return checked_duration("maxExitDurationPerGPR", text)
    value = int(found.group(1)) * (WEEK if found.group(2) == "W" else MONTH)
    if not value:
        raise bad_parameters(f"maxExitDurationPerGPR: {text} must be above zero; leave it empty for no limit")
    return value


def limits_of(asked: PolicyWish, before: SliceLimits, project: ProjectSpec) -> SliceLimits:
    """The slice's new limits; ApiError 422 for values that its limits do not decide."""
    _check_decided_elsewhere(asked, project)
    update: dict[str, Any] = {}
    if asked.priority_range is not None and asked.priority_range != range_of(before.max_priority):
        update["max_priority"] = CEILINGS[asked.priority_range]
    if asked.max_gprs is not None:
        update["max_waiting"] = asked.max_gprs or None
    if asked.max_exit_duration_per_gpr is not None:
        update["max_duration"] = longest(asked.max_exit_duration_per_gpr)
    if asked.gpu_shapes is not None:
        update["gpu_shapes"] = tuple(dict.fromkeys(asked.gpu_shapes))
    if asked.max_gpu_per_gpr is not None:
        update["max_gpus"] = asked.max_gpu_per_gpr or None
    if asked.max_memory_per_gpr is not None:
        update["max_memory_per_gpu"] = memory_gb(asked.max_memory_per_gpr) or None
    try:
        return SliceLimits.model_validate(dict(before) | update)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = _WIRE.get(str(first["loc"][0]), str(first["loc"][0]))
        raise bad_parameters(
            f"{field}: {quoted(str(first['input']))} is not valid: {first['msg']}"
        ) from error


_WIRE = {
    "max_waiting": "maxGPRs",
    "max_duration": "maxExitDurationPerGPR",
    "gpu_shapes": "gpuShapes",
    "max_gpus": "maxGpuPerGpr",
    "max_memory_per_gpu": "maxMemoryPerGpr",
}
"""Fields of limits by their names in the API."""


_ELSEWHERE = {
    "requeueOnFailure": "each request and template sets spec.requeueOnFailure, which is true by default",
    "enableAutoEviction": "set spec.scheduling.preemption of project.yaml for everyone, and spec.preemptible of each "
    "request",
    "enforceIdleTimeOut": "set spec.scheduling.idle.maxTimeout of project.yaml for everyone, and spec.idleTimeout of "
    "each request",
}
"""What to change instead."""


def _check_decided_elsewhere(asked: PolicyWish, project: ProjectSpec) -> None:
    scheduling = project.scheduling
    there = [
        ("requeueOnFailure", asked.requeue_on_failure, True),
        ("enableAutoEviction", asked.enable_auto_eviction, scheduling.preemption is not None),
        ("enforceIdleTimeOut", asked.enforce_idle_time_out, scheduling.idle.max_timeout is not None),
    ]
    wrong = [
        f"{field}: it is {str(is_so).lower()} and cannot be changed here; {_ELSEWHERE[field]}"
        for field, said, is_so in there
        if said not in (None, is_so)
    ]
    if wrong:
        raise bad_parameters("; ".join(wrong))
