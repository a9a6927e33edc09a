"""What routes may name: the reasons of events, and the words of a message's template.

The reasons are those of `reconciler.model.events.EventReason`, which this package does not import;
tests/schemas/rules/test_route_rules.py holds the two together.
"""

from __future__ import annotations

WARNINGS = "warnings"
"""Stands for every reason that asks somebody to act."""

REASONS = (
    "GPRCreated",
    "GPRPendingApproval",
    "GPRApproved",
    "GPRRejected",
    "GPREdited",
    "GPRMoved",
    "GPREditRefused",
    "GPRDelayed",
    "GPRCancelled",
    "GPRProvisioning",
    "GPRPrecheckFailed",
    "GPRPrecheckPassed",
    "GPRProvisioned",
    "GPRDuration25",
    "GPRDuration50",
    "GPRDuration75",
    "GPRExtended",
    "GPRExtensionRefused",
    "GPREarlyReleased",
    "GPRPreempted",
    "GPRPreemptionCalledOff",
    "GPRIdle",
    "GPRIdleOver",
    "GPRIdleReclaimed",
    "GPRStopped",
    "GPRResumed",
    "GPRExiting",
    "GPRCompleted",
    "GPRRequeued",
    "GPRFailed",
    "GPRFileMissing",
    "GPRNodeReplaced",
    "GPRNodeNotReplaced",
    "NodeOut",
    "NodeSuspect",
    "NodeBack",
    "NodePostcheckFailed",
    "PoolGrows",
    "PoolShrinks",
    "NodesLate",
    "ClusterUnreachable",
    "ClusterReachable",
    "GPRLatencyHigh",
    "GPRNamespaceNotReady",
    "GPRNamespaceReady",
    "DriftRepaired",
    "DriftSeen",
    "ActionRefused",
    "DeletionsHeld",
    "ControllerTookOver",
    "StatusPutBack",
    "GPRRecognised",
    "LeaseNotRecognised",
    "MirrorRemade",
    "ClockDoubted",
    "ClockBelieved",
    "WorkspaceRequested",
    "WorkspaceReady",
    "WorkspaceInvalid",
    "ManifestRefused",
    "VerificationBegan",
    "ChangeNotAuthorised",
    "ChangeAuthorised",
    "RepositoryAlarm",
    "MainFollowedAgain",
    "RouteSilent",
    "NotificationsLost",
    "EventsOmitted",
)
"""Of every event there is."""

TEMPLATE_WORDS = ("cluster", "message", "node", "reason", "request", "slice", "time", "type")
"""What a template may have behind a `$`."""
