"""Laws on what is committed: each page against the one before it (docs/reference/kinds/gpr.md, estimates.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise

from tests.simulation.auditor.reading import Page, Status, end_of, instant, span, start_of

CAUSES = frozenset({
    "HigherRankArrived", "Approved", "Requeued", "RequestChanged", "AdminMoved", "PolicyChanged", "MaintenanceAdded",
    "NodeLost", "NodeReplaced", "ChecksFailed", "ClusterUnreachable", "ControllerAbsent",
})  # fmt: skip
OVER = frozenset({"Completed", "Cancelled", "Rejected", "Failed"})
HOLDS = frozenset({"Provisioning", "Provisioned", "Releasing"})
PLANNED = frozenset({"Queued", "Provisioning"})
OF_REQUESTS = frozenset({"HigherRankArrived", "Approved", "Requeued", "RequestChanged", "AdminMoved"})
OUT = frozenset({"Unhealthy", "Quarantined", "Cordoned", "Lost", "Dirty", "Unfit", "Occupied"})
ROUNDING = 0.02
"""GPU-hours: seconds are rounded once for each node and change."""


def laws(before: Page | None, after: Page) -> Iterator[str]:
    """Everything that one commit breaks."""
    yield from nodes_once(after.requests)
    yield from slices_once(after.requests)
    yield from bad_nodes_rest(before, after)
    old = {} if before is None else before.requests
    for key, status in after.requests.items():
        was = old.get(key)
        if was is status:
            continue
        yield from strict_end(key, status)
        yield from costs_add_up(key, status)
        yield from marks_once(key, status)
        if was is not None and before is not None:
            yield from kept_id(key, was, status)
            if was["uid"] == status["uid"]:
                yield from stays_over(key, was, status)
                yield from promise_kept(key, was, status)
                yield from causes_are_there(key, was, status, before, after)
    for key, was in old.items():
        if key not in after.requests and was["phase"] in HOLDS:
            yield f"{key} was {was['phase']} and its status is gone"


def nodes_once(requests: Mapping[str, Status]) -> Iterator[str]:
    """A node is committed to one request at a time; one that drains may be promised on."""
    holders: dict[tuple[str, str], str] = {}
    for key, status in sorted(requests.items()):
        held = status.get("assignment")
        if held is None or status["phase"] not in {"Provisioning", "Provisioned"}:
            continue
        for node in held["nodes"]:
            other = holders.setdefault((held["cluster"], node), key)
            if other != key:
                yield f"{held['cluster']}/{node} is committed to {other} and to {key}"


def slices_once(requests: Mapping[str, Status]) -> Iterator[str]:
    """A slice holds one request at a time, on [start, end)."""
    running: dict[str, list[tuple[datetime, datetime, str]]] = {}
    for key, status in sorted(requests.items()):
        start, end = start_of(status), end_of(status)
        if status["phase"] in {"Provisioning", "Provisioned"} and start is not None and end is not None:
            running.setdefault(key.partition("/")[0], []).append((start, end, key))
    for slice_, leases in running.items():
        leases.sort()
        for (_, end, key), (start, _, other) in pairwise(leases):
            if start < end:
                yield f"slice {slice_} runs {key} and {other} at once"


def strict_end(key: str, status: Status) -> Iterator[str]:
    """A lease ends at its start and its duration, and the grace that was granted."""
    start, end = instant(status.get("startTime")), instant(status.get("endTime"))
    if status["phase"] != "Provisioned" or start is None or end is None:
        return
    grace = span(status.get("extendedBy"))
    if "remaining" in status:
        least = start + span(status["remaining"])
        if not least - timedelta(minutes=1) <= end <= least + grace + timedelta(minutes=1):
            yield f"{key} ends at {end}, which is not its start and what remained"
    elif end != start + span(status["acceptedSpec"]["duration"]) + grace:
        yield f"{key} ends at {end}, which is not its start, its duration and its grace"


def costs_add_up(key: str, status: Status) -> Iterator[str]:
    """Whole nodes of eight GPUs are paid from start to end; never more, and no less where nothing failed."""
    start, end, cost = instant(status.get("startTime")), instant(status.get("endTime")), status.get("cost")
    held = status.get("assignment")
    if status["phase"] not in OVER or cost is None or start is None or end is None or held is None:
        return
    whole = len(held["nodes"]) * 8 * max((end - start).total_seconds(), 0.0) / 3600
    earlier = float((status.get("costBefore") or {}).get("gpuHours", 0.0))
    paid = float(cost["gpuHours"]) - earlier
    simple = not (status.get("lost") or status.get("retryCount") or status.get("replacedNodes"))
    simple = simple and status["phase"] == "Completed" and not earlier and "remaining" not in status
    if paid < -ROUNDING or paid > whole + ROUNDING:
        yield f"{key} paid {paid} GPU-hours of {whole:.4f} that it held"
    elif simple and abs(paid - whole) > ROUNDING:
        yield f"{key} paid {paid} GPU-hours and held {whole:.4f}"


def marks_once(key: str, status: Status) -> Iterator[str]:
    """Each share of a lease is reported once, in order."""
    percents = [mark["percent"] for mark in status.get("marks") or ()]
    if percents != sorted(set(percents)):
        yield f"{key} has the marks {percents}"


def kept_id(key: str, was: Status, status: Status) -> Iterator[str]:
    """A request keeps its id while its file lives."""
    if was["uid"] != status["uid"] and was["phase"] in HOLDS:
        yield f"{key} held nodes as {was['uid']} and is {status['uid']} now"


def stays_over(key: str, was: Status, status: Status) -> Iterator[str]:
    """A terminal request never runs again."""
    if was["phase"] in OVER and status["phase"] not in OVER:
        yield f"{key} was {was['phase']} and is {status['phase']} again"


def promise_kept(key: str, was: Status, status: Status) -> Iterator[str]:
    """A committed start moves later only with a slip that says so, for a cause on the closed list."""
    for slip in status.get("slips") or ():
        if slip["cause"] not in CAUSES:
            yield f"{key} slipped for {slip['cause']}"
    begins = was["phase"] in PLANNED and status["phase"] == "Provisioned"
    if was["phase"] not in PLANNED or not (status["phase"] in PLANNED or begins):
        return
    then = instant(was.get("estimatedStartTime"))
    now = start_of(status) if begins else instant(status.get("estimatedStartTime"))
    if then is None or (now is not None and now <= then):
        return
    slips = status.get("slips") or ()
    if len(slips) <= len(was.get("slips") or ()) or status["delayedCount"] <= was["delayedCount"]:
        yield f"{key} moved from {then} to {now} and nothing says why"
    elif instant(slips[-1].get("now")) != now:
        yield f"{key} moved to {now} and its slip says {slips[-1].get('now')}"


def causes_are_there(key: str, was: Status, status: Status, before: Page, after: Page) -> Iterator[str]:
    """Whom a new slip blames exists, and is no other than what the cause is about."""
    old = len(was.get("slips") or ())
    for slip in (status.get("slips") or ())[old:]:
        for one in (slip, *(slip.get("also") or ())):
            by = one.get("by", "")
            known = by in after.requests or by in before.requests
            if one["cause"] in OF_REQUESTS and by != key and "/" in by and not known:
                yield f"{key} slipped for {one['cause']} by {by}, which has no status"
            if one["cause"] in {"HigherRankArrived", "Requeued"} and by == key and one["cause"] != "Requeued":
                yield f"{key} slipped because it arrived itself"


def news(was: Status | None, status: Status) -> Iterator[str]:
    """Reasons of events that this change of a status must have."""
    if was is not None and was["uid"] != status["uid"]:
        was = None
    if was is None:
        yield "GPRCreated"
    began = status["phase"] == "Provisioned" and (was is None or was["phase"] != "Provisioned")
    if began:
        yield "GPRProvisioned"
    had = {mark["percent"] for mark in (was or {}).get("marks") or ()}
    for mark in status.get("marks") or ():
        if mark["percent"] not in had:
            yield f"GPRDuration{mark['percent']}"
    if status["phase"] == "Completed" and was is not None and was["phase"] != "Completed":
        yield "GPRCompleted"


def bad_nodes_rest(before: Page | None, after: Page) -> Iterator[str]:
    """A node that is out of service is given to no request anew."""
    for key, status in after.requests.items():
        was = None if before is None else before.requests.get(key)
        if before is None or was is status or status["phase"] not in {"Provisioning", "Provisioned"}:
            continue
        old = ((was or {}).get("assignment") or {}).get("nodes") or ()
        held = status["assignment"]
        for node in held["nodes"]:
            record = after.nodes.get((held["cluster"], node))
            known = before.nodes.get((held["cluster"], node))
            if node not in old and record is not None and record is known and record["state"] in OUT:
                yield f"{key} gets {node}, which is {record['state']}"
