"""GPU requests: the documented fields in the documented order, then further fields of this server.

Times and durations are text. Times are RFC 3339 in UTC. A requested duration has the form in which it is requested,
`0d6h0m`; a measured one reads `0h2m40s`.

Held by tests/egs/test_sdk_data.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from egs.data.records import Record, each, one, record, same_as, wire

NO_TIME, NO_SPAN = "0h0m0s", "0d0h0m"
_MEASURED = re.compile(r"([0-9]+)h([0-9]{1,2})m0s")
NO_MODEL = {"name": "", "framework": "", "parameters": {}}


def span(text: str) -> str:
    """A duration of the wire in the form of requests: `6h0m0s` becomes `0d6h0m`; other text is unchanged."""
    found = _MEASURED.fullmatch(text)
    if found is None:
        return text
    hours, minutes = int(found[1]), int(found[2])
    return f"{hours // 24}d{hours % 24}h{minutes}m"


@record
class GpuRequestStatus(Record):
    """Progress of a request."""

    provisioning_status: str = ""
    """Pending, Queued, Provisioning, Successful, Complete, Cancelled, Rejected or Failed."""
    failure_reason: str = ""
    num_gpus_allocated: int = wire("numGPUsAllocated", default=0)
    start_timestamp: str = ""
    completion_timestamp: str = ""
    cost: str = ""
    """Cost so far: `12.34 USD`; nodes without a price cost `0.00 USD`."""
    nodes: list[str] = wire("nodes", default=())
    internal_state: str = ""
    """Empty, Reserved or Released."""
    retry_count: int = 0
    delayed_count: int = 0
    warned_at: str = ""
    """When its end was announced; empty: it is not near."""
    checkpointed_at: str = ""
    """When its work was last saved, as its pods say; empty: unknown."""


@record
class GpuRequestData(Record):
    """One GPU request."""

    request_id: str = wire("gprId", default="")
    workspace_name: str = wire("sliceName", default="")
    cluster_name: str = ""
    """Where it holds nodes or will, else the requested one."""
    number_of_gpus: int = wire("numberOfGPUs", default=0)
    """Per node."""
    number_of_gpu_nodes: int = wire("numberOfGPUNodes", default=0)
    instance_type: str = ""
    memory_per_gpu: int = wire("memoryPerGPU", default=0)
    """GB."""
    priority: int = 0
    gpu_sharing_mode: str = wire(default="", usual="dedicated")
    estimated_start_time: str = ""
    estimated_wait_time: str = wire(default="", usual=NO_TIME)
    exit_duration: str = wire(default="", read=span)
    """As requested, in the documented form: `0d6h0m`."""
    early_release: bool = False
    gpr_name: str = ""
    gpu_shape: str = ""
    multi_node: bool = False
    dedicated_nodes: bool = wire(default=False, usual=True)
    enable_rdma: bool = wire("enableRDMA", default=False)
    enable_secondary_network: bool = False
    status: GpuRequestStatus = wire("status", default=GpuRequestStatus(), read=one(GpuRequestStatus))

    idle_timeout_duration: str = wire("idleTimeOutDuration", default="", read=span)
    enforce_idle_timeout: bool = wire("enforceIdleTimeOut", default=False)
    requeue_on_failure: bool = True
    enable_eviction: bool = True
    name: str = ""
    """`workspace/file`: the name of the request in the repository."""
    phase: str = ""
    """Filed (the controller has not seen it yet), PendingApproval, Queued, Provisioning, Provisioned, Releasing,
    Completed, Cancelled, Rejected or Failed."""
    reason: str = ""
    message: str = ""
    position: int | None = None
    """Position in the queue, from 1; None: it does not wait."""
    rank: int | None = None
    slips: tuple[Mapping[str, Any], ...] = wire("slips", default=(), read=tuple)
    """Moves of its promised start to later, and why."""
    forecast: Mapping[str, Any] | None = None
    end_time: str = ""
    """Its strict end, decided or promised."""
    not_before: str = ""
    start: str = wire(default="", usual="asap")
    prefer: str = wire(default="", usual="earliest")
    max_wait: str = wire(default="", read=span)
    extend: str = wire(default="", usual=NO_SPAN, read=span)
    stopped: bool = False
    model: Mapping[str, Any] | None = wire(default=None, usual=NO_MODEL)
    gpu_shapes: tuple[str, ...] = wire(
        "gpuShapes", default=(), read=tuple, usual=lambda request: (request.gpu_shape,)
    )
    """All requested shapes, in order; empty: any."""
    preferred_clusters: tuple[str, ...] = wire(
        "preferredClusters", default=(), read=tuple, usual=lambda request: (request.cluster_name,)
    )
    spec_digest: str = wire(default="", repr=False)
    """The version that an approval is bound to."""

    gpr_id = same_as("request_id")
    slice_name = same_as("workspace_name")
    number_of_gp_us = same_as("number_of_gpus")

    @property
    def cost(self) -> str:
        """The same as `status.cost`."""
        return self.status.cost

    @property
    def is_over(self) -> bool:
        """Whether it will never run again."""
        return self.phase in OVER


OVER = frozenset({"Completed", "Cancelled", "Rejected", "Failed"})
"""Phases of requests that never run again."""
LIFE = ("Filed", "PendingApproval", "Queued", "Provisioning", "Provisioned", "Releasing", "Completed")
"""Phases in order, for a request without failures."""
SAME_PHASE = {"Pending": "PendingApproval", "Successful": "Provisioned", "Complete": "Completed"}
"""Phases by their documented `provisioning_status`, if that is a different word."""


@record
class WaitTime(Record):
    """When a request would start in one pool, if it were filed now."""

    cluster_name: str = ""
    pool: str = ""
    gpu_shape: str = ""
    instance_type: str = ""
    gpus_per_node: int = 0
    memory_per_gpu: int = wire("memoryPerGPU", default=0)
    free_nodes: int = 0
    estimated_start_time: str = ""
    """Empty: never, and `reason` says why."""
    estimated_wait_time: str = ""
    estimated_wait_seconds: float | None = None
    needs_approval: bool = False
    price_per_gpu_hour: float | None = None
    reason: str = ""
    message: str = ""
    forecast: Mapping[str, Any] | None = None


@record
class QueueRow(Record):
    """One waiting request, in the order of service."""

    gpr_id: str = ""
    rank: int | None = None
    """In the whole queue, from 1."""
    position: int | None = None
    """Among requests that wait for the same pool, from 1."""
    slice: str = ""
    name: str = ""
    phase: str = ""
    priority: int = 0
    nodes: int = 0
    estimated_start_time: str | None = None
    estimated_wait_seconds: float | None = None
    cluster: str | None = None
    pool: str | None = None
    promised: bool = False
    """Whether that start is committed; otherwise it is planned."""
    delayed_count: int = 0
    reason: str | None = None


@record
class ApprovalRow(Record):
    """A request that waits for an admin."""

    gpr_id: str = ""
    name: str = ""
    reasons: tuple[str, ...] = wire("reasons", default=(), read=tuple)
    message: str = ""
    asked: Mapping[str, Any] | None = None
    spec_digest: str = ""
    since: str = ""


@record
class EventRow(Record):
    """One event."""

    at: str = ""
    reason: str = ""
    type: str = ""
    request: str = ""
    cluster: str = ""
    node: str = ""
    message: str = ""


@record
class Workload(Record):
    """A request that has its nodes, and what runs there."""

    gpr_id: str = ""
    name: str = ""
    gpr_name: str = ""
    slice_name: str = ""
    namespaces: tuple[str, ...] = wire("namespaces", default=(), read=tuple)
    phase: str = ""
    model: Mapping[str, Any] | None = None
    cluster_name: str = ""
    pool: str = ""
    gpu_shape: str = ""
    num_gpus: int = wire("numGPUs", default=0)
    nodes: tuple[Mapping[str, Any], ...] = wire("nodes", default=(), read=tuple)
    healthy: bool = False
    failed_checks: tuple[str, ...] = wire("failedChecks", default=(), read=tuple)
    idle_since: str = ""
    idle_seconds: int = 0
    start_time: str = ""
    end_time: str = ""
    elapsed_seconds: int = 0
    cost: str = ""
    gpu_hours: float = 0.0
    summary: Mapping[str, Any] | None = None
    """Average use, hottest GPU, most power, idle and hot GPUs; None: not measured."""
    runs: tuple[Mapping[str, Any], ...] = wire("runs", default=(), read=tuple)
    """Jobs, Deployments, InferenceServices and so on that run on its nodes."""
    pods_unknown: str = ""
    """Why `runs` is empty although pods may run."""


@record
class Usage(Record):
    """Use and cost of a workspace."""

    slice_name: str = ""
    currency: str = ""
    gpu_hours: float = 0.0
    cost: float = 0.0
    running_gpu_hours: float = 0.0
    running_cost: float = 0.0
    months: tuple[Mapping[str, Any], ...] = wire("months", default=(), read=tuple)


@record
class RequestUsage(Record):
    """Use and cost of a request that has had nodes."""

    name: str = ""
    gpr_name: str = ""
    slice_name: str = ""
    people: tuple[str, ...] = wire("people", default=(), read=tuple)
    month: str = ""
    phase: str = ""
    is_running: bool = False
    gpu_hours: float = 0.0
    cost: float = 0.0
    currency: str = ""


@record
class Why(Record):
    """What a request waits for, in sentences; prints as such."""

    gpr_id: str = ""
    slice: str = ""
    name: str = ""
    phase: str = ""
    reasons: tuple[str, ...] = wire("reasons", default=(), read=tuple)
    forecast: Mapping[str, Any] | None = None
    alternatives: tuple[Any, ...] = wire("alternatives", default=(), read=tuple)

    def __str__(self) -> str:
        return " ".join(self.reasons)


@record
class MovedRequest(Record):
    """Another request whose start a change moves."""

    slice: str = ""
    name: str = ""
    change: str = ""
    """earlier, later, gone, or refused: it loses its start."""
    was: str | None = None
    now: str | None = None
    minutes: int | None = None
    """How much later, negative: earlier; None: it has no start on one side."""
    cause: str | None = None
    by: str | None = None
    proven: bool = False
    why: str = ""


@record
class WhatIf(Record):
    """What a change would do that was not pushed; prints as sentences."""

    verdict: str = ""
    """refused, waits (for an approval) or clear."""
    summary: str = ""
    now: str = ""
    """As of when it is."""
    actor: str | None = None
    against: Mapping[str, Any] | None = None
    problems: tuple[Mapping[str, Any], ...] = wire("problems", default=(), read=tuple)
    denials: tuple[Mapping[str, Any], ...] = wire("denials", default=(), read=tuple)
    requests: tuple[Mapping[str, Any], ...] = wire("requests", default=(), read=tuple)
    """Requests of the change: starts before and after, place, cost before and after."""
    approvals: tuple[Mapping[str, Any], ...] = wire("approvals", default=(), read=tuple)
    limits: tuple[Mapping[str, Any], ...] = wire("limits", default=(), read=tuple)
    moved: tuple[MovedRequest, ...] = wire("moved", default=(), read=each(MovedRequest))
    """Those that move most, first; `more_moved` counts the others."""
    more_moved: int = 0
    preempted: tuple[Mapping[str, Any], ...] = wire("preempted", default=(), read=tuple)
    others: tuple[Mapping[str, Any], ...] = wire("others", default=(), read=tuple)
    cost: Mapping[str, Any] | None = None
    hidden: Mapping[str, Any] | None = None
    """Counts of effects on requests that the caller may not see."""

    def __str__(self) -> str:
        said = [
            f"{one.slice}/{one.name}: {one.minutes:+} min, {one.why}." for one in self.moved if one.minutes
        ]
        return " ".join((self.summary, *said))


read_gpr = one(GpuRequestData)
