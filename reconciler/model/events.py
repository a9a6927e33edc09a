"""The controller's events: a fixed list of reasons, each event reported once, in the commit that made it true."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class EventReason(StrEnum):
    """All events; docs/operations.md explains when each appears and what to do."""

    FILED = "GPRCreated"
    PENDING_APPROVAL = "GPRPendingApproval"
    APPROVED = "GPRApproved"
    REJECTED = "GPRRejected"
    EDITED = "GPREdited"
    MOVED = "GPRMoved"
    EDIT_REFUSED = "GPREditRefused"
    DELAYED = "GPRDelayed"
    CANCELLED = "GPRCancelled"
    PROVISIONING = "GPRProvisioning"
    CHECK_FAILED = "GPRPrecheckFailed"
    CHECKS_PASSED = "GPRPrecheckPassed"
    PROVISIONED = "GPRProvisioned"
    MARK_25 = "GPRDuration25"
    MARK_50 = "GPRDuration50"
    MARK_75 = "GPRDuration75"
    EXTENDED = "GPRExtended"
    EXTENSION_REFUSED = "GPRExtensionRefused"
    EARLY_RELEASED = "GPREarlyReleased"
    PREEMPTED = "GPRPreempted"
    PREEMPTION_OFF = "GPRPreemptionCalledOff"
    IDLE = "GPRIdle"
    IDLE_OVER = "GPRIdleOver"
    IDLE_RECLAIMED = "GPRIdleReclaimed"
    STOPPED = "GPRStopped"
    RESUMED = "GPRResumed"
    EXITING = "GPRExiting"
    COMPLETED = "GPRCompleted"
    REQUEUED = "GPRRequeued"
    FAILED = "GPRFailed"
    FILE_MISSING = "GPRFileMissing"
    NODE_REPLACED = "GPRNodeReplaced"
    NODE_NOT_REPLACED = "GPRNodeNotReplaced"
    NODE_OUT = "NodeOut"
    NODE_SUSPECT = "NodeSuspect"
    NODE_BACK = "NodeBack"
    POST_CHECK_FAILED = "NodePostcheckFailed"
    POOL_GROWS = "PoolGrows"
    POOL_SHRINKS = "PoolShrinks"
    NODES_LATE = "NodesLate"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    CLUSTER_REACHABLE = "ClusterReachable"
    LATENCY_HIGH = "GPRLatencyHigh"
    NAMESPACE_NOT_READY = "GPRNamespaceNotReady"
    NAMESPACE_READY = "GPRNamespaceReady"
    DRIFT = "DriftRepaired"
    DRIFT_SEEN = "DriftSeen"
    ACTION_REFUSED = "ActionRefused"
    DELETIONS_HELD = "DeletionsHeld"
    TAKEN_OVER = "ControllerTookOver"
    PUT_BACK = "StatusPutBack"
    RECOGNISED = "GPRRecognised"
    NOT_RECOGNISED = "LeaseNotRecognised"
    MENDED = "MirrorRemade"
    CLOCK_DOUBTED = "ClockDoubted"
    CLOCK_BELIEVED = "ClockBelieved"
    WORKSPACE_ASKED = "WorkspaceRequested"
    WORKSPACE_READY = "WorkspaceReady"
    WORKSPACE_INVALID = "WorkspaceInvalid"
    MANIFEST_REFUSED = "ManifestRefused"
    TRUST_BEGAN = "VerificationBegan"
    NOT_AUTHORISED = "ChangeNotAuthorised"
    AUTHORISED = "ChangeAuthorised"
    ALARM = "RepositoryAlarm"
    FOLLOWED = "MainFollowedAgain"
    ROUTE_SILENT = "RouteSilent"
    NOTICES_LOST = "NotificationsLost"
    EVENTS_OMITTED = "EventsOmitted"


MARKS = {25: EventReason.MARK_25, 50: EventReason.MARK_50, 75: EventReason.MARK_75}
"""Shares of a lease, in percent, that are reported."""


def mark_text(request: str, percent: int) -> str:
    """The text of a mark: the same from every process."""
    return f"{request} has used {percent} % of its time"


@dataclass(frozen=True, slots=True)
class Event:
    """One event, with a text for people."""

    at: datetime
    reason: EventReason
    message: str
    request: str = ""  # slice/name
    cluster: str = ""
    node: str = ""
    slice: str = ""  # if no request is concerned

    @property
    def warning(self) -> bool:
        """True if a person may have to act."""
        return self.reason in _WARNINGS


_WARNINGS = frozenset(
    {
        EventReason.EDIT_REFUSED,
        EventReason.DELAYED,
        EventReason.PREEMPTED,
        EventReason.IDLE,
        EventReason.IDLE_RECLAIMED,
        EventReason.CHECK_FAILED,
        EventReason.EXTENSION_REFUSED,
        EventReason.REQUEUED,
        EventReason.FAILED,
        EventReason.FILE_MISSING,
        EventReason.NODE_NOT_REPLACED,
        EventReason.NODE_OUT,
        EventReason.NODE_SUSPECT,
        EventReason.POST_CHECK_FAILED,
        EventReason.NODES_LATE,
        EventReason.CLUSTER_UNREACHABLE,
        EventReason.MANIFEST_REFUSED,
        EventReason.DRIFT,
        EventReason.ACTION_REFUSED,
        EventReason.DELETIONS_HELD,
        EventReason.ALARM,
        EventReason.DRIFT_SEEN,
        EventReason.LATENCY_HIGH,
        EventReason.WORKSPACE_INVALID,
        EventReason.NOT_AUTHORISED,
        EventReason.ROUTE_SILENT,
        EventReason.NOTICES_LOST,
        EventReason.EVENTS_OMITTED,
        EventReason.PUT_BACK,
        EventReason.RECOGNISED,
        EventReason.NOT_RECOGNISED,
        EventReason.MENDED,
        EventReason.CLOCK_DOUBTED,
        EventReason.NAMESPACE_NOT_READY,
    }
)
