"""The fields of a GPU request on the wire, from the arguments of the caller. Pure.

Held by tests/egs/test_sdk_wishes.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict, get_type_hints

from egs.arguments import check
from egs.exceptions import BadParameters, PriorityClamped
from egs.telling import warn

Span = str | timedelta
"""`0d6h0m`, `6h`, `90m`, or a timedelta."""
HIGHEST = 300
"""The documented maximum of priorities; the documentation's own examples exceed it."""
LARGEST_GB = 4096
"""A larger memory is in MiB: no GPU has that many GB, and the documentation's own examples are in MiB."""
MIB_OF_GB = 1024


class Model(TypedDict, total=False):
    """The model that will run; informational."""

    name: str
    framework: str
    parameters: Mapping[str, str]


class Wishes(TypedDict, total=False):
    """Terms beyond the ten documented arguments; absent or None: the template's, else the default."""

    idle_timeout_duration: Span | None
    enforce_idle_timeout: bool | None
    enable_eviction: bool | None
    requeue_on_failure: bool | None
    preferred_clusters: Sequence[str] | None
    enable_auto_cluster_selection: bool | None
    enable_auto_gpu_selection: bool | None
    multi_node: bool | None
    dedicated_nodes: bool | None
    enable_rdma: bool | None
    enable_secondary_network: bool | None
    template_name: str | None
    not_before: datetime | str | None
    start: Literal["asap", "ready", "promised"] | None
    prefer: Literal["earliest", "price", "memory"] | None
    max_wait: Span | None
    model: Model | str | None


class More(Wishes, total=False):
    """Arguments of a request beyond the ten documented ones."""

    name: str | None


class JobTerms(Wishes, total=False):
    """Terms of the request that is filed with a workload."""

    request_name: str | None
    cluster_name: str | None
    node_count: int | None
    gpu_per_node_count: int | None
    memory_per_gpu: int | None
    instance_type: str | None
    gpu_shape: str | Sequence[str] | None
    exit_duration: Span | None
    priority: int | None


class RequestFields(More, JobTerms, total=False):
    """All arguments of a request."""

    workspace_name: str | None


TYPES = get_type_hints(RequestFields)


def gpr_body(said: Mapping[str, Any], of: str = "request_gpu") -> dict[str, Any]:
    """Fields on the wire from arguments by name; None and "" are left to the template and the defaults.

    `of` is the function that a TypeError names.
    """
    unknown = sorted(set(said) - set(WIRE))
    if unknown:
        raise TypeError(f"no such argument: {', '.join(unknown)}; choose from {', '.join(sorted(WIRE))}")
    check(of, said, TYPES)
    given = {WIRE[name]: value for name, value in said.items() if value is not None and value != ""}
    return {name: READ.get(name, _same)(value) for name, value in given.items()}


def instant_text(at: datetime | str | None) -> str | None:
    """An instant for the server; a datetime without a zone would be ambiguous."""
    if not isinstance(at, datetime):
        return at
    if at.tzinfo is None:
        raise BadParameters(f"{at} has no time zone; give an aware datetime, for example in UTC")
    return at.isoformat()


def _same(value: Any) -> Any:
    return list(value) if isinstance(value, (tuple, set, frozenset)) else value


def memory_gb(memory: int) -> int:
    """Memory of a GPU in GB; a value above 4096 was given in MiB."""
    if memory < 0:
        raise BadParameters(f"memory_per_gpu: {memory} is below 0; give GB, or 0 for any")
    return round(memory / MIB_OF_GB) if memory > LARGEST_GB else memory


def priority_in_range(priority: int) -> int:
    """At most 300; warns if it was higher."""
    if priority > HIGHEST:
        warn(PriorityClamped(f"priority {priority} is above the maximum and was set to {HIGHEST}"))
        return HIGHEST
    return priority


def span_text(span: Span) -> str:
    """A duration for the server; parts of a minute are rounded up."""
    if isinstance(span, str):
        return span
    minutes = -(-span // timedelta(minutes=1))
    if minutes <= 0:
        raise BadParameters(f"a duration of {span} is too short; give at least a minute")
    hours, minute = divmod(minutes, 60)
    return f"{hours // 24}d{hours % 24}h{minute}m"


def shapes(shape: str | Sequence[str]) -> str | list[str]:
    """One shape, or several in order of preference."""
    return shape if isinstance(shape, str) else list(shape)


WIRE: Mapping[str, str] = {
    "request_name": "gprName",
    "workspace_name": "sliceName",
    "cluster_name": "clusterName",
    "node_count": "numberOfGPUNodes",
    "gpu_per_node_count": "numberOfGPUs",
    "memory_per_gpu": "memoryPerGPU",
    "instance_type": "instanceType",
    "gpu_shape": "gpuShape",
    "exit_duration": "exitDuration",
    "priority": "priority",
    "idle_timeout_duration": "idleTimeOutDuration",
    "enforce_idle_timeout": "enforceIdleTimeOut",
    "enable_eviction": "enableEviction",
    "requeue_on_failure": "requeueOnFailure",
    "preferred_clusters": "preferredClusters",
    "enable_auto_cluster_selection": "enableAutoClusterSelection",
    "enable_auto_gpu_selection": "enableAutoGpuSelection",
    "multi_node": "multiNode",
    "dedicated_nodes": "dedicatedNodes",
    "enable_rdma": "enableRDMA",
    "enable_secondary_network": "enableSecondaryNetwork",
    "template_name": "templateName",
    "not_before": "notBefore",
    "start": "start",
    "prefer": "prefer",
    "max_wait": "maxWait",
    "model": "model",
    "name": "name",
}
"""Arguments of a new request, and their names on the wire."""

READ: Mapping[str, Any] = {
    "memoryPerGPU": memory_gb,
    "priority": priority_in_range,
    "exitDuration": span_text,
    "idleTimeOutDuration": span_text,
    "maxWait": span_text,
    "gpuShape": shapes,
    "notBefore": instant_text,
}
"""Conversions of values, by name on the wire."""
