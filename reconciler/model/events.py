"""The controller's events: each is reported once, in the commit that made it true."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from schemas.reading.units import format_instant
from schemas.rules.event_reasons import EventReason as EventReason

MARKS = {25: EventReason.MARK_25, 50: EventReason.MARK_50, 75: EventReason.MARK_75}
"""Shares of a lease, in percent, that are reported."""


def mark_text(request: str, percent: int) -> str:
    """The text of a mark: the same from every process."""
    return f"{request} has used {percent} % of its time"


def warning_text(request: str, ends_at: datetime) -> str:
    """The text of a warning: the same from every process."""
    return f"{request} ends at {format_instant(ends_at)}: its workloads save their work now, nothing is evicted yet"


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
        EventReason.WARNED,
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
        EventReason.LEMON_FOUND,
        EventReason.GPU_HOT,
        EventReason.MEMORY_HOT,
        EventReason.THROTTLED,
        EventReason.GPU_IDLE,
        EventReason.GPU_XID,
        EventReason.REMEDIATION_FAILED,
        EventReason.POST_CHECK_FAILED,
        EventReason.NODES_LATE,
        EventReason.CLUSTER_UNREACHABLE,
        EventReason.MANIFEST_REFUSED,
        EventReason.NOT_EXPORTED,
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
        EventReason.WORKLOAD_FAILED,
        EventReason.ENDPOINT_FAILED,
        EventReason.ENDPOINT_RETURNED,
    }
)
