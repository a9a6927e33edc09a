"""A request on its way to its nodes: checks, replacement of nodes that fail, the start itself. Pure.

A request becomes Provisioned when the cluster shows all of its nodes assigned to it, at the committed start. A
start later than `Settings.start_tolerance` is first committed again, with its cause.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial

from reconciler.health.check_results import rows
from reconciler.lifecycle.free_nodes import FreeNodes
from reconciler.model.cluster_port import Busy, Stage
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Context, LeaseKey, RequestOutcome, Seen
from reconciler.model.pools import home_of
from reconciler.model.status_edits import first_wait, lease_duration, with_slip, without_promise
from scheduler.lifecycle import Event as Move
from scheduler.lifecycle import advance
from schemas.reading.units import next_second
from schemas.status.gpr_status import Assignment, Cause, Check, GPRStatus, Phase


def handover_outcome(key: str, status: GPRStatus, context: Context, free_nodes: FreeNodes) -> RequestOutcome:
    assignment, start = status.assignment, status.estimated_start_time
    if status.phase is not Phase.PROVISIONING or assignment is None or start is None:
        return RequestOutcome(status)
    if (begun := start_seen(key, status, context)) is not None:
        return begun
    status, events = with_check_results(key, status, context)
    spec = context.wanted.clusters.get(assignment.cluster)
    if spec is not None and spec.mode != "manage":
        only = f"{assignment.cluster} is now only observed"
        return _requeued(key, status, (Cause.POLICY_CHANGED, assignment.cluster), only, (context, events))
    bad = unfit_nodes(status, context)
    if bad:
        return _other_nodes(key, status, events, bad, (context, free_nodes))
    if context.now - start > context.settings.start_tolerance:
        return _late(key, status, events, (context, free_nodes))
    return RequestOutcome(status, events)


def start_seen(key: str, status: GPRStatus, context: Context) -> RequestOutcome | None:
    """Its start, if the cluster shows all its nodes assigned to it, perhaps for long already; else None.

    Nodes that it has before its start are a hand-over of an earlier decision, which came late: they are taken back.
    """
    start = status.estimated_start_time
    if start is None or start > context.now or (status.uid, start) not in handed_over([status], context.seen):
        return None
    status, events = with_check_results(key, status, context)
    return _started(key, status, events, context.now)


def checked_nodes(status: GPRStatus, stage: Stage) -> frozenset[str]:
    """Nodes whose checks of that stage have run, passed or not."""
    return frozenset(c.node for c in status.checks if c.stage == stage)


def failed_nodes(status: GPRStatus) -> frozenset[str]:
    return frozenset(c.node for c in status.checks if c.stage == "pre" and not c.passed)


def passed_nodes(status: GPRStatus, seen: Seen) -> frozenset[str]:
    """Nodes that passed all checks before the start; a result is a fact, so it counts before it is committed."""
    fresh = {
        node
        for node in (status.assignment.nodes if status.assignment is not None else ())
        if isinstance(results := seen.outcomes.checks.get((status.uid, node, "pre")), tuple)
        and results
        and all(r.passed for r in results)
    }
    return (checked_nodes(status, "pre") | fresh) - failed_nodes(status)


def unfit_nodes(status: GPRStatus, context: Context) -> tuple[str, ...]:
    """Its nodes that cannot serve this request: out of service, gone, or with failed checks."""
    assert status.assignment is not None
    cluster, failed = status.assignment.cluster, failed_nodes(status)
    return tuple(
        n
        for n in status.assignment.nodes
        if n in failed or context.is_out(cluster, n) or context.is_gone(cluster, n)
    )


def with_check_results(key: str, status: GPRStatus, context: Context) -> tuple[GPRStatus, tuple[Event, ...]]:
    """The status with the check results that clusters reported, and events about them."""
    assignment = status.assignment
    if assignment is None:
        return status, ()
    added = new_checks(status, "pre", context)
    if not added:
        return status, ()
    status = status.edited(checks=(*status.checks, *added))
    failed = partial(Event, context.now, EventReason.CHECK_FAILED, request=key, cluster=assignment.cluster)
    events = [
        failed(f"{key}: {c.name} failed on {c.node}: {c.log or c.value}", node=c.node)
        for c in added
        if not c.passed
    ]
    if checked_nodes(status, "pre") - failed_nodes(status) >= set(assignment.nodes):
        text = f"{key}: every node passed its checks ({', '.join(assignment.nodes)})"
        events.append(Event(context.now, EventReason.CHECKS_PASSED, text, key, assignment.cluster))
    return status, tuple(events)


def new_checks(status: GPRStatus, stage: Stage, context: Context) -> tuple[Check, ...]:
    """Check results of nodes that the status does not have yet, within the limits of `check_results`."""
    assert status.assignment is not None
    found: list[Check] = []
    known = checked_nodes(status, stage)
    for node in status.assignment.nodes:
        results = context.seen.outcomes.checks.get((status.uid, node, stage))
        if isinstance(results, tuple) and results and node not in known:
            found += rows(results, (stage, node, context.now), (*status.checks, *found))
    return tuple(found)


def handed_over(requests: Iterable[GPRStatus], seen: Seen) -> frozenset[LeaseKey]:
    """Leases that are Provisioning and had all their nodes, now or in an earlier cycle without the remote."""
    found, served = set(), {lease for view in seen.views.values() for lease in view.served}
    for status in requests:
        held, start = status.assignment, status.estimated_start_time
        if status.phase is not Phase.PROVISIONING or held is None or start is None:
            continue
        leases = [seen.lease_of(held.cluster, node) for node in held.nodes]
        own = all(lease is not None and lease.uid == status.uid for lease in leases)
        if own or (status.uid, start) in seen.outcomes.handed_over | served:
            found.add((status.uid, start))
    return frozenset(found)


def _started(key: str, status: GPRStatus, events: tuple[Event, ...], now: datetime) -> RequestOutcome:
    start, held = status.estimated_start_time, status.assignment
    assert start is not None
    assert held is not None
    provisioned = status.edited(
        phase=advance(status.phase, Move.START),
        reason=None,
        message=None,
        start_time=start,
        end_time=start + lease_duration(status),
        estimated_end_time=start + lease_duration(status),
        waited_s=first_wait(status, start),
    )
    where = f"{', '.join(held.nodes)} of {held.cluster}/{held.pool}"
    told = Event(now, EventReason.PROVISIONED, f"{key} has {where}", key, held.cluster)
    return RequestOutcome(provisioned, (*events, told))


def _other_nodes(
    key: str,
    status: GPRStatus,
    events: tuple[Event, ...],
    bad: tuple[str, ...],
    world: tuple[Context, FreeNodes],
) -> RequestOutcome:
    """Other nodes of the same pool for the bad ones, or back into the queue if there are not enough."""
    context, free_nodes = world
    assignment = status.assignment
    assert assignment is not None
    avoid = frozenset(assignment.nodes) | {c.node for c in status.checks if not c.passed}
    until = (status.estimated_start_time or context.now) + lease_duration(status)
    pool = home_of(assignment, context.wanted.pools)
    found = free_nodes.take(pool, len(bad), until, avoid, beside=assignment.nodes)
    if found is None:
        return _back(key, status, events, bad, context)
    kept = tuple(n for n in assignment.nodes if n not in bad)
    text = f"{key}: {', '.join(bad)} replaced by {', '.join(found)}"
    told = Event(context.now, EventReason.NODE_REPLACED, text, key, assignment.cluster)
    moved = Assignment(cluster=pool[0], pool=pool[1], nodes=(*kept, *found))
    return RequestOutcome(status.edited(assignment=moved), (*events, told), (Cause.NODE_REPLACED, bad[0]))


def _back(
    key: str, status: GPRStatus, events: tuple[Event, ...], bad: tuple[str, ...], context: Context
) -> RequestOutcome:
    assert status.assignment is not None
    where = f"{status.assignment.cluster}/{bad[0]}"
    cause = Cause.CHECKS_FAILED if bad[0] in failed_nodes(status) else Cause.NODE_LOST
    if status.retry_count >= context.wanted.project.max_retries:
        text = f"failed: no healthy nodes after {status.retry_count} retries; last: {where}"
        phase = advance(status.phase, Move.FAIL)
        failed = status.edited(phase=phase, reason="ChecksFailed", message=text, end_time=context.now)
        return RequestOutcome(failed, events)
    text = f"queued again: {where} failed and the pool has no other free node"
    slipped = with_slip(status, None, cause, where, context.now)
    queued = without_promise(slipped).edited(
        phase=advance(status.phase, Move.CHECKS_FAILED),
        reason="ChecksFailed",
        message=text,
        retry_count=status.retry_count + 1,
    )
    told = Event(context.now, EventReason.REQUEUED, f"{key} was {text}", key)
    return RequestOutcome(queued, (*events, told), (Cause.REQUEUED, key))


def _requeued(
    key: str,
    status: GPRStatus,
    why: tuple[Cause, str],
    text: str,
    told: tuple[Context, tuple[Event, ...]],
) -> RequestOutcome:
    """Planned again, not because of its nodes: this is not a retry."""
    context, events = told
    queued = without_promise(with_slip(status, None, *why, context.now))
    queued = queued.edited(phase=advance(status.phase, Move.CHECKS_FAILED))
    event = Event(context.now, EventReason.REQUEUED, f"{key} was queued again: {text}", key)
    return RequestOutcome(queued, (*events, event), (Cause.REQUEUED, key))


def _late(
    key: str, status: GPRStatus, events: tuple[Event, ...], world: tuple[Context, FreeNodes]
) -> RequestOutcome:
    """The committed start passed without the nodes: commit a later one with its cause, or plan it again."""
    assert status.assignment is not None
    context, free_nodes = world
    cause, by = _why_late(status, context)
    if _is_cut_off(status, context):
        text = f"{by} has not answered for longer than its drain"
        return _requeued(key, status, (cause, by), text, (context, events))
    start = _next_start(status, context)
    if not free_nodes.move(key, start, start + lease_duration(status)):
        text = "it is late, and its slice has another request at that time"
        return _requeued(key, status, (cause, by), text, (context, events))
    slipped = with_slip(status, start, cause, by, context.now).edited(
        estimated_start_time=start, estimated_end_time=start + lease_duration(status)
    )
    text = f"{key} starts later than promised: {cause} ({by})"
    told = Event(context.now, EventReason.DELAYED, text, key, status.assignment.cluster)
    return RequestOutcome(slipped, (*events, told), (cause, by))


def _is_cut_off(status: GPRStatus, context: Context) -> bool:
    """True if its cluster is silent for good; nodes that it may still hold are released when it answers."""
    assert status.assignment is not None
    cluster = status.assignment.cluster
    spec, reach = context.wanted.clusters.get(cluster), context.clusters.get(cluster)
    if spec is None or reach is None or reach.reachable:
        return False
    return context.now - reach.since > spec.drain


def _next_start(status: GPRStatus, context: Context) -> datetime:
    assert status.assignment is not None
    if status.assignment.cluster not in context.seen.views:
        return context.now + 5 * context.settings.start_tolerance
    pending = [
        answer.until
        for node in status.assignment.nodes
        if isinstance(answer := context.seen.outcomes.checks.get((status.uid, node, "pre")), Busy)
    ]
    return next_second(max([context.now, *pending]))


def _why_late(status: GPRStatus, context: Context) -> tuple[Cause, str]:
    assert status.assignment is not None
    cluster = status.assignment.cluster
    if cluster not in context.seen.views:
        return Cause.CLUSTER_UNREACHABLE, cluster
    skipped = next((c.node for c in reversed(status.checks) if not c.passed and c.stage == "pre"), None)
    if skipped is not None:
        return Cause.CHECKS_FAILED, f"{cluster}/{skipped}"
    if _checks_run(status, context):
        return Cause.CHECKS_FAILED, cluster
    reach = context.clusters.get(cluster)
    if reach is not None and status.held_from is not None and reach.since > status.held_from:
        return Cause.CLUSTER_UNREACHABLE, cluster
    return Cause.CONTROLLER_ABSENT, "controller"


def _checks_run(status: GPRStatus, context: Context) -> bool:
    """True if checks began in time and take longer than the cluster's manifest allows."""
    assert status.assignment is not None
    start, held = status.estimated_start_time, status.held_from
    spec = context.wanted.clusters.get(status.assignment.cluster)
    in_time = start is not None and held is not None and spec is not None and start - held >= spec.prepare
    return in_time and any(
        isinstance(context.seen.outcomes.checks.get((status.uid, node, "pre")), Busy)
        for node in status.assignment.nodes
    )
