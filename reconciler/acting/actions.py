"""The actions that make the clusters match what is committed. Pure, ordered, idempotent.

Only committed facts and the clock decide. Nodes are released before nodes are handed out; a running request
gets the replacement before it loses the bad node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Literal

from reconciler.documents.slice_terms import assigned, terms_in
from reconciler.documents.workload_terms import to_end, to_run
from reconciler.endpoints.terms import all_in, request_of
from reconciler.health.remedies import going_on
from reconciler.lifecycle.provisioning import checked_nodes, passed_nodes
from reconciler.model.cluster_port import (
    ClusterView,
    LeaseRef,
    NodeView,
    RemedyOrder,
    SliceTerms,
    Stage,
    WorkloadView,
)
from reconciler.model.facts import IN_SERVICE, Facts, Seen, Wanted
from reconciler.model.holdings import lease_ref
from reconciler.model.status_edits import counted_end, leaves_at
from reconciler.model.workload_port import WorkloadTerms
from reconciler.status.recognised_leases import is_unread
from schemas.documents.cluster import ClusterSpec
from schemas.documents.pool import Pool
from schemas.reading.units import format_instant
from schemas.status.gpr_status import GPRStatus, Phase
from schemas.status.gpu_faults import GpuAction
from schemas.status.node_status import NodeState

LET_GO = "LetGo"
"""Why a node of an elastic pool is closed before it is removed."""
MOVED = "its end moved"
"""Why a node that the request has already is added again; also used if its mark is incomplete."""


class Do(IntEnum):
    """Kinds of actions, in the order in which they are carried out."""

    END_WORKLOAD = 0
    REMOVE = 1
    RESTORE = 2
    ISOLATE = 3
    EVICT = 4
    ENSURE_FLEET = 5
    ENSURE_SLICE = 6
    CHECK = 7
    ADD = 8
    REMOVE_SLICE = 9
    SCALE = 10
    DRAINED = 11
    REMEDIATE = 12
    RUN_WORKLOAD = 13
    SHOW_END = 14


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
    terms: SliceTerms | None = None
    text: str = ""
    count: int = 0  # wanted number of nodes of the pool named in `node`
    leaving: tuple[str, ...] = ()  # nodes of the pool to remove first
    order: RemedyOrder | None = None
    workload: str = ""  # slice/name
    objects: WorkloadTerms | None = None


def actions(
    wanted: Wanted, facts: Facts, seen: Seen, now: datetime, tolerance: timedelta
) -> tuple[Action, ...]:
    """All actions for every managed cluster that answers, in order.

    A hand-over more than `tolerance` late is not begun: a later start is committed first.
    """
    found: list[Action] = []
    for cluster in sorted(seen.views):
        spec = wanted.clusters.get(cluster)
        if spec is None:
            continue
        done = [*_lease_actions(cluster, (spec, tolerance), facts, seen, now)]
        there = all_in(cluster, wanted, facts, now)
        ends = [*_workload_ends(cluster, there, facts, seen.views[cluster])]
        if spec.mode == "manage":
            done += _fleet_actions(cluster, spec, seen)
            done += _slice_actions(cluster, wanted, facts, seen)
            done += _health_actions(cluster, facts, seen.views[cluster])
            done += _drain_actions(cluster, facts, seen.views[cluster])
            done += _scale_actions(cluster, spec, facts, seen.views[cluster])
            done += _remedy_actions(cluster, spec, facts)
            done += _workload_runs(cluster, there, wanted, seen.views[cluster])
        else:
            done = [*_finishing(done, facts)]
        found += (*ends, *done)
    return tuple(sorted(found, key=lambda a: (a.do, a.cluster, a.request, a.node, a.slice, a.workload)))


def _finishing(done: list[Action], facts: Facts) -> Iterator[Action]:
    """In an observed cluster our remaining leases are finished; nothing begins, nothing else is changed."""
    for action in done:
        ends = action.do in {Do.EVICT, Do.REMOVE} or (action.do is Do.CHECK and action.stage == "post")
        if ends and action.lease is not None and _is_ours(action.lease, facts):
            yield action


def _is_ours(lease: LeaseRef, facts: Facts) -> bool:
    status = facts.requests.get(lease.request)
    return status is not None and status.uid == lease.uid


def _lease_actions(
    cluster: str, terms: tuple[ClusterSpec, timedelta], facts: Facts, seen: Seen, now: datetime
) -> Iterator[Action]:
    view = seen.views[cluster]
    here, pods = assigned(cluster, facts), _pods_of(view)
    leaving = frozenset(name for name, node in view.nodes.items() if node.draining)
    for key, status in here.items():
        yield from _request_actions(key, status, (*terms, view, seen), now)
        if is_running(status, now):
            shown = pods.get(status.accepted_spec.slice, ())
            yield from _shown_end(cluster, key, status, shown, leaving)
    owners = _owners(here, view, now)
    unread = is_unread(cluster, facts)
    for node in view.nodes.values() if not unread else ():
        if node.lease is not None and owners.get(node.name) != node.lease.uid:
            yield Action(Do.REMOVE, cluster, node.name, node.lease.request, node.lease)


def _pods_of(view: ClusterView) -> Mapping[str, list[WorkloadView]]:
    """Pods that are shown an end, by slice."""
    found: dict[str, list[WorkloadView]] = {}
    for pod in view.workloads:
        if pod.phase != "Succeeded" and ((pod.gpus and pod.node is not None) or pod.asks_for_end):
            found.setdefault(pod.slice, []).append(pod)
    return found


def _shown_end(
    cluster: str, key: str, status: GPRStatus, pods: Iterable[WorkloadView], leaving: Collection[str]
) -> Iterator[Action]:
    """Unless all pods of its nodes show when they must have stopped: an idle release counts too."""
    lease, leave, held = lease_ref(key, status), leaves_at(status), status.assignment
    if lease is None or held is None:
        return
    lease = replace(lease, end=leave or lease.end)
    text, nodes = format_instant(lease.end), frozenset(held.nodes)
    wrong = (pod for pod in pods if pod.ends_at != text and (pod.asks_for_end or pod.node in nodes))
    # Pods on a node that leaves before the others show when that is.
    if any(not (pod.node in leaving and pod.ends_at is not None and pod.ends_at < text) for pod in wrong):
        yield Action(Do.SHOW_END, cluster, request=key, lease=lease)


def is_running(status: GPRStatus, now: datetime) -> bool:
    """True while the committed lease gives the slice its nodes."""
    start = status.start_time or status.estimated_start_time
    end = counted_end(status) or status.estimated_end_time
    if start is None or end is None:
        return False
    return status.phase in {Phase.PROVISIONING, Phase.PROVISIONED} and start <= now < end


def _owners(here: Mapping[str, GPRStatus], view: ClusterView, now: datetime) -> dict[str, str]:
    """The owner (uid) of each node; a replaced node keeps its owner until the replacement is there."""
    owners: dict[str, str] = {}
    assigned: set[str] = set()
    for status in here.values():
        assert status.assignment is not None
        assigned.update(status.assignment.nodes)
        if is_running(status, now):
            owners |= dict.fromkeys(status.assignment.nodes, status.uid)
    for status in here.values():
        assert status.assignment is not None
        waiting = any(not _owned(view.nodes.get(n), status.uid) for n in status.assignment.nodes)
        if waiting and is_running(status, now):
            owners |= {n: status.uid for n in status.replaced_nodes if n not in assigned}
    return owners


def _owned(node: NodeView | None, uid: str) -> bool:
    return node is not None and node.lease is not None and node.lease.uid == uid


def _request_actions(
    key: str, status: GPRStatus, where: tuple[ClusterSpec, timedelta, ClusterView, Seen], now: datetime
) -> Iterator[Action]:
    held, lease = status.assignment, lease_ref(key, status)
    spec, tolerance, view, seen = where
    if held is None or lease is None:
        return
    nodes = [node for name in held.nodes if (node := view.nodes.get(name)) is not None]
    others = [node.name for node in nodes if not _owned(node, status.uid)]
    if status.phase is Phase.RELEASING:
        clean = checked_nodes(status, "post")
        yield from (Action(Do.CHECK, held.cluster, n, key, lease, "post") for n in others if n not in clean)
        return
    passed = passed_nodes(status, seen) if others else frozenset()
    # The first hand-over covers all nodes together; later ones (replacements, drift) come one by one.
    begun = status.phase is Phase.PROVISIONED or len(others) < len(nodes)
    ready = passed >= set(held.nodes) and not _is_late(status, now, tolerance)
    may_add = is_running(status, now) and (begun or ready)
    for name in others if now < lease.end else ():
        if name not in passed:
            yield Action(Do.CHECK, held.cluster, name, key, lease, "pre")
        elif may_add:
            yield Action(Do.ADD, held.cluster, name, key, lease)
    for node in nodes if is_running(status, now) else ():
        if node.lease is not None and node.lease.uid == status.uid:
            yield from _until_its_end(node, Action(Do.ADD, held.cluster, node.name, key, lease), spec, now)
            if _measures(status, spec) and now < lease.end - spec.notice:
                yield Action(Do.CHECK, held.cluster, node.name, key, lease, "run")


def _measures(status: GPRStatus, spec: ClusterSpec) -> bool:
    """True if latency between the request's nodes is measured while it runs."""
    assert status.assignment is not None
    several = len(status.assignment.nodes) > 1
    return status.phase is Phase.PROVISIONED and several and spec.checks.latency_interval is not None


def _is_late(status: GPRStatus, now: datetime, tolerance: timedelta) -> bool:
    start = status.estimated_start_time
    return start is not None and now - start > tolerance


def _until_its_end(node: NodeView, add: Action, spec: ClusterSpec, now: datetime) -> Iterator[Action]:
    """Notice before the end of a lease; after a change of the end the node is added again, which cancels the notice."""
    assert add.lease is not None
    assert node.lease is not None
    in_notice = now >= add.lease.end - spec.notice
    is_older = node.lease.start is None and not in_notice  # mark of an older release with fewer fields
    if node.lease.end != add.lease.end or is_older or (node.draining and not in_notice):
        yield replace(add, text=MOVED)
    elif in_notice and not node.draining:
        yield replace(add, do=Do.EVICT)


def _fleet_actions(cluster: str, spec: ClusterSpec, seen: Seen) -> Iterator[Action]:
    differs = any(not found.slice for found in seen.differences.get(cluster, ()))
    if differs and not spec.paused and (cluster, "") not in seen.outcomes.resting:
        yield Action(Do.ENSURE_FLEET, cluster)


def _slice_actions(cluster: str, wanted: Wanted, facts: Facts, seen: Seen) -> Iterator[Action]:
    view = seen.views[cluster]
    terms = terms_in(cluster, wanted, facts, view)
    for slice_ in terms:
        if _needs_work(cluster, slice_, seen):
            yield Action(Do.ENSURE_SLICE, cluster, slice=slice_.name, terms=slice_)
    busy = {node.lease.slice for node in view.nodes.values() if node.lease is not None}
    kept = busy | {slice_.name for slice_ in terms}
    for name in view.slices:
        if name not in kept:
            yield Action(Do.REMOVE_SLICE, cluster, slice=name)


def _needs_work(cluster: str, terms: SliceTerms, seen: Seen) -> bool:
    """True if it is missing or differs, and neither a pause nor a conflict prevents a repair."""
    have = seen.views[cluster].slices.get(terms.name)
    if have is None:
        return True
    if terms.paused or (cluster, terms.name) in seen.outcomes.resting:
        return False
    if cluster not in seen.differences:  # it could not report more than this
        return set(have) != set(terms.namespaces)
    return any(found.slice == terms.name for found in seen.differences[cluster])


def _health_actions(cluster: str, facts: Facts, view: ClusterView) -> Iterator[Action]:
    for node in view.nodes.values():
        record = facts.nodes.get((cluster, node.name))
        out = record is not None and record.state in {NodeState.UNHEALTHY, NodeState.QUARANTINED}
        scale = facts.scales.get((cluster, node.pool))
        if scale is not None and node.name in scale.leaving:
            if not node.isolated:
                yield Action(Do.ISOLATE, cluster, node.name, text=LET_GO)
            continue
        if out and record is not None and not node.isolated:
            yield Action(Do.ISOLATE, cluster, node.name, text=record.reason or "")
        stays = node.upgrade_runs or (record is not None and record.state is NodeState.LOST)
        if not out and node.isolated and not stays:
            yield Action(Do.RESTORE, cluster, node.name)


def _drain_actions(cluster: str, facts: Facts, view: ClusterView) -> Iterator[Action]:
    """Nodes that others wait for: out of service by a committed decision, and no request has them."""
    kept = {
        name
        for status in assigned(cluster, facts).values()
        if status.assignment is not None
        for name in status.assignment.nodes
    }
    for node in view.nodes.values():
        record = facts.nodes.get((cluster, node.name))
        out = record is not None and record.state not in IN_SERVICE
        if node.drain_open and out and node.lease is None and node.name not in kept:
            yield Action(Do.DRAINED, cluster, node.name, text=node.drain)


def _remedy_actions(cluster: str, spec: ClusterSpec, facts: Facts) -> Iterator[Action]:
    """A reset or reboot until it is carried out; after it, the checks once the agent finds the GPUs well."""
    for remedy in going_on(facts.remedies):
        if remedy.cluster != cluster:
            continue
        if remedy.done_at is None:
            kind: Literal["reset", "reboot"] = "reboot" if remedy.action is GpuAction.REBOOT else "reset"
            order = RemedyOrder(remedy.uid, kind, remedy.gpus, remedy.released_at is not None)
            yield Action(Do.REMEDIATE, cluster, remedy.node, order=order)
        elif remedy.well_at is not None:
            lease = LeaseRef(remedy.uid, "", "", remedy.began + spec.remediation.timeout)
            yield Action(Do.CHECK, cluster, remedy.node, "", lease, "pre")


def _workload_ends(
    cluster: str, there: Iterable[WorkloadTerms], facts: Facts, view: ClusterView
) -> Iterator[Action]:
    """Our own objects of runs that are over, in observed clusters too."""
    for key in to_end(there, view) if not is_unread(cluster, facts) else ():
        yield Action(Do.END_WORKLOAD, cluster, slice=key.partition("/")[0], workload=key)


def _workload_runs(
    cluster: str, there: Iterable[WorkloadTerms], wanted: Wanted, view: ClusterView
) -> Iterator[Action]:
    for terms in to_run(cluster, wanted, there, view):
        request, of_slice = request_of(terms.key, wanted), terms.slice
        yield Action(
            Do.RUN_WORKLOAD, cluster, request=request, slice=of_slice, workload=terms.key, objects=terms
        )


def _scale_actions(cluster: str, spec: ClusterSpec, facts: Facts, view: ClusterView) -> Iterator[Action]:
    """The target size of each elastic pool; for a scaler, only sizes that endanger no serving node."""
    held = (status.assignment for status in assigned(cluster, facts).values())
    serving = {name for assignment in held if assignment is not None for name in assignment.nodes}
    for pool in spec.pools:
        scale = facts.scales.get((cluster, pool.name)) if pool.elastic is not None else None
        if scale is None:
            continue
        told = view.sizes.get(pool.name)
        there = {node.name for node in view.nodes.values() if node.pool == pool.name}
        shut = tuple(n for n in scale.leaving if n in there and view.nodes[n].isolated)
        count = scale.wanted
        if told is not None and told > count:
            least = _least(pool, there, len(shut), told, serving)
            count = told if _may_take(pool, serving & there, view) else max(count, min(told, least))
        if told != count:
            yield Action(Do.SCALE, cluster, pool.name, count=count, leaving=shut)


def _least(pool: Pool, there: AbstractSet[str], shut: int, told: int, serving: AbstractSet[str]) -> int:
    """All nodes but those let go and closed; while a node serves, also nodes on their way: cancelling may hit any."""
    is_real = pool.elastic is not None and pool.elastic.target is not None
    coming = max(0, told - len(there)) if is_real and serving & there else 0
    return len(there) - shut + coming


def _may_take(pool: Pool, held: AbstractSet[str], view: ClusterView) -> bool:
    """True if a scaler with a smaller target could remove a held node: Karpenter removes nodes without pods."""
    target = None if pool.elastic is None else pool.elastic.target
    if target is None or not target.is_karpenter:
        return False
    used = {work.node for work in view.workloads if work.phase != "Succeeded"}
    return not held <= used


def drifted(planned: tuple[Action, ...], before: Mapping[str, ClusterView]) -> tuple[Action, ...]:
    """Actions that undo a foreign change: a node that was ours in the last look and no longer is."""
    return tuple(
        action
        for action in planned
        if action.do is Do.ADD
        and action.text != MOVED
        and action.lease is not None
        and action.cluster in before
        and _owned(before[action.cluster].nodes.get(action.node), action.lease.uid)
    )
