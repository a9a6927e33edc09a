"""Laws on time: what is due is done, nothing is left over, and what was acknowledged is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta

from tests.simulation.auditor.commits import OVER
from tests.simulation.auditor.nodes import Shown
from tests.simulation.auditor.reading import Page, Status, end_of, instant, start_of

DRAINED = timedelta(seconds=25)
"""docs/reference/kinds/cluster.md: what a node of an early end, or with stubborn pods, takes to drain here."""
OVERDUE = timedelta(minutes=2)
"""docs/guides/high-availability.md: any running controller carries out what is this late."""
SOON = timedelta(minutes=1)
"""Whatever can start does so within a minute after faults end."""

Delays = Callable[[datetime, datetime], timedelta]
"""How much of a time something was wrong that may delay what is due."""


def late_ends(
    page: Page, shown: Mapping[str, Shown], delays: Delays, now: datetime, look: timedelta
) -> Iterator[str]:
    """Ends are strict: `look` is how long a controller that does not lead may sleep."""
    ends = {status["uid"]: (key, end_of(status)) for key, status in page.requests.items()}
    for cluster in shown.values():
        for node, lease in cluster.leases.items():
            key, end = ends.get(lease.uid, (lease.request, lease.end))
            if end is None or now <= end + DRAINED:
                continue
            trouble = delays(end - OVERDUE - look * 2, now)
            late = now - end - trouble
            allowed = DRAINED if not trouble else DRAINED + OVERDUE + look * 2
            if late > allowed:
                yield f"{node} serves {key} {_s(now - end)} after its end {end}"


def late_words(page: Page, delays: Delays, now: datetime, look: timedelta) -> Iterator[str]:
    """A lease that is over is not Provisioned any more; a push budget may keep that back for a minute."""
    for key, status in page.requests.items():
        end = end_of(status)
        if status["phase"] != "Provisioned" or end is None or now <= end + SOON:
            continue
        trouble = delays(end - OVERDUE - look * 2, now)
        allowed = SOON if not trouble else SOON + OVERDUE + look * 2
        if now - end - trouble > allowed:
            yield f"{key} is Provisioned {_s(now - end)} after its end {end}"


def late_starts(page: Page, delays: Delays, now: datetime, look: timedelta) -> Iterator[str]:
    """A committed start passes only with a slip."""
    for key, status in page.requests.items():
        start = start_of(status)
        if status["phase"] not in {"Queued", "Provisioning"} or start is None or now <= start + SOON:
            continue
        if status.get("reason") in {"Stopped", "ClusterUnreachable", "ClusterObserved"}:
            continue
        trouble = delays(start - OVERDUE - look * 2, now)
        allowed = SOON if not trouble else SOON + OVERDUE + look * 2
        if now - start - trouble > allowed:
            yield f"{key} is {status['phase']} {_s(now - start)} after its start {start}"


def begun(page: Page, now: datetime, tolerance: timedelta) -> Iterator[str]:
    """What has begun has begun: nothing is Provisioned before its start."""
    for key, status in page.requests.items():
        start = instant(status.get("startTime"))
        if status["phase"] == "Provisioned" and start is not None and now + tolerance < start:
            yield f"{key} is Provisioned before its start {start}"


def left_over(page: Page, shown: Mapping[str, Shown]) -> Iterator[str]:
    """In calm no node serves what is over, or what no status knows."""
    live = {status["uid"] for status in page.requests.values() if status["phase"] not in OVER}
    for cluster in shown.values():
        for node, lease in cluster.leases.items():
            if lease.uid not in live:
                yield f"{node} still serves {lease.request} ({lease.uid}), which is over"


TOLD = frozenset(
    {"FitsNowhere", "LimitExceeded", "NodesOut", "ClusterObserved", "ClusterUnreachable", "Stopped"}
)
"""Reasons with which a request may wait although nothing is wrong."""


def is_at_rest(status: Status) -> bool:
    """Nothing will happen to it by itself."""
    return status["phase"] in OVER or status["phase"] == "PendingApproval" or status.get("reason") in TOLD


def unfinished(page: Page, now: datetime) -> Iterator[str]:
    """After a long calm nothing waits without a reason."""
    for key, status in sorted(page.requests.items()):
        if is_at_rest(status):
            continue
        start = instant((status.get("acceptedSpec") or {}).get("notBefore"))
        if start is None or start < now:
            yield f"{key} is {status['phase']} after hours of calm, reason {status.get('reason')}"


def _s(late: timedelta) -> str:
    return f"{late.total_seconds():.0f} s"
