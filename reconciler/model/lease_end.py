"""How near a lease is to its end: running, warned, in its notice, over. Pure.

At the warning nothing is evicted: workloads save their work and admit nothing new. At the notice pods are asked to
stop. At the end they are ended. Held by tests/reconciler/model/test_lease_end.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from reconciler.model.status_edits import counted_end
from schemas.documents.cluster import ClusterSpec
from schemas.status.gpr_status import GPRStatus

LeasePhase = Literal["running", "warning", "notice", "over"]
"""In the order in which a lease goes through them; without a `warning` in its cluster it is never warned."""


@dataclass(frozen=True, slots=True)
class LeaseEnd:
    """The instants around the end of a lease, each at or before the next."""

    warns_at: datetime | None  # None: its cluster has no `warning`
    notice_at: datetime
    ends_at: datetime

    def phase(self, now: datetime) -> LeasePhase:
        """Where it is at `now`; a lease that has not started counts as running."""
        if now >= self.ends_at:
            return "over"
        if now >= self.notice_at:
            return "notice"
        return "running" if self.warns_at is None or now < self.warns_at else "warning"


def lease_end(start: datetime, end: datetime, cluster: ClusterSpec) -> LeaseEnd:
    """Of a lease that leaves its nodes at `end`.

    A warning never takes more than half of the time before the notice: work that is held back from the warning on
    could not begin in a short lease otherwise.
    """
    notice_at = end - cluster.notice
    if cluster.warning is None:
        return LeaseEnd(None, notice_at, end)
    half = max(timedelta(), notice_at - start) // 2
    lead = min(cluster.warning, timedelta(seconds=half // timedelta(seconds=1)))
    return LeaseEnd(notice_at - lead, notice_at, end)


def end_of(status: GPRStatus, cluster: ClusterSpec) -> LeaseEnd | None:
    """Of the lease of this request; None before its start. A decided eviction is its end.

    The release of an idle request is not: it has its own announcement, and work that is held back could not end it.
    """
    leave = counted_end(status)
    if status.start_time is None or leave is None:
        return None
    return lease_end(status.start_time, leave, cluster)
