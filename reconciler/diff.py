"""What has to be done in the clusters so that they match what is committed. Pure, ordered, safe to repeat.

Only committed facts and the clock decide: a start that is not committed is not carried out, a strict end that is
committed needs nothing more. Nodes come back before nodes go out; in a running request the spare is there before
the bad node leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum

from reconciler.clusters.port import Busy, ClusterView, LeaseRef, NodeView, Stage
from reconciler.conditions import lease_duration
from reconciler.facts import Facts, Seen, Wanted
from reconciler.handover import failed, passed
from reconciler.running import is_clean
from schemas.status import GPRStatus, NodeState, Phase


class Do(IntEnum):
    """Kinds of actions, in the order in which they are carried out."""

    REMOVE = 1
    RESTORE = 2
    ISOLATE = 3
    EVICT = 4
    ENSURE_SLICE = 5
    CHECK = 6
    ADD = 7
    REMOVE_SLICE = 8


@dataclass(frozen=True, slots=True, order=True)
class Action:
    """One call to a cluster's driver."""

    do: Do
    cluster: str
    node: str = ""
    request: str = ""
    lease: LeaseRef | None = None
    stage: Stage = "pre"
    slice: str = ""
    namespaces: tuple[str, ...] = ()
    text: str = ""


def actions(wanted: Wanted, facts: Facts, seen: Seen, now: datetime) -> tuple[Action, ...]:
    """All actions for every managed cluster that answers, in order."""
    found: list[Action] = []
    for cluster in sorted(seen.views):
        spec = wanted.clusters.get(cluster)
        if spec is None or spec.mode != "manage":
            continue
        view = seen.views[cluster]
        found += _slice_actions(cluster, wanted, view)
        found += _health_actions(cluster, facts, view)
        owners: dict[str, str] = {}
        for key in sorted(facts.requests):
            status = facts.requests[key]
            if status.assignment is not None and status.assignment.cluster == cluster:
                found += _request_actions(key, status, seen, (now, spec.notice))
                owners |= _keeps(status, view, now)
        found += [
            Action(Do.REMOVE, cluster, node.name, node.lease.request, node.lease)
            for node in view.nodes.values()
            if node.lease is not None and owners.get(node.name) != node.lease.uid
        ]
    return tuple(sorted(found, key=lambda a: (a.do, a.cluster, a.request, a.node, a.slice)))


def lease_ref(key: str, status: GPRStatus) -> LeaseRef | None:
    """The mark a node of this request bears."""
    start = status.start_time or status.estimated_start_time
    if start is None:
        return None
    end = status.end_time or start + lease_duration(status)
    return LeaseRef(uid=status.uid, request=key, slice=status.accepted_spec.slice, end=end)


def is_running(status: GPRStatus, now: datetime) -> bool:
    """True while the committed lease gives the slice its nodes."""
    start = status.start_time or status.estimated_start_time
    end = status.end_time or status.estimated_end_time
    if start is None or end is None:
        return False
    return status.phase in {Phase.PROVISIONING, Phase.PROVISIONED} and start <= now < end


def _keeps(status: GPRStatus, view: ClusterView, now: datetime) -> dict[str, str]:
    """Nodes that stay with this request for now: its own, and a replaced one until its spare is there."""
    if status.assignment is None or not is_running(status, now):
        return {}
    own = dict.fromkeys(status.assignment.nodes, status.uid)
    waiting = any(not _owned(view.nodes.get(n), status.uid) for n in status.assignment.nodes)
    return own | (dict.fromkeys(status.replaced_nodes, status.uid) if waiting else {})


def _owned(node: NodeView | None, uid: str) -> bool:
    return node is not None and node.lease is not None and node.lease.uid == uid


def _request_actions(
    key: str, status: GPRStatus, seen: Seen, when: tuple[datetime, timedelta]
) -> Iterator[Action]:
    held, lease = status.assignment, lease_ref(key, status)
    now, notice = when
    if held is None or lease is None:
        return
    view = seen.views[held.cluster]
    for name in held.nodes:
        node = view.nodes.get(name)
        if node is None:
            continue
        owned = _owned(node, status.uid)
        if status.phase is Phase.RELEASING and not owned and not is_clean(status, name):
            yield Action(Do.CHECK, held.cluster, name, key, lease, "post")
        if status.phase in {Phase.PROVISIONING, Phase.PROVISIONED} and not owned and now < lease.end:
            if not _has_passed(status, name, seen):
                yield Action(Do.CHECK, held.cluster, name, key, lease, "pre")
            elif _may_add(status, seen, now):
                yield Action(Do.ADD, held.cluster, name, key, lease)
        if owned and not node.draining and is_running(status, now) and now >= lease.end - notice:
            yield Action(Do.EVICT, held.cluster, name, key, lease)


def _has_passed(status: GPRStatus, node: str, seen: Seen) -> bool:
    """What a check found is a fact, not a decision: it counts also while it cannot be committed."""
    results = seen.outcomes.checks.get((status.uid, node, "pre"))
    fresh = isinstance(results, tuple) and bool(results) and all(r.passed for r in results)
    return passed(status, node) or (fresh and not failed(status, node))


def _may_add(status: GPRStatus, seen: Seen, now: datetime) -> bool:
    """A first hand-over is for all nodes together; later ones (spares, drift) come one by one."""
    assert status.assignment is not None
    if not is_running(status, now):
        return False
    return status.phase is Phase.PROVISIONED or all(
        _has_passed(status, n, seen) for n in status.assignment.nodes
    )


def _slice_actions(cluster: str, wanted: Wanted, view: ClusterView) -> Iterator[Action]:
    spanning = {n: s for n, s in wanted.slices.items() if cluster in s.clusters}
    for name, slice_ in spanning.items():
        if set(view.slices.get(name, ())) != set(slice_.namespaces):
            yield Action(Do.ENSURE_SLICE, cluster, slice=name, namespaces=slice_.namespaces)
    busy = {node.lease.slice for node in view.nodes.values() if node.lease is not None}
    for name in view.slices:
        if name not in spanning and name not in busy:
            yield Action(Do.REMOVE_SLICE, cluster, slice=name)


def _health_actions(cluster: str, facts: Facts, view: ClusterView) -> Iterator[Action]:
    for node in view.nodes.values():
        record = facts.nodes.get((cluster, node.name))
        out = record is not None and record.state in {NodeState.UNHEALTHY, NodeState.QUARANTINED}
        if out and record is not None and not node.isolated:
            yield Action(Do.ISOLATE, cluster, node.name, text=record.reason or "")
        if not out and node.isolated and (record is None or record.state is not NodeState.LOST):
            yield Action(Do.RESTORE, cluster, node.name)


def drifted(planned: tuple[Action, ...], before: Mapping[str, ClusterView]) -> tuple[Action, ...]:
    """Actions that put right what somebody else changed: a node that was ours in the last look and no more."""
    return tuple(
        action
        for action in planned
        if action.do is Do.ADD
        and action.lease is not None
        and action.cluster in before
        and _owned(before[action.cluster].nodes.get(action.node), action.lease.uid)
    )


def pending_until(seen: Seen) -> tuple[datetime, ...]:
    """When the clusters' running checks want to be asked again."""
    return tuple(a.until for a in seen.outcomes.checks.values() if isinstance(a, Busy))
