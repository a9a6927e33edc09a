"""A request that has its nodes: marks, a replacement for a bad node, the strict end, the cleaning after it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial

from reconciler.accounts.gpu_hours import returning, served_until
from reconciler.health.latency import with_latency
from reconciler.health.node_health import DRAIN, EVICTING_TAINT
from reconciler.lifecycle.early_end import IDLE, PREEMPTED, left_early, queues_again, requeued
from reconciler.lifecycle.free_nodes import FreeNodes
from reconciler.lifecycle.lost_time import with_lost_time, with_replaced
from reconciler.lifecycle.marks import with_marks
from reconciler.lifecycle.provisioning import checked_nodes, failed_nodes, new_checks, with_check_results
from reconciler.lifecycle.remaining_pods import is_given_up, with_staying
from reconciler.lifecycle.requeue import unless_too_late
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Context, NodeKey, RequestOutcome
from reconciler.model.pools import home_of
from reconciler.model.status_edits import (
    ENDED_LATE,
    clean_by,
    cost_until,
    with_condition,
    without_condition,
    without_promise,
)
from scheduler.lifecycle import Event as Move
from scheduler.lifecycle import advance
from schemas.status.gpr_status import Assignment, Cause, Condition, GPRStatus, Phase
from schemas.status.node_status import NodeState

FAILURES = frozenset({"ChecksFailed", "NodeLost"})
"""Reasons with which a Releasing request ends as Failed."""


def running_outcome(key: str, status: GPRStatus, context: Context, free_nodes: FreeNodes) -> RequestOutcome:
    """One step of a Provisioned request: its marks, its end, then its nodes."""
    if status.phase is not Phase.PROVISIONED or status.start_time is None or status.end_time is None:
        return RequestOutcome(status)
    end = status.end_time
    if (outcome := left_early(key, status, context)) is not None:
        return outcome
    status, events = with_marks(key, status, context.now)
    if context.now >= end:
        text = f"{key} reached its strict end; its nodes are released"
        ended = _ended(without_condition(status, PREEMPTED, IDLE))
        events = (*events, Event(context.now, EventReason.EXITING, text, key))
        done = context.seen.outcomes.taken_back.get(status.uid, context.now)
        if done - end <= context.settings.start_tolerance:
            return RequestOutcome(ended, events)
        message = f"its end was carried out at {context.now:%Y-%m-%dT%H:%M:%SZ}: the controller was down"
        late = Condition(
            type=ENDED_LATE, reason=str(Cause.CONTROLLER_ABSENT), message=message, at=context.now
        )
        return RequestOutcome(with_condition(ended, late), events, (Cause.CONTROLLER_ABSENT, "controller"))
    status, checked = with_check_results(key, status, context)
    status, slow = with_latency(key, status, context)
    outcome = _with_sound_nodes(key, status, context, free_nodes)
    return RequestOutcome(outcome.status, (*events, *checked, *slow, *outcome.events), outcome.cause)


def _ended(status: GPRStatus) -> GPRStatus:
    """At its strict end, whatever else was to take its nodes."""
    return status.edited(
        phase=advance(status.phase, Move.END), reason="Ended", message=None, eviction=None, idle_since=None
    )


def _with_sound_nodes(key: str, status: GPRStatus, context: Context, free_nodes: FreeNodes) -> RequestOutcome:
    bad = nodes_to_replace(status, context)
    status = with_lost_time(status, bad, context.nodes, context.now)
    assignment = status.assignment
    assert assignment is not None
    assert status.end_time is not None
    if not bad:
        return RequestOutcome(without_condition(status, "NoSpare"))
    pool = home_of(assignment, context.wanted.pools)
    avoid = frozenset(assignment.nodes) | {c.node for c in status.checks if not c.passed}
    until, beside = status.end_time, assignment.nodes
    found = [n for _ in bad if (got := free_nodes.take(pool, 1, until, avoid, beside=beside)) for n in got]
    if not found:
        return _without_spare(key, status, bad, context)
    instead, cluster = dict(zip(bad, found, strict=False)), assignment.cluster
    nodes = tuple(instead.get(n, n) for n in assignment.nodes)
    moved = status.edited(
        assignment=Assignment(cluster=pool[0], pool=pool[1], nodes=nodes),
        replaced_nodes=(*status.replaced_nodes, *instead),
    )
    still_bad = [node for node in bad if node not in instead]
    moved = with_replaced(with_lost_time(moved, still_bad, context.nodes, context.now), len(instead))
    told = tuple(
        Event(context.now, EventReason.NODE_REPLACED, f"{key}: {new} replaces {old}", key, cluster, old)
        for old, new in instead.items()
    )
    return RequestOutcome(moved, told, (Cause.NODE_REPLACED, f"{cluster}/{bad[0]}"))


def nodes_to_replace(status: GPRStatus, context: Context) -> tuple[str, ...]:
    """Its nodes that are permanently bad or to be drained, or whose checks as a replacement failed."""
    assert status.assignment is not None
    cluster, failed = status.assignment.cluster, failed_nodes(status)
    return tuple(n for n in status.assignment.nodes if n in failed or _is_bad(cluster, n, context))


def _is_bad(cluster: str, node: str, context: Context) -> bool:
    """A silent node, or one whose pods a foreign taint evicts, gets a grace period; a removed one is bad once gone."""
    record = context.nodes.get((cluster, node))
    if cluster not in context.seen.views:
        return False
    if record is None:
        return context.is_gone(cluster, node)
    if record.state is NodeState.LOST or record.reason == EVICTING_TAINT:
        return context.now - record.since >= context.settings.lost_grace
    return record.state in {NodeState.UNHEALTHY, NodeState.QUARANTINED} or record.reason == DRAIN


def _without_spare(key: str, status: GPRStatus, bad: tuple[str, ...], context: Context) -> RequestOutcome:
    assert status.assignment is not None
    if len(bad) == len(status.assignment.nodes):
        return _all_lost(key, status, context)
    message = f"{', '.join(bad)} cannot be replaced: the pool has no free node; the other nodes continue"
    condition = Condition(type="NoSpare", reason="NoSpare", message=message, at=context.now)
    noted = with_condition(status, condition)
    if noted is status:
        return RequestOutcome(status)
    text, cluster = f"{key}: {message}", status.assignment.cluster
    told = Event(context.now, EventReason.NODE_NOT_REPLACED, text, key, cluster, bad[0])
    return RequestOutcome(noted, (told,))


def _all_lost(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    """No node is left: queued for its remaining time, or failed if it does not want that."""
    assert status.assignment is not None
    assert status.end_time is not None
    cluster = context.wanted.clusters.get(status.assignment.cluster)
    cost = cost_until(status, cluster, context.wanted.project, context.now)
    minute = timedelta(minutes=1)  # durations are whole minutes
    left = (status.end_time - context.now) // minute * minute
    if left < minute:
        text = f"{key} lost all its nodes in its last minute"
        ended = _ended(status).edited(end_time=context.now)
        return RequestOutcome(ended, (Event(context.now, EventReason.EXITING, text, key),))
    wants = status.accepted_spec.requeue_on_failure
    if not wants or status.retry_count >= context.wanted.project.max_retries:
        why = f"it has been retried {status.retry_count} times" if wants else "requeueOnFailure is false"
        text = f"failed: all its nodes are lost and {why}"
        phase = advance(status.phase, Move.FAIL)
        return RequestOutcome(
            status.edited(phase=phase, reason="NodeLost", message=text, eviction=None, end_time=context.now)
        )
    text = "queued again for its remaining time: all its nodes are lost"
    queued = without_promise(status).edited(
        phase=advance(status.phase, Move.NODES_FAILED),
        reason="NodeLost",
        message=text,
        remaining=left,
        retry_count=status.retry_count + 1,
        cost=cost,
        cost_before=cost,
        served=served_until(status, context.now),
        charge=returning(status),
        marks=(),
        eviction=None,
        idle_since=None,
    )
    queued = without_condition(queued, PREEMPTED, IDLE)
    told = Event(context.now, EventReason.REQUEUED, f"{key} was {text}", key)
    return RequestOutcome(queued, (told,), (Cause.REQUEUED, key))


def releasing_outcome(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    """One step of a request whose time is over: it is Completed when its last node is clean."""
    assignment = status.assignment
    if status.phase is not Phase.RELEASING or assignment is None:
        return RequestOutcome(status)
    added = new_checks(status, "post", context)
    failed = partial(
        Event, context.now, EventReason.POST_CHECK_FAILED, request=key, cluster=assignment.cluster
    )
    events = tuple(
        failed(f"{c.node} is not clean after {key}: {c.name} failed: {c.log or c.value}", node=c.node)
        for c in added
        if not c.passed
    )
    if added:
        status = status.edited(checks=(*status.checks, *added))
    unclean = set(assignment.nodes) - checked_nodes(status, "post")
    here = sorted(node for node in unclean if not context.is_gone(assignment.cluster, node))
    status, told = with_staying(key, status, here, context)
    events = (*events, *told)
    left = [node for node in here if not is_given_up(assignment.cluster, node, context)]
    if left:  # nodes that are gone need no cleaning
        outcome = unless_too_late(key, status, left[0], context)
        return RequestOutcome(outcome.status, (*events, *outcome.events), outcome.cause)
    if queues_again(status):
        outcome = requeued(key, status, context)
        return RequestOutcome(outcome.status, (*events, *outcome.events), outcome.cause)
    return _completed(key, status, events, context)


def is_clean(status: GPRStatus, node: str) -> bool:
    """True if the checks after the lease have run on that node, passed or not."""
    return node in checked_nodes(status, "post")


def _completed(key: str, status: GPRStatus, events: tuple[Event, ...], context: Context) -> RequestOutcome:
    assert status.assignment is not None
    cluster = context.wanted.clusters.get(status.assignment.cluster)
    end = status.end_time or context.now
    is_failure = status.reason in FAILURES
    done = status.edited(
        phase=advance(status.phase, Move.CLEAN_AFTER_FAILURE if is_failure else Move.CLEAN),
        released_at=context.now,
        cost=cost_until(status, cluster, context.wanted.project, end),
    )
    if is_failure:
        event = Event(context.now, EventReason.FAILED, f"{key} {status.message}", key)
        return RequestOutcome(done, (*events, event))
    held, clean = status.assignment, checked_nodes(status, "post")
    of_them = [node for node in held.nodes if node in clean or context.is_gone(held.cluster, node)]
    rest = [node for node in held.nodes if node not in of_them]
    text = f"{key} is complete; its nodes are clean: {', '.join(of_them) or 'none'} of {held.cluster}/{held.pool}"
    text += f"; quarantined, because pods did not terminate: {', '.join(rest)}" if rest else ""
    return RequestOutcome(done, (*events, Event(context.now, EventReason.COMPLETED, text, key, held.cluster)))


def overdue_nodes(requests: Mapping[str, GPRStatus], context: Context) -> frozenset[NodeKey]:
    """Nodes not yet clean although their lease ended longer ago than their cluster's drain."""
    found = set()
    for status in requests.values():
        if status.phase is not Phase.RELEASING or status.assignment is None or status.end_time is None:
            continue
        cluster = context.wanted.clusters.get(status.assignment.cluster)
        due = None if cluster is None else clean_by(status, cluster.drain)
        if due is not None and context.now >= due:
            clean = checked_nodes(status, "post")
            found |= {(status.assignment.cluster, n) for n in status.assignment.nodes if n not in clean}
    return frozenset(found)
