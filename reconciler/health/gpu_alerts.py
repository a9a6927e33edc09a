"""Crossings of thresholds that agents report become events: once when they begin, once when they are over. Pure.

An agent damps what it reports (`agent.crossings`), so nothing is damped here. What was told is a fact on the status
branch; a new controller tells nothing twice.

Held by tests/reconciler/health/test_gpu_alerts.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from reconciler.model.events import Event, EventReason
from reconciler.model.facts import NodeKey
from reconciler.model.statuses import live
from schemas.documents.cluster import ClusterSpec
from schemas.status.gpr_status import HOLDING, GPRStatus
from schemas.status.gpu_alerts import NodeAlert
from schemas.status.gpu_faults import fault_kind, kind_name
from schemas.status.node_status import AgentReport

Alerts = Mapping[str, tuple[NodeAlert, ...]]
"""By cluster; by node and reason within."""

REASONS: Mapping[str, EventReason] = {
    "GpuHot": EventReason.GPU_HOT,
    "MemoryHot": EventReason.MEMORY_HOT,
    "Throttled": EventReason.THROTTLED,
    "PowerHigh": EventReason.POWER_HIGH,
    "GpuIdle": EventReason.GPU_IDLE,
    "Xid": EventReason.GPU_XID,
}
"""Events by the kind of what is watched; other kinds are shown and not told."""
MOST_ALERTS = 2_000
"""Kept of one cluster, so that its file stays small; further ones are neither kept nor told."""


def with_alerts(
    before: Alerts, reports: Mapping[NodeKey, AgentReport], clusters: Mapping[str, ClusterSpec], now: datetime
) -> Alerts:
    """The alerts after these reports; the same object if nothing changed. O(GPUs reported)."""
    known = _by_key(before)
    found: dict[str, list[NodeAlert]] = {}
    for (cluster, node), report in sorted(reports.items()):
        if cluster not in clusters:
            continue
        for reason, gpus in _noticed(report):
            one = _alert(known.get((cluster, node, reason)), node, reason, gpus, now)
            found.setdefault(cluster, []).append(one)
    after = {cluster: tuple(_bounded(alerts, known, cluster)) for cluster, alerts in found.items()}
    return before if after == before else after


def alert_events(
    before: Alerts, after: Alerts, requests: Mapping[str, GPRStatus], now: datetime
) -> tuple[Event, ...]:
    """What begins and what is over. An idle GPU is told only while a request has its node."""
    if before is after:
        return ()
    holders = {
        (status.assignment.cluster, node): key
        for key, status in live(requests).items()
        if status.assignment is not None and status.phase in HOLDING
        for node in status.assignment.nodes
    }
    old, new = _by_key(before), _by_key(after)
    return tuple(
        event
        for key in sorted({*old, *new})
        for event in _told(key, old.get(key), new.get(key), holders.get(key[:2], ""), now)
    )


Key = tuple[str, str, str]
"""Cluster, node, reason."""


def _by_key(alerts: Alerts) -> dict[Key, NodeAlert]:
    return {(cluster, one.node, one.reason): one for cluster, all_ in alerts.items() for one in all_}


def _noticed(report: AgentReport) -> Iterator[tuple[str, tuple[int, ...]]]:
    found: dict[str, list[int]] = {}
    for gpu in report.gpus:
        for reason in gpu.watched:
            if kind_name(reason) in REASONS:
                found.setdefault(reason, []).append(gpu.index)
    return ((reason, tuple(sorted(found[reason]))) for reason in sorted(found))


def _alert(old: NodeAlert | None, node: str, reason: str, gpus: tuple[int, ...], now: datetime) -> NodeAlert:
    if old is not None and old.gpus == gpus:
        return old
    since = now.replace(microsecond=0) if old is None else old.since
    return NodeAlert(node=node, reason=reason, gpus=gpus, since=since)


def _bounded(alerts: list[NodeAlert], known: Mapping[Key, NodeAlert], cluster: str) -> list[NodeAlert]:
    """Those that were told stay, whatever comes."""
    if len(alerts) <= MOST_ALERTS:
        return alerts
    told_first = sorted(alerts, key=lambda one: (cluster, one.node, one.reason) not in known)
    return sorted(told_first[:MOST_ALERTS], key=lambda one: (one.node, one.reason))


def _told(
    key: Key, old: NodeAlert | None, new: NodeAlert | None, request: str, now: datetime
) -> Iterator[Event]:
    cluster, node, reason = key
    was, are = set() if old is None else set(old.gpus), set() if new is None else set(new.gpus)
    if reason == "GpuIdle" and not request:
        return
    if begun := sorted(are - was):
        kind = fault_kind(reason)
        each = "each of " if len(begun) > 1 else ""
        text = f"{each}{_named(begun)} of {cluster}/{node} {reason if kind is None else kind.sentence}"
        yield Event(now, REASONS[kind_name(reason)], text, request, cluster, node)
    if over := sorted(was - are):
        text = f"{reason} is over: {_named(over)} of {cluster}/{node}"
        yield Event(now, EventReason.GPU_ALERT_OVER, text, request, cluster, node)


def _named(gpus: list[int]) -> str:
    return f"GPU{'s' if len(gpus) > 1 else ''} {', '.join(map(str, gpus))}"
