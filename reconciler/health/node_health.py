"""Each node's state for the planner, from the cluster's view, its agent's report and its own record. Pure.

No more nodes of a pool than its isolation limit are taken out for health reasons: beyond it a node stays in
service as Suspect until an admin raises `maxIsolated`. Nodes that are cordoned or used by others, unfit for
their pool, silent or in an upgrade of their driver do not count towards the limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from reconciler.health import upgraded_nodes
from reconciler.health.upgraded_nodes import Verdict
from reconciler.model.cluster_port import UPGRADE_FAILED, ClusterView, NodeView
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import IN_SERVICE, NodeKey, Seen
from schemas.documents.cluster import ClusterSpec
from schemas.documents.pool import Pool
from schemas.status.node_status import NodeMetadata, NodeRecord, NodeState

DAY = timedelta(days=1)
NAMED = 3
"""Pods listed per node."""
AHEAD = timedelta(minutes=5)
"""Tolerated clock skew of an agent; reports dated later do not count."""
DRAIN = "DrainRequested"
EVICTING_TAINT = "EvictingTaint"
"""Reason of a node whose foreign taint evicts the pods of slices; other taints only repel new pods."""
ISOLATING = frozenset({NodeState.UNHEALTHY, NodeState.QUARANTINED})


@dataclass(frozen=True, slots=True)
class Evidence:
    """All evidence about the nodes of one cluster."""

    cluster: str
    spec: ClusterSpec
    view: ClusterView
    seen: Seen
    before: Mapping[NodeKey, NodeRecord]
    overdue: frozenset[NodeKey]
    now: datetime
    lemons: Mapping[NodeKey, str]  # why a node with a bad card is quarantined
    spared: frozenset[NodeKey]  # their agents' findings do not count


def judge_nodes(
    clusters: Mapping[str, ClusterSpec],
    seen: Seen,
    before: Mapping[NodeKey, NodeRecord],
    overdue: frozenset[NodeKey],
    now: datetime,
    lemons: Mapping[NodeKey, str] = MappingProxyType({}),
) -> dict[NodeKey, NodeRecord]:
    """Records of all nodes that are not simply Ready; an unreachable cluster keeps its records.

    `overdue` are nodes not yet clean although their lease ended longer ago than the drain; `lemons` says why a node
    with a bad card is quarantined (see `reconciler.health.cards`).
    """
    records: dict[NodeKey, NodeRecord] = {}
    spared = upgraded_nodes.spared_nodes(seen, before, now)
    for cluster in sorted(clusters):
        view = seen.views.get(cluster)
        if view is None:
            records |= {key: record for key, record in before.items() if key[0] == cluster}
            continue
        evidence = Evidence(cluster, clusters[cluster], view, seen, before, overdue, now, lemons, spared)
        for pool in clusters[cluster].pools:
            records |= _judge_pool(evidence, pool)
    return records


def _judge_pool(evidence: Evidence, pool: Pool) -> dict[NodeKey, NodeRecord]:
    found = []
    for rank, node in enumerate(pool.node_names()):
        view = evidence.view.nodes.get(node)
        if (view is None or not view.ready) and not pool.is_due(rank, evidence.now):
            continue
        verdict = _verdict(evidence, node)
        if verdict is not None:
            found.append(_record(evidence, pool, node, verdict))
    limited = _within_limit(upgraded_nodes.in_turn(found, pool, evidence.before), pool, evidence.before)
    return {(evidence.cluster, record.metadata.name): record for record in limited}


def _record(evidence: Evidence, pool: Pool, node: str, verdict: Verdict) -> NodeRecord:
    key = (evidence.cluster, node)
    state, reason, message = verdict
    old, report = evidence.before.get(key), evidence.seen.reports.get(key)
    same = old is not None and old.reason == reason
    until = old.until if old is not None and same else None
    if reason == upgraded_nodes.UPGRADE:
        until = upgraded_nodes.counts_again(
            old if same else None, evidence.view.nodes.get(node), evidence.now
        )
    return NodeRecord(
        metadata=NodeMetadata(name=node),
        cluster=evidence.cluster,
        pool=pool.name,
        state=state,
        reason=reason,
        message=message,
        since=old.since if old is not None and same else evidence.now,
        until=until,
        gpus=() if report is None else report.gpus,
    )


def _verdict(evidence: Evidence, node: str) -> Verdict | None:
    """None: Ready."""
    key = (evidence.cluster, node)
    view = evidence.view.nodes.get(node)
    if view is None:
        return NodeState.LOST, "NodeGone", "the cluster does not know this node"
    if not view.ready and (view.lease is not None or not view.upgrade_runs):
        return NodeState.LOST, "NodeNotReady", "the node is silent"
    cleared = max((c.at for c in evidence.spec.cleared if c.node == node), default=None)
    drain = _drain(view) if key not in evidence.overdue else None
    find = _found_before if key in evidence.spared else _reported
    verdict = _kept(evidence.before.get(key), cleared, evidence.now) or drain or find(evidence, key, cleared)
    if verdict is None and key in evidence.overdue:
        return _unclean(evidence, key, view)
    if verdict is None and key in evidence.spared:
        return upgraded_nodes.verdict_on(view)
    return verdict or _unusable(view) or upgraded_nodes.waiting(view)


def _drain(view: NodeView) -> Verdict | None:
    """Others want to repair it: a request that has it gets another node."""
    if not view.drain:
        return None
    text = f"{view.drain} asks for it to be drained; it is free again when that request is deleted"
    return NodeState.CORDONED, DRAIN, text


def _unclean(evidence: Evidence, key: NodeKey, view: NodeView) -> Verdict:
    """A node whose lease is over; if pods stay too long, an operator must act."""
    if not view.staying:
        return NodeState.DIRTY, NOT_CLEAN, "its lease is over but it is not clean yet"
    text = f"its lease is over but GPU pods are still running: {_named(view.staying)}"
    old, bound = evidence.before.get(key), evidence.spec.exit.quarantine_after
    if old is None or old.reason != NOT_CLEAN or evidence.now - old.since < bound:
        return NodeState.DIRTY, NOT_CLEAN, text
    return NodeState.QUARANTINED, PODS_STAY, f"{text}; delete them, then list the node under spec.cleared"


def _named(pods: tuple[str, ...]) -> str:
    more = f" and {len(pods) - NAMED} more" if len(pods) > NAMED else ""
    return ", ".join(sorted(pods)[:NAMED]) + more


def _unusable(view: NodeView) -> Verdict | None:
    """Why a healthy node is not free for new requests; a request that has it keeps it."""
    if view.cordoned:
        return NodeState.CORDONED, "Cordoned", "it was cordoned by someone else"
    if view.unfit:
        text = f"it does not match its pool: {view.unfit}; fix the node or the manifest"
        return NodeState.UNFIT, "DoesNotFitPool", text
    if view.taint:
        text = (
            f"it has the taint {view.taint}, which pods of slices do not tolerate; remove it, or list its key "
            "under spec.checks.tolerate of its cluster if they do"
        )
        return NodeState.UNFIT, EVICTING_TAINT if view.taint.endswith(":NoExecute") else "ForeignTaint", text
    if view.foreign:
        text = f"GPU pods outside of slices run there: {_named(view.foreign)}; it is free when they are gone"
        return NodeState.OCCUPIED, "ForeignPods", text
    return None


def _reported(evidence: Evidence, key: NodeKey, cleared: datetime | None) -> Verdict | None:
    report = evidence.seen.reports.get(key)
    if report is None or report.at > evidence.now + AHEAD:
        return None
    faults = [
        at for at in report.faults if -AHEAD <= evidence.now - at < DAY and (cleared is None or at > cleared)
    ]
    if len(faults) >= evidence.spec.health.faults_to_quarantine:
        message = f"{len(faults)} faults within a day; repair it, then list it under spec.cleared"
        return NodeState.QUARANTINED, "FaultTrend", message
    if report.healthy or (cleared is not None and report.at <= cleared):
        return None
    if key in evidence.lemons:
        return NodeState.QUARANTINED, LEMON, evidence.lemons[key]
    return NodeState.UNHEALTHY, report.reason or "Unhealthy", report.message or "reported by its agent"


def _found_before(evidence: Evidence, key: NodeKey, cleared: datetime | None) -> Verdict | None:
    """In an upgrade: what the agent reported before and does not take back."""
    old = evidence.before.get(key)
    found = _reported(evidence, key, cleared)
    if old is None or found is None or old.state not in {NodeState.UNHEALTHY, NodeState.SUSPECT}:
        return None
    if evidence.view.nodes[key[1]].upgrade == UPGRADE_FAILED:
        return None  # that is what people must know first
    return NodeState.UNHEALTHY, old.reason or found[1], (old.message or "").partition(STAYS)[0]


def _kept(old: NodeRecord | None, cleared: datetime | None, now: datetime) -> Verdict | None:
    """A quarantine lasts until an operator clears it; a failed check until its time is over."""
    if old is None or (cleared is not None and cleared >= old.since):
        return None
    message = (old.message or "").partition(STAYS)[0]
    if old.reason in PEOPLE_CLEAR:
        return NodeState.QUARANTINED, old.reason, message
    if old.reason == "PreCheckFailed" and old.until is not None and now < old.until:
        return NodeState.UNHEALTHY, old.reason, message
    return None


STAYS = "; it stays in service because "
NOT_CLEAN, PODS_STAY = "NotClean", "PodsStay"
LEMON = "LemonCard"
USELESS = frozenset({PODS_STAY, upgraded_nodes.FAILED})
REMEDIATION_FAILED = "RemediationFailed"
PEOPLE_CLEAR = frozenset({"FaultTrend", "PostCheckFailed", PODS_STAY, LEMON, REMEDIATION_FAILED})


def _within_limit(
    found: Iterable[NodeRecord], pool: Pool, before: Mapping[NodeKey, NodeRecord]
) -> list[NodeRecord]:
    """The records, with those beyond the isolation limit turned into Suspect; nodes already out stay out."""
    records = list(found)

    def was_out(record: NodeRecord) -> bool:
        old = before.get((record.cluster, record.metadata.name))
        return old is not None and old.state in ISOLATING

    # A node used by foreign pods, or without a driver, is useless in service, however many are out.
    isolating = [r for r in records if r.state in ISOLATING and r.reason not in USELESS]
    isolating.sort(key=lambda r: (not was_out(r), r.since, r.metadata.name))
    suspect = {r.metadata.name for r in isolating[pool.isolation_limit :]}
    return [
        r.edited(
            state=NodeState.SUSPECT,
            message=f"{r.message}{STAYS}{pool.isolation_limit} of its pool are out already; "
            "raise the pool's maxIsolated to take it out",
        )
        if r.metadata.name in suspect
        else r
        for r in records
    ]


def health_events(
    before: Mapping[NodeKey, NodeRecord], after: Mapping[NodeKey, NodeRecord], now: datetime
) -> tuple[Event, ...]:
    """Health changes for users: nodes that left service, returned, or should have left."""
    told = []
    for key in sorted({*before, *after}):
        old, new = _not_ready(before.get(key)), _not_ready(after.get(key))
        if (old and (old.state, old.reason)) == (new and (new.state, new.reason)):
            continue
        told.append(_event(key, new, now))
    return tuple(told)


def _not_ready(record: NodeRecord | None) -> NodeRecord | None:
    return None if record is None or record.state is NodeState.READY else record


def _event(key: NodeKey, new: NodeRecord | None, now: datetime) -> Event:
    cluster, node = key
    if new is None:
        return Event(now, EventReason.NODE_BACK, f"{cluster}/{node} is back in service", "", cluster, node)
    reason = EventReason.NODE_SUSPECT if new.state in IN_SERVICE else EventReason.NODE_OUT
    text = f"{cluster}/{node} is {new.state} ({new.reason}): {new.message}"
    return Event(now, reason, text, "", cluster, node)
