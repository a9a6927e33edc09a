"""Names that routes may use: the reasons of events, and the fields for message templates.

The reasons are those of `reconciler.model.events.EventReason`, which this package does not import;
tests/schemas/rules/test_route_rules.py compares the two.
"""

from __future__ import annotations

WARNINGS = "warnings"
"""Stands for every reason that asks for action."""

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
"""All event reasons."""

TEMPLATE_WORDS = ("cluster", "message", "node", "reason", "request", "slice", "time", "type")
"""Names that a template may use after `$`."""
