"""The controller's events: a fixed list of reasons, each event reported once, in the commit that made it
true.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Told(StrEnum):
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


MARKS = {25: Told.MARK_25, 50: Told.MARK_50, 75: Told.MARK_75}
"""Shares of a lease, in percent, that are reported."""


def mark_text(request: str, percent: int) -> str:
    """The text of a mark: the same from every process."""
    return f"{request} has used {percent} % of its time"


@dataclass(frozen=True, slots=True)
class Event:
    """One event, with a text for people."""

    at: datetime
    reason: Told
    message: str
    request: str = ""  # slice/name
    cluster: str = ""
    node: str = ""
    slice: str = ""  # if no request is concerned

    @property
    def warning(self) -> bool:
        """True if a person may have to act."""
        return self.reason in _WARNINGS


_WARNINGS = frozenset({
    Told.EDIT_REFUSED, Told.DELAYED, Told.PREEMPTED, Told.IDLE, Told.IDLE_RECLAIMED, Told.CHECK_FAILED,
    Told.EXTENSION_REFUSED, Told.REQUEUED, Told.FAILED, Told.FILE_MISSING, Told.NODE_NOT_REPLACED,
    Told.NODE_OUT, Told.NODE_SUSPECT, Told.POST_CHECK_FAILED, Told.NODES_LATE, Told.CLUSTER_UNREACHABLE,
    Told.MANIFEST_REFUSED, Told.DRIFT, Told.ACTION_REFUSED, Told.DELETIONS_HELD, Told.ALARM,
    Told.DRIFT_SEEN, Told.LATENCY_HIGH, Told.WORKSPACE_INVALID, Told.NOT_AUTHORISED,
    Told.ROUTE_SILENT, Told.NOTICES_LOST, Told.EVENTS_OMITTED, Told.PUT_BACK, Told.RECOGNISED, Told.NOT_RECOGNISED,
    Told.MENDED, Told.CLOCK_DOUBTED, Told.NAMESPACE_NOT_READY,
})  # fmt: skip
