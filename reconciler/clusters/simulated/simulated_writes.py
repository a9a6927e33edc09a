"""The effect of each write on a simulated cluster, as pure functions from a world to a world and an answer.

Every accepted write leaves its stamp, even without a change: so an older controller that comes later is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from reconciler.clusters.simulated.scripted_faults import dead_nodes, upgrades
from reconciler.clusters.simulated.simulated_checks import NODE_GONE, finished
from reconciler.clusters.simulated.simulated_workloads import busy_gpus
from reconciler.clusters.simulated.simulated_world import (
    NOTES_KEPT,
    CheckRun,
    Fleet,
    Held,
    SliceState,
    Workload,
    World,
    drained_at,
    namespaces_of,
)
from reconciler.model.cluster_port import (
    AT_REST,
    Answer,
    Busy,
    CheckResult,
    Difference,
    Done,
    LeaseRef,
    Note,
    Refused,
    SliceTerms,
    Stage,
    Stamp,
)
from schemas.reading.units import format_instant

CHECK = timedelta(seconds=30)
"""Duration of checks; well below the shortest useful `prepare`."""
FRESH = timedelta(minutes=15)
"""Older results say too little about a node."""
DRAIN = timedelta(seconds=20)
"""Kubernetes gives a pod 30 s to end; most need less."""

CLEANED = timedelta(minutes=2)
"""The checks after a lease begin within that time; until then the driver is not upgraded."""

Changed = tuple[World, Answer]


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """The cluster at the time of a write."""

    world: World
    fleet: Fleet
    now: datetime

    def refused(self, reason: str, message: str) -> Changed:
        return self.world, Refused(reason, message)


def added(s: WriteTarget, node: str, lease: LeaseRef, stamp: Stamp) -> Changed:
    """The node serves the lease; a running drain of the same lease is cancelled."""
    held = s.world.held(node)
    if (late := stale(f"node {node}", held.stamp, stamp)) is not None:
        return s.world, late
    if held.lease is not None and held.lease.uid != lease.uid:
        return s.refused("NodeHeld", f"node {node} serves {held.lease.request}")
    if node not in s.fleet.views:
        return s.refused("NodeGone", f"the cluster has no node {node}")
    if held.lease is None and node in dead_nodes(s.world.faults, s.now):
        return s.refused("NodeNotReady", f"node {node} is not Ready")
    return s.world.with_node(node, replace(held, lease=lease, stamp=stamp, drain_until=None)), Done()


def evicted(s: WriteTarget, node: str, uid: str, by: datetime, stamp: Stamp) -> Changed:
    """The lease's workloads have until `by`; they keep the node."""
    held = s.world.held(node)
    if (late := stale(f"node {node}", held.stamp, stamp)) is not None:
        return s.world, late
    held = replace(held, stamp=stamp)
    over = held.drain_until is not None and held.drain_until <= s.now
    if held.lease is not None and held.lease.uid == uid and not over:
        held = replace(held, drain_until=max(by, s.now))
    return s.world.with_node(node, held), Done()


def end_shown(s: WriteTarget, lease: LeaseRef, stamp: Stamp) -> Changed:
    """Its running GPU workloads show its end, or until when their node is drained."""
    mine = {name: held for name, held in s.world.nodes.items() if held.lease and held.lease.uid == lease.uid}
    for node, held in sorted(mine.items()):
        if (late := stale(f"node {node}", held.stamp, stamp)) is not None:
            return s.world, late
    world, shown = s.world, []
    for w in world.workloads:
        its = mine.get(w.uses_gpus_of or "")
        until = None if its is None else min(lease.end, its.drain_until or lease.end)
        shown.append(w if until is None else replace(w, shown_end=format_instant(until)))
    workloads = tuple(shown)
    return (world if workloads == world.workloads else replace(world, workloads=workloads)), Done()


def saved(s: WriteTarget, namespace: str, name: str, at: datetime) -> World:
    """The workload says that it saved its work at that instant."""
    is_it = [(w.job.namespace, w.job.name) == (namespace, name) for w in s.world.workloads]
    workloads = (
        replace(w, checkpointed_at=at) if it else w for w, it in zip(s.world.workloads, is_it, strict=True)
    )
    return replace(s.world, workloads=tuple(workloads)) if any(is_it) else s.world


def removed(s: WriteTarget, node: str, uid: str, stamp: Stamp) -> Changed:
    """The node is drained and then free; a node with another lease is left alone."""
    held = s.world.held(node)
    if (late := stale(f"node {node}", held.stamp, stamp)) is not None:
        return s.world, late
    held = replace(held, stamp=stamp)
    if held.lease is None or held.lease.uid != uid:
        return s.world.with_node(node, held), Done()
    draining = s.world.with_node(node, _draining(s, node, held))
    until = drained_at(draining, node)
    if until is not None and s.now < until:
        return draining, Busy(until, f"node {node} is draining")
    freed = replace(held, lease=None, drain_until=None, driver_kept_until=s.now + CLEANED)
    return s.world.with_node(node, freed), Done()


def _draining(s: WriteTarget, node: str, held: Held) -> Held:
    """At once if no GPU is in use, else after the drain time; never later than announced."""
    until = s.now + DRAIN if busy_gpus(s.world, node) else s.now
    return replace(held, drain_until=min(until, held.drain_until or until))


def isolated(s: WriteTarget, node: str, reason: str | None, stamp: Stamp) -> Changed:
    """No new workload runs on the node. None ends our own isolation; a person's cordon stays."""
    held = s.world.held(node)
    if (late := stale(f"node {node}", held.stamp, stamp)) is not None:
        return s.world, late
    if node not in s.fleet.views:
        return s.refused("NodeGone", f"the cluster has no node {node}")
    return s.world.with_node(node, replace(held, isolated=reason, stamp=stamp)), Done()


def drained(s: WriteTarget, node: str, stamp: Stamp) -> Changed:
    """The request to drain it is answered."""
    held = s.world.held(node)
    if (late := stale(f"node {node}", held.stamp, stamp)) is not None:
        return s.world, late
    if node not in s.fleet.views:
        return s.refused("NodeGone", f"the cluster has no node {node}")
    if held.lease is not None:
        return s.refused("NodeHeld", f"node {node} serves {held.lease.request}")
    answered = s.now if s.fleet.spec.remediation.nvsentinel else held.drained
    return s.world.with_node(node, replace(held, drained=answered, stamp=stamp)), Done()


def slice_ensured(s: WriteTarget, terms: SliceTerms, stamp: Stamp) -> Changed:
    """Exactly these namespaces belong to the slice; another slice's namespace is never taken."""
    name, namespaces = terms.name, terms.namespaces
    state = s.world.slices.get(name)
    if (late := stale(f"slice {name}", state.stamp if state else None, stamp)) is not None:
        return s.world, late
    for owner, other in sorted(s.world.slices.items()):
        taken = sorted(set(namespaces) & set(other.namespaces)) if other.present and owner != name else []
        if taken:
            return s.refused("NamespaceTaken", f"namespace {taken[0]} belongs to slice {owner}")
    namespaces = tuple(sorted(set(namespaces)))
    whole = state is not None and namespaces_of(s.world, name, s.now) == namespaces
    ensured = state.ensured if state is not None and whole else s.now
    made = SliceState(namespaces, stamp, ensured=ensured, queue=terms.queue, peers=terms.peers)
    return s.world.with_slice(name, made), Done()


def differing(s: WriteTarget, slices: tuple[SliceTerms, ...]) -> tuple[Difference, ...]:
    """Missing and surplus namespaces of these slices, and queues and peers on other terms."""
    found: list[Difference] = []
    for terms in slices:
        have = namespaces_of(s.world, terms.name, s.now)
        missing = sorted(set(terms.namespaces) - set(have))
        extra = sorted(set(have) - set(terms.namespaces))
        found += [Difference(terms.name, f"Namespace {n}", "missing") for n in missing]
        found += [Difference(terms.name, f"Namespace {n}", "extra") for n in extra]
        state = s.world.slices.get(terms.name)
        there = state if state is not None and state.present else SliceState((), Stamp(0, 0))
        found += _unlike(terms.name, f"ClusterQueue {terms.name}", there.queue, terms.queue)
        found += _unlike(terms.name, f"NetworkPolicy {terms.name}", there.peers, terms.peers)
    return tuple(found)


def _unlike(slice_: str, what: str, have: object, want: object) -> Iterator[Difference]:
    """Nothing if they are equal; None stands for an object that is not there."""
    how: Literal["missing", "extra", "changed"] = "changed"
    if have is None or want is None:
        how = "missing" if have is None else "extra"
    if have != want:
        yield Difference(slice_, what, how)


def announced(s: WriteTarget, notes: tuple[Note, ...]) -> World:
    """The world with these notes, each once; the oldest are dropped."""
    told = {note.key for note in s.world.notes}
    new = tuple({n.key: n for n in notes if n.key not in told}.values())
    return replace(s.world, notes=(*s.world.notes, *new)[-NOTES_KEPT:]) if new else s.world


def slice_removed(s: WriteTarget, name: str, stamp: Stamp) -> Changed:
    """Removes our marks; users' workloads stay, without GPUs."""
    state = s.world.slices.get(name)
    if (late := stale(f"slice {name}", state.stamp if state else None, stamp)) is not None:
        return s.world, late
    holding = sorted(n for n, h in s.world.nodes.items() if h.lease is not None and h.lease.slice == name)
    if holding:
        return s.refused(
            "SliceHoldsNodes", f"slice {name} still has {len(holding)} nodes, first {holding[0]}"
        )
    return s.world.with_slice(name, SliceState((), stamp, present=False)), Done()


def checked(
    s: WriteTarget, node: str, stage: Stage, lease: LeaseRef, stamp: Stamp
) -> tuple[World, Busy | Refused | tuple[CheckResult, ...]]:
    """Begins the checks, waits for them, or returns their results."""
    if node not in s.fleet.views:
        return s.world, NODE_GONE
    held = s.world.held(node)
    if (late := stale(f"node {node}", held.stamp, stamp)) is not None:
        return s.world, late
    run = held.checks.get(stage)
    if run is None or run.lease.uid != lease.uid or s.now >= run.begun + CHECK + _fresh(s, stage):
        run = CheckRun(lease, s.now)
    if run.results is not None:
        return s.world, run.results
    state = upgrades(s.world.faults, s.now).get(node, "")
    if stage != "run" and state not in AT_REST:
        return s.world, Busy(s.now + CHECK, f"the driver of node {node} is being upgraded: {state}")
    kept = held.driver_kept_until if stage == "run" else run.begun + CHECK + FRESH
    begun = s.world.with_node(node, replace(held, checks={**held.checks, stage: run}, driver_kept_until=kept))
    until = run.begun + CHECK
    if s.now < until:
        return begun, Busy(until, f"{stage} checks of node {node} run")
    after = finished(begun, s.fleet, node, stage, until)
    results = after.held(node).checks[stage].results or ()
    if stage == "post" or (stage == "pre" and not all(result.passed for result in results)):
        after = after.with_node(node, replace(after.held(node), driver_kept_until=None))
    return after, results


def _fresh(s: WriteTarget, stage: Stage) -> timedelta:
    """How long results count; those of a running lease are measured again in every interval."""
    every = s.fleet.spec.checks.latency_interval
    return FRESH if stage != "run" or every is None else every


def submitted(s: WriteTarget, workload: Workload) -> World:
    """The workload waits for placement."""
    return replace(s.world, workloads=(*s.world.workloads, workload))


def stale(what: str, have: Stamp | None, stamp: Stamp) -> Refused | None:
    if have is None or have <= stamp:
        return None
    return Refused(
        "StaleStamp",
        f"{what} has the stamp {have.term}.{have.seq}, newer than {stamp.term}.{stamp.seq}: another controller leads",
    )
