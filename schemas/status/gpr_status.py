"""Machine-written status: facts only. Readers derive what follows from facts and the clock."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.approval import ApprovalLimit
from schemas.documents.base import Document, Metadata, Model
from schemas.documents.gpr import RequestSpec
from schemas.reading.units import Duration, Instant, LongName
from schemas.status.insights import FirstEstimate, Forecast


class Phase(StrEnum):
    """The phase of a request; `scheduler.lifecycle` has the transitions."""

    PENDING_APPROVAL = "PendingApproval"
    QUEUED = "Queued"
    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    RELEASING = "Releasing"
    COMPLETED = "Completed"
    CANCELLED = "Cancelled"
    REJECTED = "Rejected"
    FAILED = "Failed"


WAITING = frozenset({Phase.PENDING_APPROVAL, Phase.QUEUED})
HOLDING = frozenset({Phase.PROVISIONING, Phase.PROVISIONED, Phase.RELEASING})
TERMINAL = frozenset({Phase.COMPLETED, Phase.CANCELLED, Phase.REJECTED, Phase.FAILED})


class Cause(StrEnum):
    """The closed list of causes for which a promised start moves later."""

    HIGHER_RANK_ARRIVED = "HigherRankArrived"
    APPROVED = "Approved"
    REQUEUED = "Requeued"
    REQUEST_CHANGED = "RequestChanged"
    ADMIN_MOVED = "AdminMoved"
    POLICY_CHANGED = "PolicyChanged"
    MAINTENANCE_ADDED = "MaintenanceAdded"
    NODE_LOST = "NodeLost"
    NODE_REPLACED = "NodeReplaced"
    CHECKS_FAILED = "ChecksFailed"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    CONTROLLER_ABSENT = "ControllerAbsent"


class SlipCause(Model):
    """One cause of a start's move to later."""

    cause: Annotated[Cause, Field(description="Why, from the closed list.")]
    by: Annotated[str, Field(description="The request, node or cluster behind it.")] = ""

    def __str__(self) -> str:
        return f"{self.cause} ({self.by})" if self.by else str(self.cause)


class Slip(Model):
    """A committed start that moved later, and why."""

    was: Annotated[Instant, Field(description="The previously promised start.")]
    now: Annotated[Instant | None, Field(description="Absent: no start is known any more.")] = None
    cause: Annotated[Cause, Field(description="Why, from the closed list.")]
    by: Annotated[str, Field(description="The request, node or cluster behind it.")] = ""
    also: Annotated[
        tuple[SlipCause, ...],
        Field(description="Further causes, if no single one moved the start."),
    ] = ()
    at: Annotated[Instant, Field(description="When it was committed.")]

    @property
    def causes(self) -> tuple[SlipCause, ...]:
        """All causes: only together they moved the start."""
        return (SlipCause(cause=self.cause, by=self.by), *self.also)


class Condition(Model):
    """A condition of a request beside its phase."""

    type: Annotated[str, Field(description="FileMissing, EditRefused, InvalidFile, ExtensionRefused, …")]
    reason: Annotated[str, Field(description="Stable CamelCase identifier for machines.")]
    message: Annotated[str, Field(description="What happened, and what to do.")]
    at: Annotated[Instant, Field(description="Since when.")]


class Assignment(Model):
    """The nodes of a request, from Provisioning on."""

    cluster: Annotated[str, Field(description="Cluster of its nodes.")]
    pool: Annotated[str, Field(description="Pool of its nodes.")]
    nodes: Annotated[tuple[str, ...], Field(description="Names of its nodes.")]


class Check(Model):
    """One check of one node: before a start, while it runs, after an end."""

    stage: Annotated[
        Literal["pre", "run", "post"],
        Field(
            description="pre: before the start; run: between its nodes, when it last began to pass or to fail; "
            "post: after the end."
        ),
    ]
    node: Annotated[str, Field(description="The checked node.")]
    name: Annotated[str, Field(description="Name of the check.")]
    passed: Annotated[bool, Field(description="Whether the node passed.")]
    value: Annotated[str, Field(description="What was measured.")] = ""
    log: Annotated[str, Field(description="The end of its log, without secrets.")] = ""
    at: Annotated[Instant, Field(description="When it ended.")]


class Cost(Model):
    """What a request has cost so far, as of its last change."""

    amount: Annotated[float, Field(description="In the project's currency.")]
    currency: Annotated[str, Field(description="The project's currency.")]
    gpu_hours: Annotated[float, Field(description="GPU-hours held, all GPUs of each node.")]


class Provenance(Model):
    """Who is responsible for the current content of a request's file; absent if main is not verified."""

    commit: Annotated[str, Field(description="Commit of main that brought it.")]
    authors: Annotated[tuple[str, ...], Field(description="Addresses of its authors, sorted.")] = ()
    merged_by: Annotated[
        str | None, Field(description="Address of the admin whose own signed merge brought it in.")
    ] = None


class ApprovalState(Model):
    """Why a request needs an admin, and the decision."""

    reasons: Annotated[
        tuple[str, ...],
        Field(description="QuotaExceeded, NodeLimitExceeded, …: docs/approval.md lists them."),
    ] = ()
    decision: Annotated[Literal["approve", "reject"] | None, Field(description="Absent: not decided.")] = None
    by: Annotated[str, Field(description="Handle of the admin; for two admins both, with a comma.")] = ""
    how: Annotated[
        Literal["file", "signed", "forge", "merge"] | None,
        Field(
            description="The evidence: an unsigned file, a signature, a review on the forge, or a signed merge."
        ),
    ] = None
    ids: Annotated[
        tuple[str, ...], Field(description="Ids of the statements that count, so that none counts twice.")
    ] = ()
    message: Annotated[str, Field(description="The admin's reason.")] = ""
    limit: Annotated[ApprovalLimit | None, Field(description="The most that was approved.")] = None
    digest: Annotated[
        str | None,
        Field(description="Also approved: the version that was edited while the request held nodes."),
    ] = None
    at: Annotated[Instant | None, Field(description="When the decision was first seen.")] = None


class Mark(Model):
    """A share of the lease that has passed, reported exactly once."""

    percent: Annotated[int, Field(description="25, 50 or 75.")]
    at: Annotated[Instant, Field(description="When it was reported.")]


class Place(Model):
    """Inputs of the rank, read once when the request takes its place in the queue."""

    used: Annotated[
        float, Field(description="GPU-hours that its slice had used (decayed) or held in leases.")
    ] = 0.0
    ahead: Annotated[
        float,
        Field(description="GPU-hours of waiting requests of its own slice that were filed before it."),
    ] = 0.0
    first_come: Annotated[
        Instant | None,
        Field(description="The start that first come, first served in its band would have given it then."),
    ] = None


class Return(Model):
    """When a preempted request starts again, for its remaining time."""

    start: Annotated[Instant, Field(description="The promise.")]
    end: Annotated[Instant, Field(description="The promise's end.")]
    cluster: Annotated[str, Field(description="Cluster of the promise.")]
    pool: Annotated[str, Field(description="Pool of the promise.")]
    bound_nodes: Annotated[
        tuple[str, ...],
        Field(description="Nodes with their own maintenance windows that the promise counts on."),
    ] = ()


class Eviction(Model):
    """Its nodes are released before its strict end, and why."""

    reason: Annotated[Literal["Preempted", "Idle", "Stopped"], Field(description="Why they are released.")]
    at: Annotated[Instant, Field(description="When they are released; people are notified before.")]
    by: Annotated[str, Field(description="slice/name of the request it makes room for, if any.")] = ""
    back: Annotated[
        Return | None, Field(description="When it starts again, if it makes room; absent: unknown.")
    ] = None


class Charge(Model):
    """A request admitted under its slice's monthly GPU-hours or queue limit."""

    gpu_hours: Annotated[
        float, Field(description="GPU-hours charged while it waits or runs; the unused part is given back.")
    ]
    barred: Annotated[
        tuple[str, ...], Field(description="Pools it may not use: its slice's hours there are used up.")
    ] = ()
    month: Annotated[
        str | None,
        Field(description="The month charged for a lease that was cut short: the month of its start."),
    ] = None


class GPRStatus(Model):
    """All that is known about one request."""

    phase: Annotated[Phase, Field(description="Its phase.")]
    reason: Annotated[str | None, Field(description="Why: a stable CamelCase identifier.")] = None
    message: Annotated[str | None, Field(description="The reason in words, with what to do.")] = None
    conditions: Annotated[tuple[Condition, ...], Field(description="Conditions beside the phase.")] = ()
    uid: Annotated[str, Field(description="Unique for the life of the file: gpr-xxxxxxxx-xxxx.")]
    filed_at: Annotated[Instant, Field(description="When the request took its place in the queue.")]
    waits_from: Annotated[
        Instant | None,
        Field(description="When its wait began, if it first wanted a later start; absent: filedAt."),
    ] = None
    estimated_start_time: Annotated[Instant | None, Field(description="The promise.")] = None
    estimated_end_time: Annotated[Instant | None, Field(description="The promise's end.")] = None
    estimated_cluster: Annotated[str | None, Field(description="Cluster of the promise.")] = None
    estimated_pool: Annotated[str | None, Field(description="Pool of the promise.")] = None
    bound_nodes: Annotated[
        tuple[str, ...],
        Field(description="Nodes with their own maintenance windows that the promise counts on."),
    ] = ()
    forecast: Annotated[
        Forecast | None,
        Field(description="When it will likely start; absent: too little data."),
    ] = None
    first_estimate: Annotated[
        FirstEstimate | None, Field(description="Its estimate when it took its place.")
    ] = None
    slips: Annotated[
        tuple[Slip, ...], Field(description="Every move of the promise to later, oldest first.")
    ] = ()
    assignment: Annotated[Assignment | None, Field(description="Its nodes, once decided.")] = None
    held_from: Annotated[Instant | None, Field(description="When its nodes were taken for checks.")] = None
    start_time: Annotated[Instant | None, Field(description="When it became Provisioned.")] = None
    end_time: Annotated[Instant | None, Field(description="The strict end.")] = None
    released_at: Annotated[Instant | None, Field(description="When its last node was clean again.")] = None
    approval: Annotated[ApprovalState | None, Field(description="Absent: it needs no admin.")] = None
    checks: Annotated[tuple[Check, ...], Field(description="Checks of its nodes, oldest first.")] = ()
    cost: Annotated[Cost | None, Field(description="What it has cost so far.")] = None
    cost_before: Annotated[Cost | None, Field(description="Of earlier leases of a requeued request.")] = None
    retry_count: Annotated[int, Field(description="How often it was queued again after failed checks.")] = 0
    delayed_count: Annotated[int, Field(description="How often its promise moved later.")] = 0
    evicted_by: Annotated[str | None, Field(description="slice/name of the request it made room for.")] = None
    replaced_nodes: Annotated[tuple[str, ...], Field(description="Nodes taken out while it ran.")] = ()
    marks: Annotated[tuple[Mark, ...], Field(description="Shares of its lease already reported.")] = ()
    remaining: Annotated[Duration | None, Field(description="Remaining time of a requeued request.")] = None
    served: Annotated[Duration, Field(description="Time served in earlier leases.")] = timedelta()
    waited_s: Annotated[
        int | None,
        Field(ge=0, description="Seconds from filing to its first start; absent: it never ran."),
    ] = None
    extended_by: Annotated[Duration, Field(description="Grace granted beyond its duration.")] = timedelta()
    place: Annotated[Place | None, Field(description="Inputs of its rank beside its own fields.")] = None
    displaced_count: Annotated[
        int, Field(description="How often a request of another slice took its promised nodes.")
    ] = 0
    eviction: Annotated[
        Eviction | None, Field(description="Absent: it keeps its nodes until its strict end.")
    ] = None
    idle_since: Annotated[Instant | None, Field(description="Since when none of its GPUs is used.")] = None
    charge: Annotated[
        Charge | None, Field(description="Its charge against monthly bounds; absent: none.")
    ] = None
    accepted_spec: Annotated[
        RequestSpec, Field(description="The request as last accepted, template expanded.")
    ]
    spec_digest: Annotated[
        str, Field(description="Digest of the accepted spec, to which approvals are bound.")
    ]
    provenance: Annotated[
        Provenance | None,
        Field(description="Who is responsible for the accepted spec; absent: main is not verified."),
    ] = None


class GPRRecord(Document):
    """`slices/<slice>/gprs/<name>.yaml` on the status branch."""

    kind: Annotated[Literal["GPR"], Field(description="Kind of document.")] = "GPR"
    status: Annotated[GPRStatus, Field(description="All that is known about the request.")]


class GpuReport(Model):
    """One GPU as judged by its agent."""

    uuid: Annotated[str, Field(description="The vendor's identity of the GPU.")]
    index: Annotated[int, Field(description="Its number in the node.")]
    product: Annotated[str, Field(description="Product name.")]
    memory_mib: Annotated[int, Field(description="Memory, MiB.")]
    healthy: Annotated[bool, Field(description="The agent's verdict.")]
    reasons: Annotated[tuple[str, ...], Field(description="Current faults, worst first.")] = ()


class NodeMetadata(Metadata):
    """Metadata of documents that are named after a node."""

    name: Annotated[LongName, Field(description="Name of the node.")]


class AgentReport(Document):
    """`report.yaml` on an agent's own branch; written on change only."""

    metadata: Annotated[
        NodeMetadata, Field(description="The node's name, unless several agents watch one node.")
    ]

    kind: Annotated[Literal["AgentReport"], Field(description="Kind of document.")] = "AgentReport"
    cluster: Annotated[str, Field(description="Cluster of the node.")]
    node: Annotated[str, Field(description="The reported node.")]
    at: Annotated[Instant, Field(description="When something last changed.")]
    healthy: Annotated[bool, Field(description="Whether the node can serve.")]
    reason: Annotated[str | None, Field(description="The worst fault.")] = None
    message: Annotated[str | None, Field(description="The same for people.")] = None
    gpus: Annotated[tuple[GpuReport, ...], Field(description="Every GPU of the node.")] = ()
    faults: Annotated[
        tuple[Instant, ...], Field(description="When faults began within the last day, oldest first.")
    ] = ()
    idle_since: Annotated[
        Instant | None,
        Field(description="Since when no GPU of the node is used; absent: one is used, or it is unknown."),
    ] = None


class NodeState(StrEnum):
    """What a node is to the planner."""

    READY = "Ready"
    UNHEALTHY = "Unhealthy"  # reported bad and taken out
    SUSPECT = "Suspect"  # reported bad, but the pool's isolation limit is reached: an admin must decide
    QUARANTINED = "Quarantined"  # bad too often, or unclean after a lease: an admin must clear it
    CORDONED = "Cordoned"  # taken out by someone else
    DIRTY = "Dirty"  # its lease is over, but the node is not clean yet
    LOST = "Lost"  # unknown to the cluster, or silent
    UNFIT = "Unfit"  # differs from its pool's manifest
    OCCUPIED = "Occupied"  # runs GPU pods of no slice


class NodeRecord(Document):
    """`nodes/<cluster>/<node>.yaml`: a node that is not Ready, or was not within the last day."""

    kind: Annotated[Literal["Node"], Field(description="Kind of document.")] = "Node"
    metadata: Annotated[NodeMetadata, Field(description="The node's name.")]
    cluster: Annotated[str, Field(description="Cluster of the node.")]
    pool: Annotated[str, Field(description="Pool of the node.")]
    state: Annotated[NodeState, Field(description="What it is to the planner.")]
    reason: Annotated[str | None, Field(description="Why: a stable CamelCase identifier.")] = None
    message: Annotated[str | None, Field(description="The same for people.")] = None
    since: Annotated[Instant, Field(description="Since when.")]
    until: Annotated[
        Instant | None, Field(description="When a failed check no longer counts against it.")
    ] = None
    gpus: Annotated[tuple[GpuReport, ...], Field(description="Its GPUs as last reported.")] = ()


class ClusterState(Model):
    """Whether a cluster answers, and since when."""

    name: Annotated[str, Field(description="Name of the cluster.")]
    reachable: Annotated[bool, Field(description="Whether it answers.")]
    since: Annotated[Instant, Field(description="Since when.")]


class WorkspacePhase(StrEnum):
    """The phase of a workspace request."""

    PENDING_APPROVAL = "PendingApproval"
    READY = "Ready"
    SUPERSEDED = "Superseded"  # the slice has a file of its own
    INVALID = "Invalid"


class WorkspaceRecord(Document):
    """`requests/<name>.yaml` on the status branch: the outcome of a workspace request."""

    kind: Annotated[Literal["WorkspaceRequest"], Field(description="Kind of document.")] = "WorkspaceRequest"
    phase: Annotated[WorkspacePhase, Field(description="Its phase.")]
    message: Annotated[str, Field(description="What happened, and what the requester does next.")]
    since: Annotated[Instant, Field(description="Since when.")]


class ControllerRecord(Document):
    """`controller.yaml`: what the controller must remember and no other file holds."""

    kind: Annotated[Literal["Controller"], Field(description="Kind of document.")] = "Controller"
    held_deletions: Annotated[
        str, Field(description="Digest of the deletions that wait for an admin; empty: none.")
    ] = ""
    clusters: Annotated[tuple[ClusterState, ...], Field(description="Sorted by name.")] = ()
    unread: Annotated[
        tuple[str, ...],
        Field(
            description="Clusters whose marks were not read since the branch was lost; until then no lease marked "
            "there is taken back. `*`: all."
        ),
    ] = ()
