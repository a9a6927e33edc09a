"""A request that has its nodes: marks, a replacement for a bad node, the strict end, and the cleaning after
it. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from reconciler.accounts.gpu_hours import returning, served_until
from reconciler.health.latency import with_latency
from reconciler.health.node_health import EVICTING_TAINT
from reconciler.lifecycle.early_end import IDLE, PREEMPTED, left_early, queues_again, requeued
from reconciler.lifecycle.free_nodes import Spares
from reconciler.lifecycle.marks import with_marks
from reconciler.lifecycle.provisioning import checked_nodes, failed_nodes, new_checks, with_check_results
from reconciler.lifecycle.remaining_pods import is_given_up, with_staying
from reconciler.lifecycle.requeue import unless_too_late
from reconciler.model.events import Event, Told
from reconciler.model.facts import NodeKey, Scene, Turn
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
from schemas.status.gpr_status import Assignment, Cause, Condition, GPRStatus, NodeState, Phase

FAILURES = frozenset({"ChecksFailed", "NodeLost"})
"""Reasons with which a Releasing request ends as Failed."""
_ENDED: dict[str, object] = {"reason": "Ended", "eviction": None, "idle_since": None}
"""The status fields set by its strict end, which overrides a planned early end."""


def running_turn(key: str, status: GPRStatus, scene: Scene, spares: Spares) -> Turn:
    """One step of a Provisioned request: its marks, its end, then its nodes."""
    if status.phase is not Phase.PROVISIONED or status.start_time is None or status.end_time is None:
        return Turn(status)
    end = status.end_time
    if (turn := left_early(key, status, scene)) is not None:
        return turn
    status, events = with_marks(key, status, scene.now)
    if scene.now >= end:
        text = f"{key} reached its strict end; its nodes are released"
        ended = without_condition(status, PREEMPTED, IDLE).model_copy(
            update={"phase": advance(status.phase, Move.END), **_ENDED, "message": None}
        )
        events = (*events, Event(scene.now, Told.EXITING, text, key))
        done = scene.seen.outcomes.taken_back.get(status.uid, scene.now)
        if done - end <= scene.settings.start_tolerance:
            return Turn(ended, events)
        message = f"its end was carried out at {scene.now:%Y-%m-%dT%H:%M:%SZ}: the controller was down"
        late = Condition(type=ENDED_LATE, reason=str(Cause.CONTROLLER_ABSENT), message=message, at=scene.now)
        return Turn(with_condition(ended, late), events, (Cause.CONTROLLER_ABSENT, "controller"))
    status, checked = with_check_results(key, status, scene)
    status, slow = with_latency(key, status, scene)
    turn = _with_sound_nodes(key, status, scene, spares)
    return Turn(turn.status, (*events, *checked, *slow, *turn.events), turn.cause)


def _with_sound_nodes(key: str, status: GPRStatus, scene: Scene, spares: Spares) -> Turn:
    assignment = status.assignment
    assert assignment is not None
    assert status.end_time is not None
    bad = nodes_to_replace(status, scene)
    if not bad:
        return Turn(without_condition(status, "NoSpare"))
    pool = home_of(assignment, scene.wanted.pools)
    avoid = frozenset(assignment.nodes) | {c.node for c in status.checks if not c.passed}
    until, beside = status.end_time, assignment.nodes
    found = [n for _ in bad if (got := spares.take(pool, 1, until, avoid, beside=beside)) for n in got]
    if not found:
        return _without_spare(key, status, bad, scene)
    out = bad[: len(found)]
    nodes = tuple(dict(zip(out, found, strict=True)).get(n, n) for n in assignment.nodes)
    moved = status.model_copy(
        update={
            "assignment": Assignment(cluster=pool[0], pool=pool[1], nodes=nodes),
            "replaced_nodes": (*status.replaced_nodes, *out),
        }
    )
    told = tuple(
        Event(scene.now, Told.NODE_REPLACED, f"{key}: {new} replaces {old}", key, assignment.cluster, old)
        for old, new in zip(out, found, strict=True)
    )
    return Turn(moved, told, (Cause.NODE_REPLACED, f"{assignment.cluster}/{out[0]}"))


def nodes_to_replace(status: GPRStatus, scene: Scene) -> tuple[str, ...]:
    """Its nodes that are permanently bad, or whose checks as a replacement failed."""
    assert status.assignment is not None
    cluster, failed = status.assignment.cluster, failed_nodes(status)
    return tuple(n for n in status.assignment.nodes if n in failed or _is_bad(cluster, n, scene))


def _is_bad(cluster: str, node: str, scene: Scene) -> bool:
    """A cordoned node keeps running. A silent node gets a grace period, and so does one whose pods a foreign
    taint evicts.

    A node taken out of the manifest is bad once it is gone.
    """
    record = scene.nodes.get((cluster, node))
    if cluster not in scene.seen.views:
        return False
    if record is None:
        return scene.is_gone(cluster, node)
    if record.state is NodeState.LOST or record.reason == EVICTING_TAINT:
        return scene.now - record.since >= scene.settings.lost_grace
    return record.state in {NodeState.UNHEALTHY, NodeState.QUARANTINED}


def _without_spare(key: str, status: GPRStatus, bad: tuple[str, ...], scene: Scene) -> Turn:
    assert status.assignment is not None
    if len(bad) == len(status.assignment.nodes):
        return _all_lost(key, status, scene)
    message = f"{', '.join(bad)} cannot be replaced: the pool has no free node; the other nodes continue"
    noted = with_condition(status, Condition(type="NoSpare", reason="NoSpare", message=message, at=scene.now))
    if noted is status:
        return Turn(status)
    told = Event(
        scene.now, Told.NODE_NOT_REPLACED, f"{key}: {message}", key, status.assignment.cluster, bad[0]
    )
    return Turn(noted, (told,))


def _all_lost(key: str, status: GPRStatus, scene: Scene) -> Turn:
    """No node is left: queued for its remaining time, or failed if it does not want that."""
    assert status.assignment is not None
    assert status.end_time is not None
    cluster = scene.wanted.clusters.get(status.assignment.cluster)
    cost = cost_until(status, cluster, scene.wanted.project.currency, scene.now)
    minute = timedelta(minutes=1)  # durations are whole minutes
    left = (status.end_time - scene.now) // minute * minute
    if left < minute:
        text = f"{key} lost all its nodes in its last minute"
        update = {"phase": advance(status.phase, Move.END), **_ENDED, "message": None}
        ended = status.model_copy(update={**update, "end_time": scene.now})
        return Turn(ended, (Event(scene.now, Told.EXITING, text, key),))
    wants = status.accepted_spec.requeue_on_failure
    if not wants or status.retry_count >= scene.wanted.project.max_retries:
        why = f"it has been retried {status.retry_count} times" if wants else "requeueOnFailure is false"
        text = f"failed: all its nodes are lost and {why}"
        update = {
            "phase": advance(status.phase, Move.FAIL),
            "reason": "NodeLost",
            "message": text,
            "eviction": None,
        }
        return Turn(status.model_copy(update={**update, "end_time": scene.now}))
    text = "queued again for its remaining time: all its nodes are lost"
    queued = without_promise(status).model_copy(
        update={
            "phase": advance(status.phase, Move.NODES_FAILED),
            "reason": "NodeLost",
            "message": text,
            "remaining": left,
            "retry_count": status.retry_count + 1,
            "cost": cost,
            "cost_before": cost,
            "served": served_until(status, scene.now),
            "charge": returning(status),
            "marks": (),
            "eviction": None,
            "idle_since": None,
        }
    )
    queued = without_condition(queued, PREEMPTED, IDLE)
    return Turn(queued, (Event(scene.now, Told.REQUEUED, f"{key} was {text}", key),), (Cause.REQUEUED, key))


def releasing_turn(key: str, status: GPRStatus, scene: Scene) -> Turn:
    """One step of a request whose time is over: it is Completed when its last node is clean."""
    assignment = status.assignment
    if status.phase is not Phase.RELEASING or assignment is None:
        return Turn(status)
    added = new_checks(status, "post", scene)
    events = tuple(
        Event(
            scene.now,
            Told.POST_CHECK_FAILED,
            f"{c.node} is not clean after {key}: {c.name} failed: {c.log or c.value}",
            key,
            assignment.cluster,
            c.node,
        )
        for c in added
        if not c.passed
    )
    if added:
        status = status.model_copy(update={"checks": (*status.checks, *added)})
    unclean = set(assignment.nodes) - checked_nodes(status, "post")
    here = sorted(node for node in unclean if not scene.is_gone(assignment.cluster, node))
    status, told = with_staying(key, status, here, scene)
    events = (*events, *told)
    left = [node for node in here if not is_given_up(assignment.cluster, node, scene)]
    if left:  # nodes that are gone need no cleaning
        turn = unless_too_late(key, status, left[0], scene)
        return Turn(turn.status, (*events, *turn.events), turn.cause)
    if queues_again(status):
        turn = requeued(key, status, scene)
        return Turn(turn.status, (*events, *turn.events), turn.cause)
    return _completed(key, status, events, scene)


def is_clean(status: GPRStatus, node: str) -> bool:
    """True if the checks after the lease have run on that node, passed or not."""
    return node in checked_nodes(status, "post")


def _completed(key: str, status: GPRStatus, events: tuple[Event, ...], scene: Scene) -> Turn:
    assert status.assignment is not None
    cluster = scene.wanted.clusters.get(status.assignment.cluster)
    end = status.end_time or scene.now
    is_failure = status.reason in FAILURES
    done = status.model_copy(
        update={
            "phase": advance(status.phase, Move.CLEAN_AFTER_FAILURE if is_failure else Move.CLEAN),
            "released_at": scene.now,
            "cost": cost_until(status, cluster, scene.wanted.project.currency, end),
        }
    )
    if is_failure:
        return Turn(done, (*events, Event(scene.now, Told.FAILED, f"{key} {status.message}", key)))
    held, clean = status.assignment, checked_nodes(status, "post")
    of_them = [node for node in held.nodes if node in clean or scene.is_gone(held.cluster, node)]
    rest = [node for node in held.nodes if node not in of_them]
    text = f"{key} is complete; its nodes are clean: {', '.join(of_them) or 'none'} of {held.cluster}/{held.pool}"
    text += f"; quarantined, because pods did not terminate: {', '.join(rest)}" if rest else ""
    return Turn(done, (*events, Event(scene.now, Told.COMPLETED, text, key, held.cluster)))


def overdue_nodes(requests: Mapping[str, GPRStatus], scene: Scene) -> frozenset[NodeKey]:
    """Nodes not yet clean although their lease ended longer ago than their cluster's drain."""
    found = set()
    for status in requests.values():
        if status.phase is not Phase.RELEASING or status.assignment is None or status.end_time is None:
            continue
        cluster = scene.wanted.clusters.get(status.assignment.cluster)
        due = None if cluster is None else clean_by(status, cluster.drain)
        if due is not None and scene.now >= due:
            clean = checked_nodes(status, "post")
            found |= {(status.assignment.cluster, n) for n in status.assignment.nodes if n not in clean}
    return frozenset(found)
