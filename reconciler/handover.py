"""A request on its way to its nodes: checks, another node for one that fails, the start itself. Pure.

A request becomes Provisioned when every one of its nodes is seen to be its own; its start is the committed one.
A start that comes later than `Settings.start_tolerance` after the committed one is first committed anew, with its
cause, and only then carried out.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from reconciler.clusters.port import Busy, CheckResult
from reconciler.conditions import lease_duration, with_slip, without_promise
from reconciler.events import Event, Told
from reconciler.facts import LeaseKey, Scene, Seen, Turn
from reconciler.spares import Spares
from scheduler.lifecycle import Event as Move
from scheduler.lifecycle import advance
from schemas.status import Assignment, Cause, Check, GPRStatus, Phase


def handover_turn(key: str, status: GPRStatus, scene: Scene, spares: Spares) -> Turn:
    """One look at a request that is Provisioning."""
    assignment, start = status.assignment, status.estimated_start_time
    if status.phase is not Phase.PROVISIONING or assignment is None or start is None:
        return Turn(status)
    status, events = with_check_results(key, status, scene)
    if (status.uid, start) in handed_over([status], scene.seen):
        return _started(key, status, events, scene.now)
    spec = scene.wanted.clusters.get(assignment.cluster)
    if spec is not None and spec.mode != "manage":
        return _unmanaged(key, status, events, scene)
    bad = tuple(n for n in assignment.nodes if is_unfit(status, assignment.cluster, n, scene))
    if bad:
        return _other_nodes(key, status, events, bad, (scene, spares))
    if scene.now - start > scene.settings.start_tolerance:
        return _late(key, status, events, scene)
    return Turn(status, events)


def passed(status: GPRStatus, node: str) -> bool:
    """True when that node has passed all its checks before the start."""
    results = [c for c in status.checks if c.stage == "pre" and c.node == node]
    return bool(results) and all(c.passed for c in results)


def failed(status: GPRStatus, node: str) -> bool:
    """True when a check before the start failed on that node."""
    return any(c.stage == "pre" and c.node == node and not c.passed for c in status.checks)


def is_unfit(status: GPRStatus, cluster: str, node: str, scene: Scene) -> bool:
    """True when that node cannot serve this request: out of service, or its checks failed."""
    return failed(status, node) or scene.is_out(cluster, node)


def with_check_results(key: str, status: GPRStatus, scene: Scene) -> tuple[GPRStatus, tuple[Event, ...]]:
    """The status with what the clusters answered about its nodes' checks, and what to tell about it."""
    assignment = status.assignment
    if assignment is None:
        return status, ()
    events: list[Event] = []
    for node in assignment.nodes:
        results = scene.seen.outcomes.checks.get((status.uid, node, "pre"))
        if results is None or isinstance(results, Busy) or passed(status, node) or failed(status, node):
            continue
        status = with_checks(status, node, results, scene.now)
        bad = [r for r in results if not r.passed]
        events += [
            Event(
                scene.now,
                Told.CHECK_FAILED,
                f"{key}: {r.name} failed on {node}: {r.log or r.value}",
                key,
                assignment.cluster,
                node,
            )
            for r in bad
        ]
        if not bad and all(passed(status, n) for n in assignment.nodes):
            text = f"{key}: all {len(assignment.nodes)} nodes passed their checks"
            events.append(Event(scene.now, Told.CHECKS_PASSED, text, key, assignment.cluster))
    return status, tuple(events)


def with_checks(status: GPRStatus, node: str, results: tuple[CheckResult, ...], now: datetime) -> GPRStatus:
    """The status with these results of one node before a start."""
    added = tuple(
        Check(stage="pre", node=node, name=r.name, passed=r.passed, value=r.value, log=r.log, at=now)
        for r in results
    )
    return status.model_copy(update={"checks": (*status.checks, *added)})


def handed_over(requests: Iterable[GPRStatus], seen: Seen) -> frozenset[LeaseKey]:
    """Leases that are Provisioning and whose nodes are all theirs now, or were so at an earlier look.

    While the remote is down a lease may run to its strict end before its start can be committed.
    """
    found = set()
    for status in requests:
        held, start = status.assignment, status.estimated_start_time
        if status.phase is not Phase.PROVISIONING or held is None or start is None:
            continue
        leases = [seen.lease_of(held.cluster, node) for node in held.nodes]
        own = all(lease is not None and lease.uid == status.uid for lease in leases)
        if own or (status.uid, start) in seen.outcomes.handed_over:
            found.add((status.uid, start))
    return frozenset(found)


def _started(key: str, status: GPRStatus, events: tuple[Event, ...], now: datetime) -> Turn:
    start = status.estimated_start_time
    assert start is not None
    assert status.assignment is not None
    provisioned = status.model_copy(
        update={
            "phase": advance(status.phase, Move.START),
            "reason": None,
            "message": None,
            "start_time": start,
            "end_time": start + lease_duration(status),
            "estimated_end_time": start + lease_duration(status),
        }
    )
    where = f"{len(status.assignment.nodes)} nodes of {status.assignment.cluster}/{status.assignment.pool}"
    told = Event(now, Told.PROVISIONED, f"{key} has {where}", key, status.assignment.cluster)
    return Turn(provisioned, (*events, told))


def _other_nodes(
    key: str,
    status: GPRStatus,
    events: tuple[Event, ...],
    bad: tuple[str, ...],
    world: tuple[Scene, Spares],
) -> Turn:
    """Other nodes of the same pool for the bad ones, or back into the queue when there are not enough."""
    scene, spares = world
    assignment = status.assignment
    assert assignment is not None
    avoid = frozenset(assignment.nodes) | {c.node for c in status.checks if not c.passed}
    until = (status.estimated_start_time or scene.now) + lease_duration(status)
    pool = (assignment.cluster, assignment.pool)
    found = spares.take(pool, len(bad), until, avoid)
    if found is None:
        return _back(key, status, events, bad, scene)
    kept = tuple(n for n in assignment.nodes if n not in bad)
    text = f"{key}: {', '.join(bad)} skipped, {', '.join(found)} taken instead"
    told = Event(scene.now, Told.NODE_REPLACED, text, key, assignment.cluster)
    moved = Assignment(cluster=assignment.cluster, pool=assignment.pool, nodes=(*kept, *found))
    return Turn(
        status.model_copy(update={"assignment": moved}), (*events, told), (Cause.NODE_REPLACED, bad[0])
    )


def _back(key: str, status: GPRStatus, events: tuple[Event, ...], bad: tuple[str, ...], scene: Scene) -> Turn:
    assert status.assignment is not None
    where = f"{status.assignment.cluster}/{bad[0]}"
    cause = Cause.CHECKS_FAILED if failed(status, bad[0]) else Cause.NODE_LOST
    if status.retry_count >= scene.wanted.project.max_retries:
        text = f"failed: no sound nodes after {status.retry_count} retries; last: {where}"
        ended = {"phase": advance(status.phase, Move.FAIL), "reason": "ChecksFailed", "message": text}
        return Turn(status.model_copy(update={**ended, "end_time": scene.now}), events)
    text = f"queued again: {where} failed and the pool has no other node free"
    slipped = with_slip(status, None, cause, where, scene.now)
    queued = without_promise(slipped).model_copy(
        update={
            "phase": advance(status.phase, Move.CHECKS_FAILED),
            "reason": "ChecksFailed",
            "message": text,
            "retry_count": status.retry_count + 1,
        }
    )
    told = Event(scene.now, Told.REQUEUED, f"{key} was {text}", key)
    return Turn(queued, (*events, told), (Cause.REQUEUED, key))


def _unmanaged(key: str, status: GPRStatus, events: tuple[Event, ...], scene: Scene) -> Turn:
    """Its cluster was set to observe before the start: nothing is handed over there, so it is planned anew."""
    assert status.assignment is not None
    cluster = status.assignment.cluster
    queued = without_promise(with_slip(status, None, Cause.POLICY_CHANGED, cluster, scene.now))
    queued = queued.model_copy(update={"phase": advance(status.phase, Move.CHECKS_FAILED)})
    told = Event(scene.now, Told.REQUEUED, f"{key} was queued again: {cluster} is only observed now", key)
    return Turn(queued, (*events, told), (Cause.REQUEUED, key))


def _late(key: str, status: GPRStatus, events: tuple[Event, ...], scene: Scene) -> Turn:
    """The committed start passed without the nodes: commit a later one and say why."""
    assert status.assignment is not None
    cause, by = _why_late(status, scene)
    start = _next_start(status, scene)
    slipped = with_slip(status, start, cause, by, scene.now).model_copy(
        update={"estimated_start_time": start, "estimated_end_time": start + lease_duration(status)}
    )
    text = f"{key} starts later than promised: {cause} ({by})"
    told = Event(scene.now, Told.DELAYED, text, key, status.assignment.cluster)
    return Turn(slipped, (*events, told), (cause, by))


def _next_start(status: GPRStatus, scene: Scene) -> datetime:
    assert status.assignment is not None
    if status.assignment.cluster not in scene.seen.views:
        return scene.now + 5 * scene.settings.start_tolerance
    pending = [
        answer.until
        for node in status.assignment.nodes
        if isinstance(answer := scene.seen.outcomes.checks.get((status.uid, node, "pre")), Busy)
    ]
    return max([scene.now, *pending])


def _why_late(status: GPRStatus, scene: Scene) -> tuple[Cause, str]:
    assert status.assignment is not None
    cluster = status.assignment.cluster
    if cluster not in scene.seen.views:
        return Cause.CLUSTER_UNREACHABLE, cluster
    skipped = next((c.node for c in reversed(status.checks) if not c.passed), None)
    if skipped is not None:
        return Cause.CHECKS_FAILED, f"{cluster}/{skipped}"
    if _checks_run(status, scene):
        return Cause.CHECKS_FAILED, cluster
    reach = scene.clusters.get(cluster)
    if reach is not None and status.held_from is not None and reach.since > status.held_from:
        return Cause.CLUSTER_UNREACHABLE, cluster
    return Cause.CONTROLLER_ABSENT, "controller"


def _checks_run(status: GPRStatus, scene: Scene) -> bool:
    """True when checks were begun in time and take longer than the cluster's manifest says."""
    assert status.assignment is not None
    start, held = status.estimated_start_time, status.held_from
    spec = scene.wanted.clusters.get(status.assignment.cluster)
    in_time = start is not None and held is not None and spec is not None and start - held >= spec.prepare
    return in_time and any(
        isinstance(scene.seen.outcomes.checks.get((status.uid, node, "pre")), Busy)
        for node in status.assignment.nodes
    )
