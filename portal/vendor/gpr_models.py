"""Requests on the wire under the vendor's names: new ones, changes, and their status. Models only."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from portal.http.context import Changed, Flag, Line, Whole, Wire, example, optional
from schemas.documents.gpr import Prefer, StartMode

Text = Annotated[str, Field(max_length=200)]
TextLine = Annotated[Line, Field(max_length=200)]
Span = Annotated[
    str,
    Field(
        max_length=40, description="Like 0d6h0m, 6h, 90m or 1w; 6h0m0s is accepted too.", examples=["0d6h0m"]
    ),
]
Time = Annotated[str, Field(max_length=40, description="RFC 3339.", examples=["2026-11-21T08:00:00Z"])]


class Model(Wire):
    """The model that will run; informational."""

    name: Line = Field("", max_length=200, description="Model.")
    framework: Line = Field("", max_length=100, description="Framework.")
    parameters: dict[str, str] = Field(default_factory=dict, max_length=100, description="Free parameters.")


class Terms(Wire):
    """Terms of a request; absent fields come from the template, then from the defaults."""

    number_of_gpus: Annotated[Whole, Field(ge=1, le=64)] | None = optional(
        "Least number of GPUs per node.", alias="numberOfGPUs", examples=[8]
    )
    number_of_gpu_nodes: Annotated[Whole, Field(ge=1, le=100_000)] | None = optional(
        "Whole GPU nodes.", alias="numberOfGPUNodes", examples=[2]
    )
    memory_per_gpu: Annotated[Whole, Field(ge=0, le=4_194_304)] | None = optional(
        "Least memory of each GPU in GB; a value above 4096 is taken as MiB; 0: any.",
        alias="memoryPerGPU",
        examples=[80],
    )
    instance_type: Annotated[Line, Field(max_length=63)] | None = optional(
        "Only this machine type; empty: any.", examples=["a2-highgpu-8g"]
    )
    gpu_shape: Text | Annotated[list[Text], Field(max_length=20)] | None = optional(
        "A shape, or several in order of preference; empty or `any`: any.", examples=["H100-80GB"]
    )
    exit_duration: Span | None = optional("Strict: the nodes are released at its end.")
    priority: Annotated[Whole, Field(ge=1, le=1_000_000)] | None = optional(
        "Low 1-100, medium 101-200, high 201-300; a higher value is set to 300, and `message` says so.",
        examples=[101],
    )
    idle_time_out_duration: Span | Literal[""] | None = optional(
        "Release after this long without use; only if enforced."
    )
    enforce_idle_time_out: Flag | None = optional("Absent: true if there is a duration.")
    enable_eviction: Flag | None = optional("May make room for a higher band.")
    requeue_on_failure: Flag | None = optional("Queue again if its nodes fail.")
    multi_node: Flag | None = optional("Follows from numberOfGPUNodes; any other value has no effect.")
    dedicated_nodes: Flag | None = optional("Nodes are never shared between requests; false has no effect.")
    enable_rdma: Flag | None = optional("Only nodes with RDMA.", alias="enableRDMA")
    enable_secondary_network: Flag | None = optional("Only nodes with a second pod network.")
    cluster_name: Annotated[str, Field(max_length=63)] | None = optional(
        "Only this cluster; empty: any that the workspace spans."
    )
    preferred_clusters: Annotated[list[str], Field(max_length=100)] | None = optional(
        "Only these clusters, in this order of preference."
    )
    enable_auto_cluster_selection: Flag | None = optional("true: any cluster; then no cluster may be named.")
    enable_auto_gpu_selection: Flag | None = optional(
        "true: any shape and machine type; then neither may be named."
    )
    template_name: Annotated[str, Field(max_length=63)] | None = optional(
        "Template for the fields that are absent here."
    )
    not_before: Time | None = optional("Earliest wanted start.")
    start: StartMode | None = optional(
        "asap | ready (early only when a GPU pod waits) | promised (never before the promise)."
    )
    prefer: Prefer | None = optional(
        "Which of the fitting pools: earliest start, lowest price, or least memory."
    )
    max_wait: Span | None = optional("With prefer: use another pool if the preferred one would take longer.")
    model: Model | TextLine | None = optional("What will run; a text is its name.")


class GprAsk(Terms):
    """A new request."""

    gpr_name: TextLine = Field(
        default="", description="Display name; the file is named after it.", examples=["gpt-4o-workload"]
    )
    slice_name: str = Field(max_length=63, description="The workspace it is for.", examples=["vision"])
    name: Annotated[str, Field(max_length=63)] | None = optional(
        "Name of its file; absent: made from gprName and the id."
    )


class GprDetails(Terms):
    """The request that is filed with a workload, under its name."""

    gpr_name: TextLine | None = optional("Display name.")


def _truth(value: Any) -> Any:
    if value == 1 and value is not True:  # equal in Python
        raise ValueError("this must be true")
    return value


class GprEdit(Terms):
    """Changes of a request; absent fields stay. null leaves a field to the template and the defaults."""

    gpr_id: str = Field(max_length=200, description="The request's id, or slice/name.")
    gpr_name: TextLine | None = optional("Display name.")
    early_release: Annotated[Literal[True], BeforeValidator(_truth)] | None = optional(
        "true ends it now and frees its nodes."
    )
    extend: Span | None = optional("Total grace wanted beyond its duration.")
    stopped: Flag | None = optional(
        "true gives the nodes back and keeps the remaining time; false queues it again."
    )

    @model_validator(mode="after")
    def _changes_something(self) -> GprEdit:
        if self.model_fields_set <= {"gpr_id"}:
            raise ValueError("name at least one field to change: priority, gprName, earlyRelease, …")
        return self


class GprNamed(Wire):
    """Names a request."""

    gpr_id: str = Field(max_length=200, description="Its id, or slice/name.")


class GprFiled(Wire):
    """A request that was filed."""

    gpr_id: str = Field(description="Its id, valid at once.", examples=["gpr-7c29e338-ebda"])
    name: str = Field(description="slice/file.", examples=["vision/train-4f1c2"])
    change: Changed


class GprChanged(Wire):
    """A request that was changed."""

    gpr_id: str
    change: Changed


class SlipCauseData(Wire):
    """One cause of a promise's move to later."""

    cause: str = Field(description="From a closed list: docs/explain/estimates.md.")
    by: str = Field(description="What caused it, as far as the caller may see it.")


class SlipData(Wire):
    """A promise's move to later."""

    was: str
    now: str | None = Field(description="null: no start is known any more.")
    cause: str = Field(description="From a closed list: docs/explain/estimates.md.")
    by: str = Field(description="What caused it, as far as the caller may see it.")
    also: list[SlipCauseData] = Field(
        default=[], description="Further causes, if no single one moved the start."
    )
    at: str


class ForecastData(Wire):
    """When it will likely start, as quantiles, beside the promise."""

    p10: str
    p50: str
    p90: str
    learnt_from: int = Field(description="Number of finished requests behind it.")


class GprStanding(Wire):
    """Status of a request; the vendor's `GpuRequestStatus`."""

    provisioning_status: Literal[
        "Pending", "Queued", "Provisioning", "Successful", "Complete", "Cancelled", "Rejected", "Failed"
    ]
    failure_reason: str = Field(description="A sentence; empty: it did not fail.")
    num_gpus_allocated: int = Field(alias="numGPUsAllocated", description="All GPUs of its nodes.")
    start_timestamp: str = Field(description="When it got its nodes; empty: not yet.")
    completion_timestamp: str = Field(description="When it gave them back; empty: not yet.")
    cost: str = Field(description="So far.", examples=["12.34 USD"])
    nodes: list[str]
    internal_state: Literal["", "Reserved", "Released"]
    retry_count: int
    delayed_count: int = Field(description="How often its promise moved to later.")
    warned_at: str = Field(description="When its end was announced; empty: it is not near.")
    checkpointed_at: str = Field(description="When its work was last saved, as its pods say; empty: unknown.")


GPR: dict[str, Any] = {
    "gprId": "gpr-7c29e338-ebda",
    "name": "vision/gpt-4o-workload-4f1c2",
    "gprName": "gpt-4o-workload",
    "sliceName": "vision",
    "clusterName": "east",
    "numberOfGPUs": 8,
    "numberOfGPUNodes": 2,
    "instanceType": "a2-highgpu-8g",
    "memoryPerGPU": 80,
    "priority": 201,
    "gpuSharingMode": "dedicated",
    "estimatedStartTime": "2026-11-21T08:02:40Z",
    "estimatedWaitTime": "0h2m40s",
    "exitDuration": "6h0m0s",
    "earlyRelease": False,
    "gpuShape": "H100-80GB",
    "multiNode": True,
    "dedicatedNodes": True,
    "enableRDMA": False,
    "enableSecondaryNetwork": False,
    "idleTimeOutDuration": "",
    "enforceIdleTimeOut": False,
    "requeueOnFailure": True,
    "enableEviction": True,
    "phase": "Queued",
    "reason": "WaitingForNodes",
    "message": "2 nodes of east/h100 are free at 08:02",
    "position": 1,
    "rank": 1,
    "slips": [],
    "forecast": {
        "p10": "2026-11-21T08:02:40Z",
        "p50": "2026-11-21T08:02:40Z",
        "p90": "2026-11-21T09:00:00Z",
        "learntFrom": 40,
    },
    "endTime": "2026-11-21T14:02:40Z",
    "notBefore": "",
    "start": "asap",
    "prefer": "earliest",
    "maxWait": "",
    "extend": "0h0m0s",
    "stopped": False,
    "model": {"name": "gpt-4o", "framework": "pytorch", "parameters": {}},
    "gpuShapes": ["H100-80GB"],
    "preferredClusters": ["east"],
    "specDigest": "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    "status": {
        "provisioningStatus": "Queued",
        "failureReason": "",
        "numGPUsAllocated": 0,
        "startTimestamp": "",
        "completionTimestamp": "",
        "cost": "0.00 USD",
        "nodes": [],
        "internalState": "",
        "retryCount": 0,
        "delayedCount": 0,
        "warnedAt": "",
        "checkpointedAt": "",
    },
}
"""A waiting request, for the OpenAPI document."""


class GprData(Wire):
    """A request and its status; the vendor's `GpuRequestData` plus our own fields.

    Shape, memory, machine type and cluster are the requested ones; if any would do, those that it has or is promised.
    Times are RFC 3339 in UTC, empty if there is none.
    """

    model_config = example(GPR)

    gpr_id: str = Field(examples=["gpr-7c29e338-ebda"])
    name: str = Field(description="slice/file.")
    gpr_name: str
    slice_name: str
    cluster_name: str
    number_of_gpus: int = Field(alias="numberOfGPUs", description="Per node, as requested.")
    number_of_gpu_nodes: int = Field(alias="numberOfGPUNodes")
    instance_type: str
    memory_per_gpu: int = Field(alias="memoryPerGPU", description="GB.")
    priority: int
    gpu_sharing_mode: str
    estimated_start_time: str
    estimated_wait_time: str = Field(examples=["0h2m40s"])
    exit_duration: str = Field(examples=["6h0m0s"])
    early_release: bool
    gpu_shape: str
    multi_node: bool
    dedicated_nodes: bool
    enable_rdma: bool = Field(alias="enableRDMA")
    enable_secondary_network: bool
    idle_time_out_duration: str
    enforce_idle_time_out: bool
    requeue_on_failure: bool
    enable_eviction: bool
    phase: str = Field(
        description="Our own phase; see docs/reference/kinds/gpr.md. `Filed`: the controller has not seen it yet."
    )
    reason: str = Field(description="Stable identifier of why it is in this state; empty: all is well.")
    message: str = Field(description="The reason in words, with what to do.")
    position: int | None = Field(description="In the queue of its pool; null: it does not wait there.")
    rank: int | None = Field(description="In the whole queue.")
    slips: list[SlipData]
    forecast: ForecastData | None
    end_time: str = Field(description="Its strict end, decided or promised.")
    not_before: str
    start: StartMode
    prefer: Prefer
    max_wait: str
    extend: str
    stopped: bool
    model: Model
    gpu_shapes: list[str] = Field(description="All shapes it asks for, in order; empty: any.")
    preferred_clusters: list[str] = Field(description="All clusters it asks for, in order; empty: any.")
    spec_digest: str = Field(description="The version that an approval is bound to.")
    status: GprStanding
