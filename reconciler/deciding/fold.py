"""Folds everything that happened since the last commit into the facts; plans nothing. Pure.

Order: which clusters answer, what main says of each request, which nodes are healthy, then each lease. One
failure never affects another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from reconciler.accounts.gpu_hours import with_spent
from reconciler.accounts.insights import with_ended
from reconciler.accounts.ledger import with_finished
from reconciler.accounts.monthly_limits import bounded_outcomes, bounded_slices, unbounded_outcome
from reconciler.accounts.promises import with_settled
from reconciler.approvals import held_changes
from reconciler.approvals.used_approvals import spent_after
from reconciler.deciding.preemption_limits import with_losses
from reconciler.deciding.slice_parts import queues_shown, service_events, services_shown
from reconciler.deciding.unchanged_requests import UnchangedRequests, without_news
from reconciler.documents.workspace_outcomes import workspace_turn
from reconciler.health.cards import failing_lemons, lemon_events, with_cards, with_lemons
from reconciler.health.check_results import cut
from reconciler.health.gpu_alerts import alert_events, with_alerts
from reconciler.health.node_faults import with_faults
from reconciler.health.node_health import health_events, judge_nodes
from reconciler.health.remedies import Progress, advanced, begun, held_out, quarantined, with_results
from reconciler.health.upgraded_nodes import spared_nodes
from reconciler.lifecycle.checkpoints import checkpoint_outcome, said_in
from reconciler.lifecycle.endpoint_turn import endpoint_turn
from reconciler.lifecycle.file_changes import file_outcome
from reconciler.lifecycle.free_nodes import FreeNodes
from reconciler.lifecycle.idle import idle_outcome
from reconciler.lifecycle.missing_namespaces import home_outcome, says_so
from reconciler.lifecycle.provisioned import overdue_nodes, releasing_outcome, running_outcome
from reconciler.lifecycle.provisioning import handover_outcome
from reconciler.lifecycle.workload_runs import workload_turn
from reconciler.model.cluster_port import Busy
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Context, Facts, Filed, NodeKey, Reachability, RequestOutcome, Seen, Wanted
from reconciler.model.request_files import with_filed
from reconciler.model.selected_nodes import unmanaged_in
from reconciler.model.statuses import Records, live, records
from reconciler.planning.elastic_pools import came
from reconciler.planning.queue_place import asked_anew, let_past, placed
from reconciler.planning.snapshot import at, pools_and_leases, stray_nodes
from reconciler.settings import Settings
from scheduler.snapshot import PoolKey
from schemas.status.gpr_status import WAITING, Cause, GPRStatus
from schemas.status.inventory import UnmanagedNode
from schemas.status.node_status import NodeMetadata, NodeRecord, NodeState


@dataclass(frozen=True, slots=True)
class Folded:
    """New facts, events, and for each changed request why it may delay others."""

    facts: Facts
    events: tuple[Event, ...]
    causes: Mapping[str, tuple[Cause, str]]
    failed_nodes: Mapping[NodeKey, Cause] = field(default_factory=dict)
    anew: frozenset[str] = frozenset()  # requests that take a queue position now
    late_pools: frozenset[PoolKey] = frozenset()  # pools whose requested nodes did not arrive in time


def fold(
    facts: Facts,
    wanted: Wanted,
    seen: Seen,
    settings: Settings,
    now: datetime,
    unchanged: UnchangedRequests | None = None,
) -> Folded:
    """The facts now, before planning; `unchanged` remembers which requests need not be judged again."""
    gather = _Gather(records(facts.requests))
    gather.events += held_changes.told(facts.trust, wanted.trust, now)
    facts = replace(facts, trust=wanted.trust)
    clusters = _reachability(facts, wanted, seen, now, gather)
    wanted, held = _with_held_deletions(facts, wanted, now, gather)
    context = Context(now, settings, wanted, seen, facts.nodes, clusters)
    _file_outcomes(context, facts, gather, UnchangedRequests() if unchanged is None else unchanged)
    known, failed = _with_health(facts, context, gather)
    chosen_by = with_lemons(known.faults, known.cards, now)
    context = replace(context, nodes=known.nodes, faults=chosen_by)
    grown = came(facts, wanted, seen, now)
    gather.events += grown.events
    current = replace(
        known,
        at=now,
        intent=wanted.commit,
        requests=gather.requests,
        scales=grown.scales,
        clusters=clusters,
        held_deletions=held,
        found=wanted.found,
        unmanaged=_unmanaged(facts, wanted, seen),
    )
    _lease_outcomes(context, current, gather)
    due = begun(current.remedies, replace(current, requests=gather.requests), wanted.clusters, seen, now)
    gather.events += due.events
    current = replace(current, remedies=due.remedies)
    current = _with_accounts(facts, _with_runs(facts, current, context, gather), gather.requests, context)
    current = replace(current, queues=queues_shown(facts, current, wanted, seen))
    current = replace(current, services=services_shown(facts, current, wanted, seen))
    gather.events += service_events(facts, current)
    current = placed(facts, current, wanted)
    moves = {key: (Cause.ADMIN_MOVED, by) for key, by in let_past(facts, current, wanted).items()}
    causes = moves | gather.causes
    anew = asked_anew(facts, current, wanted)
    return Folded(current, tuple(gather.events), causes, failed, anew, grown.late)


def _with_health(facts: Facts, context: Context, gather: _Gather) -> tuple[Facts, dict[NodeKey, Cause]]:
    """With what is known of nodes and their cards now; and nodes whose checks failed just now."""
    wanted, seen, now = context.wanted, context.seen, context.now
    spared = spared_nodes(seen, facts.nodes, now)
    counted = {key: report for key, report in seen.reports.items() if key not in spared}
    treated = advanced(facts.remedies, wanted.clusters, seen, now)
    cards = with_results(with_cards(facts.cards, counted, wanted.clusters, now), treated)
    nodes, failed = _judged(facts, gather.requests, context, failing_lemons(cards, now), treated)
    faults = with_faults(facts.faults, (facts.nodes, nodes), wanted.clusters, now)
    alerts = with_alerts(facts.alerts, seen.reports, wanted.clusters, now)
    gather.events += (
        *treated.events,
        *health_events(facts.nodes, nodes, now),
        *lemon_events(facts.cards, cards, now),
        *alert_events(facts.alerts, alerts, facts.requests, now),
    )
    known = replace(facts, nodes=nodes, faults=faults, cards=cards, alerts=alerts, remedies=treated.remedies)
    return known, failed


def _with_runs(before: Facts, current: Facts, context: Context, gather: _Gather) -> Facts:
    """With workspace requests, and the workloads and endpoints inside requests."""
    wanted, seen, now = context.wanted, context.seen, context.now
    spaces, told = workspace_turn(before, wanted, now)
    gather.events += told
    runs, told = workload_turn(before, wanted, gather.requests, seen, now)
    gather.events += told
    served, told = endpoint_turn(before, wanted, gather.requests, seen, now)
    gather.events += told
    return replace(current, workspaces=spaces, workloads=runs, endpoints=served)


def _with_accounts(before: Facts, current: Facts, requests: Records, context: Context) -> Facts:
    """With accounts updated since `before`: usage, losses, used approvals, statistics, and settled promises."""
    wanted, tolerance = context.wanted, context.settings.start_tolerance
    usage = with_finished(before, requests, wanted.project, current.at)
    usage = with_spent(before, requests, usage, wanted)
    usage = with_losses(before, requests, usage, wanted.project.currency)
    spent = spent_after(before, requests, wanted, current.at)
    insights, ended = with_ended(before, requests, wanted, current.at)
    promises = with_settled(before, requests, current.at, tolerance)
    known = replace(current, usage=usage, used_approvals=spent, promises=promises)
    return replace(known, insights=insights, ended=ended)


@dataclass(slots=True)
class _Gather:
    requests: Records
    events: list[Event] = field(default_factory=list)
    causes: dict[str, tuple[Cause, str]] = field(default_factory=dict)

    def add(self, key: str, outcome: RequestOutcome) -> None:
        if outcome.status is None:
            self.requests.pop(key, None)
        else:
            self.requests[key] = outcome.status
        self.events += outcome.events
        if outcome.cause is not None:
            self.causes[key] = outcome.cause


def _file_outcomes(context: Context, facts: Facts, gather: _Gather, unchanged: UnchangedRequests) -> None:
    """What main says of each request, and its approvals; in limited slices also which requests are let in."""
    due, bounded = unchanged.due(facts, context.wanted, context.now), bounded_slices(context.wanted)
    for key in sorted(due):
        old = gather.requests.get(key)
        outcome = file_outcome(key, context.wanted.filed.get(key), old, context)
        if outcome.status is not None and outcome.status.accepted_spec.slice not in bounded:
            then = unbounded_outcome(key, outcome.status, context)
            outcome = RequestOutcome(
                then.status, (*outcome.events, *then.events), then.cause or outcome.cause
            )
        outcome = without_news(outcome, old)
        unchanged.had(key, old, outcome)
        gather.add(key, outcome)
    touched = bounded.intersection(key.partition("/")[0] for key in due)
    for key, outcome in bounded_outcomes(touched, gather.requests, facts.usage, context):
        outcome = without_news(outcome, gather.requests.get(key))
        if (outcome.status, outcome.events) != (facts.requests.get(key), ()):
            unchanged.had(key, facts.requests.get(key), outcome)  # must be kept even if the commit fails
        gather.add(key, outcome)


def _lease_outcomes(context: Context, current: Facts, gather: _Gather) -> None:
    free_nodes = FreeNodes(*pools_and_leases(context.wanted, current), context.now, context.traits)
    said = said_in(context.seen.views)
    for key in sorted(key for key, status in gather.requests.live.items() if status.assignment is not None):
        status = gather.requests[key]
        gather.add(key, handover_outcome(key, status, context, free_nodes))
        gather.add(key, checkpoint_outcome(gather.requests[key], said, context))
        gather.add(key, running_outcome(key, gather.requests[key], context, free_nodes))
        gather.add(key, idle_outcome(key, gather.requests[key], context))
        gather.add(key, releasing_outcome(key, gather.requests[key], context))
    for key in sorted(k for k, s in gather.requests.live.items() if s.assignment is not None or says_so(s)):
        gather.add(key, home_outcome(key, gather.requests[key], context))


def _reachability(
    facts: Facts, wanted: Wanted, seen: Seen, now: datetime, gather: _Gather
) -> dict[str, Reachability]:
    found = {}
    for cluster in sorted(wanted.clusters):
        reachable = cluster in seen.views
        old = facts.clusters.get(cluster)
        if old is not None and old.reachable == reachable:
            found[cluster] = old
            continue
        found[cluster] = Reachability(reachable, now)
        if not reachable:
            why = seen.silences.get(cluster)
            what = f"{cluster} cannot be read: {why}" if why else f"{cluster} does not answer"
            text = f"{what}; its leases continue, but nothing new starts there"
            gather.events.append(Event(now, EventReason.CLUSTER_UNREACHABLE, text, "", cluster))
        elif old is not None:
            gather.events.append(
                Event(now, EventReason.CLUSTER_REACHABLE, f"{cluster} answers again", "", cluster)
            )
    return found


def _unmanaged(facts: Facts, wanted: Wanted, seen: Seen) -> dict[str, tuple[UnmanagedNode, ...]]:
    """GPU nodes outside every pool, as each cluster last showed them."""
    shown = {name: unmanaged_in(view) for name, view in seen.views.items()}
    known = {**facts.unmanaged, **shown}
    return {name: known[name] for name in sorted(wanted.clusters) if known.get(name)}


def _with_held_deletions(facts: Facts, wanted: Wanted, now: datetime, gather: _Gather) -> tuple[Wanted, str]:
    """More files were deleted at once than the project allows: no request is cancelled until an admin confirms."""
    held, digest = deletions_to_hold(facts, wanted)
    if not held:
        return wanted, ""
    if facts.held_deletions != digest:
        text = (
            f"{len(held)} files of waiting requests were deleted at once, more than "
            f"{wanted.project.limits.deletions_at_once}: no request was cancelled; restore the files, or confirm with "
            f"confirmedDeletions: [{digest}] in project.yaml"
        )
        gather.events.append(Event(now, EventReason.DELETIONS_HELD, text))
    return replace(wanted, filed=with_filed(wanted.filed, held)), digest


def deletions_to_hold(facts: Facts, wanted: Wanted) -> tuple[dict[str, Filed], str]:
    """Waiting requests without a file that are kept, as accepted last; and their digest."""
    gone = sorted(k for k, s in live(facts.requests).items() if s.phase in WAITING and k not in wanted.filed)
    digest = deletions_digest(gone)
    project = wanted.project
    if len(gone) <= project.limits.deletions_at_once or digest in project.confirmed_deletions:
        return {}, ""
    return {key: Filed(facts.requests[key].accepted_spec) for key in gone}, digest


def deletions_digest(keys: Iterable[str]) -> str:
    """Identifies one set of deletions, so that an admin confirms exactly those."""
    return "sha256:" + hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()[:16]


def _judged(
    facts: Facts, requests: Records, context: Context, lemons: Mapping[NodeKey, str], treated: Progress
) -> tuple[dict[NodeKey, NodeRecord], dict[NodeKey, Cause]]:
    fresh = _freshly_failed(requests.live, context)
    overdue = overdue_nodes(requests.live, context) | stray_nodes(at(facts, context.now), context.seen)
    clusters = context.wanted.clusters
    before = {**facts.nodes, **fresh, **quarantined(treated, clusters, context.now)}
    nodes = judge_nodes(clusters, context.seen, before, overdue, context.now, lemons)
    nodes = held_out(nodes, treated.remedies, facts, clusters)
    return nodes, dict.fromkeys(fresh, Cause.CHECKS_FAILED)


def _freshly_failed(requests: Mapping[str, GPRStatus], context: Context) -> dict[NodeKey, NodeRecord]:
    """Nodes whose checks failed, which their request does not know yet."""
    by_uid = {status.uid: status for status in requests.values() if status.assignment is not None}
    found: dict[NodeKey, NodeRecord] = {}
    for (uid, node, stage), results in sorted(context.seen.outcomes.checks.items(), key=lambda item: item[0]):
        status = by_uid.get(uid)
        if status is None or status.assignment is None or isinstance(results, Busy) or stage == "run":
            continue
        known = any(c.stage == stage and c.node == node for c in status.checks)
        bad = [r for r in results if not r.passed]
        if known or not bad or node not in status.assignment.nodes:
            continue
        pre = stage == "pre"
        found[(status.assignment.cluster, node)] = NodeRecord(
            metadata=NodeMetadata(name=node),
            cluster=status.assignment.cluster,
            pool=status.assignment.pool,
            state=NodeState.UNHEALTHY if pre else NodeState.QUARANTINED,
            reason="PreCheckFailed" if pre else "PostCheckFailed",
            message=f"{bad[0].name} failed: {cut(bad[0].log) or bad[0].value}",
            since=context.now,
            until=context.now + context.settings.recheck_after if pre else None,
        )
    return found
