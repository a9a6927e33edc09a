"""Machine-written status: facts only. Readers derive what follows from facts and the clock."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Literal

from pydantic import Field

from schemas.documents.approval import ApprovalLimit
from schemas.documents.base import Document, Model
from schemas.documents.gpr import RequestSpec
from schemas.reading.units import Duration, Instant
from schemas.status.checkpoints import Checkpoint, Warned
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

    cause: Cause = Field(description="Why, from the closed list.")
    by: str = Field("", description="The request, node or cluster behind it.")

    def __str__(self) -> str:
        return f"{self.cause} ({self.by})" if self.by else str(self.cause)


class Slip(Model):
    """A committed start that moved later, and why."""

    was: Instant = Field(description="The previously promised start.")
    now: Instant | None = Field(None, description="Absent: no start is known any more.")
    cause: Cause = Field(description="Why, from the closed list.")
    by: str = Field("", description="The request, node or cluster behind it.")
    also: tuple[SlipCause, ...] = Field((), description="Further causes, if no single one moved the start.")
    at: Instant = Field(description="When it was committed.")

    @property
    def causes(self) -> tuple[SlipCause, ...]:
        """All causes: only together they moved the start."""
        return (SlipCause(cause=self.cause, by=self.by), *self.also)


class Condition(Model):
    """A condition of a request beside its phase."""

    type: str = Field(description="FileMissing, EditRefused, InvalidFile, ExtensionRefused, …")
    reason: str = Field(description="Stable CamelCase identifier for machines.")
    message: str = Field(description="What happened, and what to do.")
    at: Instant = Field(description="Since when.")


class Assignment(Model):
    """The nodes of a request, from Provisioning on."""

    cluster: str = Field(description="Cluster of its nodes.")
    pool: str = Field(description="Pool of its nodes.")
    nodes: tuple[str, ...] = Field(description="Names of its nodes.")


class Check(Model):
    """One check of one node: before a start, while it runs, after an end."""

    stage: Literal["pre", "run", "post"] = Field(
        description="pre: before the start; run: between its nodes, when it last began to pass or to fail; "
        "post: after the end."
    )
    node: str = Field(description="The checked node.")
    name: str = Field(description="Name of the check.")
    passed: bool = Field(description="Whether the node passed.")
    value: str = Field("", description="What was measured.")
    log: str = Field("", description="The end of its log, without secrets.")
    at: Instant = Field(description="When it ended.")


class Cost(Model):
    """What a request has cost so far, as of its last change."""

    amount: float = Field(description="In the project's currency.")
    currency: str = Field(description="The project's currency.")
    gpu_hours: float = Field(description="GPU-hours held, all GPUs of each node, without those credited.")
    credited_gpu_hours: float | None = Field(
        None, description="GPU-hours of failed nodes that were not counted; absent: none."
    )


class FailedNode(Model):
    """A node of a running request that fails now."""

    name: str = Field(description="Name of the node.")
    since: Instant = Field(description="Since when.")


class LostTime(Model):
    """Time of its present lease in which nodes of a request failed."""

    seconds: int = Field(0, description="Node-seconds of failures that are over.")
    replaced: int = Field(0, description="Nodes that were replaced.")
    failing: tuple[FailedNode, ...] = Field((), description="Nodes that fail now, by name.")


class Provenance(Model):
    """Who is responsible for the current content of a request's file; absent if main is not verified."""

    commit: str = Field(description="Commit of main that brought it.")
    authors: tuple[str, ...] = Field((), description="Addresses of its authors, sorted.")
    merged_by: str | None = Field(
        None, description="Address of the admin whose own signed merge brought it in."
    )


class ApprovalState(Model):
    """Why a request needs an admin, and the decision."""

    reasons: tuple[str, ...] = Field(
        (), description="QuotaExceeded, NodeLimitExceeded, …: docs/reference/kinds/approval.md lists them."
    )
    decision: Literal["approve", "reject"] | None = Field(None, description="Absent: not decided.")
    by: str = Field("", description="Handle of the admin; for two admins both, with a comma.")
    how: Literal["file", "signed", "forge", "merge"] | None = Field(
        None,
        description="The evidence: an unsigned file, a signature, a review on the forge, or a signed merge.",
    )
    ids: tuple[str, ...] = Field(
        (), description="Ids of the statements that count, so that none counts twice."
    )
    message: str = Field("", description="The admin's reason.")
    limit: ApprovalLimit | None = Field(None, description="The most that was approved.")
    digest: str | None = Field(
        None, description="Also approved: the version that was edited while the request held nodes."
    )
    at: Instant | None = Field(None, description="When the decision was first seen.")


class Mark(Model):
    """A share of the lease that has passed, reported exactly once."""

    percent: int = Field(description="25, 50 or 75.")
    at: Instant = Field(description="When it was reported.")


class Place(Model):
    """Inputs of the rank, read once when the request takes its place in the queue."""

    used: float = Field(0.0, description="GPU-hours that its slice had used (decayed) or held in leases.")
    ahead: float = Field(
        0.0, description="GPU-hours of waiting requests of its own slice that were filed before it."
    )
    first_come: Instant | None = Field(
        None, description="The start that first come, first served in its band would have given it then."
    )


class Return(Model):
    """When a preempted request starts again, for its remaining time."""

    start: Instant = Field(description="The promise.")
    end: Instant = Field(description="The promise's end.")
    cluster: str = Field(description="Cluster of the promise.")
    pool: str = Field(description="Pool of the promise.")
    bound_nodes: tuple[str, ...] = Field(
        (), description="Nodes with their own maintenance windows that the promise counts on."
    )


class Eviction(Model):
    """Its nodes are released before its strict end, and why."""

    reason: Literal["Preempted", "Idle", "Stopped"] = Field(description="Why they are released.")
    at: Instant = Field(description="When they are released; people are notified before.")
    by: str = Field("", description="slice/name of the request it makes room for, if any.")
    back: Return | None = Field(None, description="When it starts again, if it makes room; absent: unknown.")


class Charge(Model):
    """A request admitted under its slice's monthly GPU-hours or queue limit."""

    gpu_hours: float = Field(
        description="GPU-hours charged while it waits or runs; the unused part is given back."
    )
    barred: tuple[str, ...] = Field(
        (), description="Pools it may not use: its slice's hours there are used up."
    )
    month: str | None = Field(
        None, description="The month charged for a lease that was cut short: the month of its start."
    )


class GPRStatus(Model):
    """All that is known about one request."""

    phase: Phase = Field(description="Its phase.")
    reason: str | None = Field(None, description="Why: a stable CamelCase identifier.")
    message: str | None = Field(None, description="The reason in words, with what to do.")
    conditions: tuple[Condition, ...] = Field((), description="Conditions beside the phase.")
    uid: str = Field(description="Unique for the life of the file: gpr-xxxxxxxx-xxxx.")
    filed_at: Instant = Field(description="When the request took its place in the queue.")
    waits_from: Instant | None = Field(
        None, description="When its wait began, if it first wanted a later start; absent: filedAt."
    )
    estimated_start_time: Instant | None = Field(None, description="The promise.")
    estimated_end_time: Instant | None = Field(None, description="The promise's end.")
    estimated_cluster: str | None = Field(None, description="Cluster of the promise.")
    estimated_pool: str | None = Field(None, description="Pool of the promise.")
    bound_nodes: tuple[str, ...] = Field(
        (), description="Nodes with their own maintenance windows that the promise counts on."
    )
    forecast: Forecast | None = Field(None, description="When it will likely start; absent: too little data.")
    first_estimate: FirstEstimate | None = Field(None, description="Its estimate when it took its place.")
    slips: tuple[Slip, ...] = Field((), description="Every move of the promise to later, oldest first.")
    assignment: Assignment | None = Field(None, description="Its nodes, once decided.")
    held_from: Instant | None = Field(None, description="When its nodes were taken for checks.")
    start_time: Instant | None = Field(None, description="When it became Provisioned.")
    end_time: Instant | None = Field(None, description="The strict end.")
    released_at: Instant | None = Field(None, description="When its last node was clean again.")
    approval: ApprovalState | None = Field(None, description="Absent: it needs no admin.")
    checks: tuple[Check, ...] = Field((), description="Checks of its nodes, oldest first.")
    cost: Cost | None = Field(None, description="What it has cost so far.")
    cost_before: Cost | None = Field(None, description="Of earlier leases of a requeued request.")
    retry_count: int = Field(0, description="How often it was queued again after failed checks.")
    delayed_count: int = Field(0, description="How often its promise moved later.")
    evicted_by: str | None = Field(None, description="slice/name of the request it made room for.")
    replaced_nodes: tuple[str, ...] = Field((), description="Nodes taken out while it ran.")
    lost: LostTime | None = Field(None, description="What its nodes' failures took; absent: nothing.")
    marks: tuple[Mark, ...] = Field((), description="Shares of its lease already reported.")
    warned: Warned | None = Field(None, description="The announcement of its end; absent: not near yet.")
    checkpoint: Checkpoint | None = Field(None, description="When its work was last saved; absent: unknown.")
    remaining: Duration | None = Field(None, description="Remaining time of a requeued request.")
    served: Duration = Field(timedelta(), description="Time served in earlier leases.")
    waited_s: int | None = Field(
        None, ge=0, description="Seconds from filing to its first start; absent: it never ran."
    )
    extended_by: Duration = Field(timedelta(), description="Grace granted beyond its duration.")
    place: Place | None = Field(None, description="Inputs of its rank beside its own fields.")
    displaced_count: int = Field(
        0, description="How often a request of another slice took its promised nodes."
    )
    eviction: Eviction | None = Field(None, description="Absent: it keeps its nodes until its strict end.")
    idle_since: Instant | None = Field(None, description="Since when none of its GPUs is used.")
    charge: Charge | None = Field(None, description="Its charge against monthly bounds; absent: none.")
    accepted_spec: RequestSpec = Field(description="The request as last accepted, template expanded.")
    spec_digest: str = Field(description="Digest of the accepted spec, to which approvals are bound.")
    provenance: Provenance | None = Field(
        None, description="Who is responsible for the accepted spec; absent: main is not verified."
    )


class GPRRecord(Document):
    """`slices/<slice>/gprs/<name>.yaml` on the status branch."""

    kind: Literal["GPR"] = Field("GPR", description="Kind of document.")
    status: GPRStatus = Field(description="All that is known about the request.")


class ClusterState(Model):
    """Whether a cluster answers, and since when."""

    name: str = Field(description="Name of the cluster.")
    reachable: bool = Field(description="Whether it answers.")
    since: Instant = Field(description="Since when.")


class WorkspacePhase(StrEnum):
    """The phase of a workspace request."""

    PENDING_APPROVAL = "PendingApproval"
    READY = "Ready"
    SUPERSEDED = "Superseded"  # the slice has a file of its own
    INVALID = "Invalid"


class WorkspaceRecord(Document):
    """`requests/<name>.yaml` on the status branch: the outcome of a workspace request."""

    kind: Literal["WorkspaceRequest"] = Field("WorkspaceRequest", description="Kind of document.")
    phase: WorkspacePhase = Field(description="Its phase.")
    message: str = Field(description="What happened, and what the requester does next.")
    since: Instant = Field(description="Since when.")


class ControllerRecord(Document):
    """`controller.yaml`: what the controller must remember and no other file holds."""

    kind: Literal["Controller"] = Field("Controller", description="Kind of document.")
    held_deletions: str = Field(
        "", description="Digest of the deletions that wait for an admin; empty: none."
    )
    clusters: tuple[ClusterState, ...] = Field((), description="Sorted by name.")
    unread: tuple[str, ...] = Field(
        (),
        description="Clusters whose marks were not read since the branch was lost; until then no lease marked "
        "there is taken back. `*`: all.",
    )
