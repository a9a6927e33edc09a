"""Resets and reboots of nodes between leases, decided before they are carried out. Pure.

A node is due if its agent asks for a reset or a reboot, the cluster's document allows it, and the node is free: closed
by us, without a lease, a promise that uses it now, a foreign pod, a foreign cordon or announced maintenance. Then, each
step in a commit of its own: the agent lets go of the driver, the cluster resets or reboots, the agent finds the GPUs
well, the checks before a start pass. Until then the node stays out of service. One that was not helped is quarantined.

Held by tests/reconciler/health/test_remedies.py and tests/cases/reconciler/remedies.yaml: never while a request has the
node, never more often than the document allows, and always with a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256

from reconciler.health.check_results import cut
from reconciler.health.node_health import REMEDIATION_FAILED
from reconciler.model.cluster_port import CheckResult, NodeView
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Facts, NodeKey, Seen
from reconciler.model.statuses import holders
from schemas.documents.cluster import ClusterSpec
from schemas.documents.remediation import Remediation
from schemas.status.cards import Card
from schemas.status.gpu_faults import GpuAction
from schemas.status.node_status import AgentReport, NodeMetadata, NodeRecord, NodeState
from schemas.status.remedies import Remedy

Remedies = Mapping[NodeKey, tuple[Remedy, ...]]
"""Of each node, oldest first; only the last one may go on."""

DAY = timedelta(days=1)
RELEASED_WITHIN = timedelta(minutes=3)
"""A kubelet shows a new annotation within a minute and a half; an agent that says nothing by then has no driver."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The remedies after this look, those that ended in it, and their events."""

    remedies: Remedies
    ended: tuple[Remedy, ...] = ()
    events: tuple[Event, ...] = field(default=())


def going_on(remedies: Remedies) -> Iterator[Remedy]:
    """The remedies without a result."""
    return (found[-1] for _, found in sorted(remedies.items()) if found[-1].ended is None)


def instants(remedies: Remedies, clusters: Mapping[str, ClusterSpec]) -> Iterator[datetime]:
    """When something must be decided although nothing happens."""
    for remedy in going_on(remedies):
        if remedy.cluster in clusters:
            yield remedy.began + clusters[remedy.cluster].remediation.timeout
        if remedy.released_at is None:
            yield remedy.began + RELEASED_WITHIN


# --- one that goes on ---


def advanced(before: Remedies, clusters: Mapping[str, ClusterSpec], seen: Seen, now: datetime) -> Progress:
    """Every remedy after what clusters and agents say; those that ended more than a day ago are forgotten."""
    after: dict[NodeKey, tuple[Remedy, ...]] = {}
    ended = []
    for key, known in before.items():
        *old, last = known
        kept = [remedy for remedy in old if _is_recent(remedy, now)]
        next_ = last if last.ended is not None else _after(last, clusters.get(key[0]), seen, now)
        if next_ is not None and (next_.ended is None or _is_recent(next_, now)):
            kept.append(next_)
        if next_ is not None and next_.ended is not None and last.ended is None:
            ended.append(next_)
        if kept:
            after[key] = tuple(kept)
    if after == before:
        return Progress(before)
    return Progress(after, tuple(ended), tuple(_result(remedy, now) for remedy in ended))


def _is_recent(remedy: Remedy, now: datetime) -> bool:
    return now - remedy.began < DAY


def _after(remedy: Remedy, spec: ClusterSpec | None, seen: Seen, now: datetime) -> Remedy | None:
    """One step; None: called off, because the node or the cluster's consent is gone."""
    if spec is None or spec.mode != "manage":
        return None
    if remedy.done_at is None and remedy.action not in _allowed(spec.remediation):
        return None
    view = seen.views.get(remedy.cluster)
    if view is None:
        return remedy  # nothing is known; its time goes on when the cluster answers again
    if remedy.node not in view.nodes:
        return None
    report = seen.reports.get((remedy.cluster, remedy.node))
    next_ = _stepped(remedy, report, seen, now)
    if next_ == remedy and now - remedy.began >= spec.remediation.timeout:
        return _failed(remedy, _late(remedy, report), now)
    return next_


def _stepped(remedy: Remedy, report: AgentReport | None, seen: Seen, now: datetime) -> Remedy:
    checks = seen.outcomes.checks
    if remedy.done_at is None:
        found = checks.get((remedy.uid, remedy.node, "remedy"))
        if isinstance(found, tuple):
            bad = _first_bad(found)
            return remedy.edited(done_at=now) if bad is None else _failed(remedy, bad, now)
        let_go = report is not None and report.released_at is not None and report.released_at >= remedy.began
        if remedy.released_at is None and (let_go or now - remedy.began >= RELEASED_WITHIN):
            return remedy.edited(released_at=now)
        return remedy
    if remedy.well_at is None:
        is_well = report is not None and report.healthy and report.released_at is None
        return remedy.edited(well_at=now) if is_well else remedy
    found = checks.get((remedy.uid, remedy.node, "pre"))
    if not isinstance(found, tuple):
        return remedy
    bad = _first_bad(found)
    return remedy.edited(ended=now, helped=True) if bad is None else _failed(remedy, bad, now)


def _first_bad(results: tuple[CheckResult, ...]) -> str | None:
    bad = next((result for result in results if not result.passed), None)
    return None if bad is None else f"{bad.name} failed: {cut(bad.log) or bad.value}"


def _failed(remedy: Remedy, why: str, now: datetime) -> Remedy:
    return remedy.edited(ended=now, message=why)


def _late(remedy: Remedy, report: AgentReport | None) -> str:
    if remedy.done_at is None:
        return f"the {remedy.action} was not carried out in time"
    if remedy.well_at is not None:
        return "its checks did not end in time"
    if report is None or report.released_at is not None:
        return "its agent did not report in time"
    return f"its agent still reports {report.reason}"


def _result(remedy: Remedy, now: datetime) -> Event:
    where = f"{remedy.cluster}/{remedy.node}"
    if remedy.helped:
        reason = EventReason.REMEDIATED
        text = f"{where}: the {remedy.action} ended {remedy.reason}, and its checks passed"
    else:
        reason = EventReason.REMEDIATION_FAILED
        text = f"{where}: the {remedy.action} did not end {remedy.reason}: {remedy.message}"
    return Event(now, reason, text, "", remedy.cluster, remedy.node)


# --- what it means for the node ---


def quarantined(
    progress: Progress, clusters: Mapping[str, ClusterSpec], now: datetime
) -> dict[NodeKey, NodeRecord]:
    """Records of nodes whose last allowed attempt failed now."""
    found = {}
    for remedy in progress.ended:
        key, spec = (remedy.cluster, remedy.node), clusters[remedy.cluster]
        failed = [r for r in _counted(progress.remedies.get(key, ()), spec, now) if _is_failed(r)]
        if not remedy.helped and len(failed) >= spec.remediation.attempts:
            text = (
                f"the {remedy.action} did not end {remedy.reason}: {remedy.message}; repair or replace it, then list "
                "it under spec.cleared"
            )
            found[key] = _record(remedy, spec, (NodeState.QUARANTINED, REMEDIATION_FAILED, text), now)
    return found


def held_out(
    nodes: Mapping[NodeKey, NodeRecord], remedies: Remedies, facts: Facts, clusters: Mapping[str, ClusterSpec]
) -> dict[NodeKey, NodeRecord]:
    """With a record for each node whose remedy goes on: it stays out although its agent finds nothing any more."""
    held = dict(nodes)
    for remedy in going_on(remedies):
        key = (remedy.cluster, remedy.node)
        now = held.get(key)
        if remedy.cluster not in clusters or (now is not None and now.state not in _BACK):
            continue
        text = f"after {remedy.reason} it is being {_PARTICIPLE[remedy.action]} and checked"
        fresh = _record(
            remedy, clusters[remedy.cluster], (NodeState.UNHEALTHY, remedy.reason, text), remedy.began
        )
        old = facts.nodes.get(key)
        same = old is not None and (old.state, old.reason) == (fresh.state, fresh.reason)
        held[key] = fresh.edited(since=old.since) if same and old is not None else fresh
    return held


_BACK = frozenset({NodeState.READY, NodeState.SUSPECT})
_PARTICIPLE = {GpuAction.RESET: "reset", GpuAction.REBOOT: "rebooted"}


def _record(
    remedy: Remedy, spec: ClusterSpec, verdict: tuple[NodeState, str, str], since: datetime
) -> NodeRecord:
    state, reason, message = verdict
    pool = next((pool.name for pool in spec.pools if remedy.node in pool.node_names()), "")
    return NodeRecord(
        metadata=NodeMetadata(name=remedy.node),
        cluster=remedy.cluster,
        pool=pool,
        state=state,
        reason=reason,
        message=message,
        since=since,
    )


def with_results(cards: Mapping[str, Card], progress: Progress) -> Mapping[str, Card]:
    """The cards' history with what was done about their last outage."""
    changed = {}
    for remedy in progress.ended:
        for card in (cards[serial] for serial in remedy.cards if serial in cards):
            *earlier, last = card.faults
            told = last.edited(remedy=remedy.action, helped=remedy.helped)
            changed[card.serial] = card.edited(faults=(*earlier, told))
    return {**cards, **changed} if changed else cards


# --- one that is due ---


def begun(
    remedies: Remedies,
    facts: Facts,
    clusters: Mapping[str, ClusterSpec],
    seen: Seen,
    now: datetime,
) -> Progress:
    """With the remedies that are due; `facts` are the present ones, with this look's verdict on every node."""
    busy = {
        (status.assignment.cluster, node)
        for status in holders(facts.requests).values()
        if status.assignment is not None
        for node in status.assignment.nodes
    }
    new: dict[NodeKey, Remedy] = {}
    for key, record in sorted(facts.nodes.items()):
        spec, report = clusters.get(key[0]), seen.reports.get(key)
        if spec is None or report is None or key in busy or record.state is not NodeState.UNHEALTHY:
            continue
        known = remedies.get(key, ())
        if (known and known[-1].ended is None) or record.reason != (report.reason or "Unhealthy"):
            continue
        action = _due(report, _counted(known, spec, now), spec.remediation)
        if action is not None and _is_free(key, spec, seen, now):
            new[key] = _made(key, action, report, now)
    if not new:
        return Progress(remedies)
    after = {
        key: (*remedies.get(key, ()), *([new[key]] if key in new else [])) for key in {**remedies, **new}
    }
    return Progress(after, events=tuple(_told(remedy, now) for remedy in new.values()))


def _allowed(policy: Remediation) -> frozenset[GpuAction]:
    found = [(policy.reset, GpuAction.RESET), (policy.reboot, GpuAction.REBOOT)]
    return frozenset(action for is_on, action in found if is_on)


def _counted(known: tuple[Remedy, ...], spec: ClusterSpec, now: datetime) -> list[Remedy]:
    """The remedies of the last day, without those before an admin's `cleared`."""
    cleared = {item.node: item.at for item in sorted(spec.cleared, key=lambda item: item.at)}
    return [r for r in known if _is_recent(r, now) and (r.node not in cleared or r.began > cleared[r.node])]


def _is_failed(remedy: Remedy) -> bool:
    return remedy.ended is not None and not remedy.helped


def _due(report: AgentReport, tried: list[Remedy], policy: Remediation) -> GpuAction | None:
    if report.healthy or report.released_at is not None or len(tried) >= policy.per_day:
        return None
    action = report.action
    failed = [remedy for remedy in tried if _is_failed(remedy)]
    if len(failed) >= policy.attempts:
        return None
    if action is GpuAction.RESET and any(r.action is GpuAction.RESET for r in failed) and policy.reboot:
        action = GpuAction.REBOOT
    return action if action in _allowed(policy) else None


def _is_free(key: NodeKey, spec: ClusterSpec, seen: Seen, now: datetime) -> bool:
    """Whether nobody uses the node, and no one else works on it."""
    cluster, node = key
    view = seen.views.get(cluster)
    found = None if view is None else view.nodes.get(node)
    if found is None or spec.mode != "manage" or not _is_idle(found):
        return False
    pool = next((pool.name for pool in spec.pools if node in pool.node_names()), None)
    return not any(
        item.covers(now)
        for item in spec.maintenance
        if not (item.pools or item.nodes) or node in item.nodes or pool in item.pools
    )


def _is_idle(node: NodeView) -> bool:
    ours = node.isolated and node.ready and node.lease is None and not node.draining
    return ours and not (node.cordoned or node.foreign or node.staying or node.upgrade_runs or node.drain)


def _made(key: NodeKey, action: GpuAction, report: AgentReport, now: datetime) -> Remedy:
    cluster, node = key
    bad = [gpu for gpu in report.gpus if not gpu.healthy]
    of = f"{cluster}\n{node}\n{now.timestamp():.0f}"
    return Remedy(
        uid=f"remedy-{sha256(of.encode()).hexdigest()[:16]}",
        cluster=cluster,
        node=node,
        action=action,
        reason=report.reason or "Unhealthy",
        gpus=tuple(gpu.uuid for gpu in bad) if action is GpuAction.RESET else (),
        cards=tuple(gpu.serial for gpu in bad if gpu.serial is not None),
        began=now,
        released_at=now if action is GpuAction.REBOOT else None,  # a reboot needs no driver
    )


def _told(remedy: Remedy, now: datetime) -> Event:
    where = f"{remedy.cluster}/{remedy.node}"
    if remedy.action is GpuAction.REBOOT:
        text = f"{where} must be rebooted because of {remedy.reason}; no request uses it"
        return Event(now, EventReason.REBOOT_ASKED, text, "", remedy.cluster, remedy.node)
    gpus = f"{len(remedy.gpus)} GPUs are" if len(remedy.gpus) != 1 else "a GPU is"
    text = f"{where}: {gpus if remedy.gpus else 'its GPUs are'} reset because of {remedy.reason}; no request uses it"
    return Event(now, EventReason.RESET_BEGAN, text, "", remedy.cluster, remedy.node)
