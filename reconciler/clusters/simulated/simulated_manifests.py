"""Workloads' objects in a simulated cluster: every pod is a simulated workload, other objects are just there. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler.clusters.simulated.manifest_pods import jobs_of
from reconciler.clusters.simulated.simulated_workloads import remembered
from reconciler.clusters.simulated.simulated_world import Placed, Workload, World, namespaces_of
from reconciler.clusters.simulated.simulated_writes import Changed, WriteTarget, stale
from reconciler.model.cluster_port import Busy, Done, Refused, Stamp
from reconciler.model.workload_port import ObjectView, PlacedWorkload, WorkloadObject, WorkloadTerms, ends
from schemas.status.workload_status import ObjectState


def run(s: WriteTarget, terms: WorkloadTerms, stamp: Stamp) -> Changed:
    """Objects that are new, or have lost a pod, get their pods; objects that are no longer wanted lose theirs."""
    fence = s.world.slices.get(terms.slice)
    if (late := stale(f"slice {terms.slice}", fence.stamp if fence else None, stamp)) is not None:
        return s.world, late
    before = s.world.placed.get(terms.key)
    if before is not None and (before.run, before.namespace) != (terms.run, terms.namespace):
        return s.world, Busy(s.now, "the objects of its last run are there")
    if fence is None or terms.namespace not in namespaces_of(s.world, terms.slice, s.now):
        text = f"namespace {terms.namespace} does not belong to slice {terms.slice}"
        return s.refused("NamespaceMissing", text)
    world = s.world.with_slice(terms.slice, replace(fence, stamp=stamp))
    old = {} if before is None else {each.id: each for each in before.objects}
    kept = {each.id for each in terms.objects if old.get(each.id) == each or each.id in terms.ended}
    gone = [each for each in old.values() if each.id not in kept]
    world = _without(world, terms.namespace, gone, s)
    refused: dict[str, str] = {}
    for each in terms.objects:
        if each.id in terms.ended:
            continue
        world, taken = _with_pods(world, terms, each, s)
        if taken:
            refused[each.id] = taken
    placed = Placed(terms.slice, terms.namespace, terms.run, terms.digest, terms.objects, refused)
    world = replace(world, placed={**world.placed, terms.key: placed})
    first = next(iter(refused.values()), None)
    return world, Done() if first is None else Refused("ObjectTaken", first)


def end(s: WriteTarget, key: str, stamp: Stamp) -> Changed:
    """All its pods are gone at once."""
    slice_ = key.partition("/")[0]
    fence, placed = s.world.slices.get(slice_), s.world.placed.get(key)
    if (late := stale(f"slice {slice_}", fence.stamp if fence else None, stamp)) is not None:
        return s.world, late
    if placed is None:
        return s.world, Done()
    world = s.world if fence is None else s.world.with_slice(slice_, replace(fence, stamp=stamp))
    world = _without(world, placed.namespace, placed.objects, s)
    return replace(world, placed={k: p for k, p in world.placed.items() if k != key}), Done()


def shown(world: World) -> Mapping[str, PlacedWorkload]:
    """Every workload that was applied, with the state of its objects."""
    found = {}
    for key, placed in sorted(world.placed.items()):
        views = tuple(_view(world, placed, each) for each in placed.objects)
        found[key] = PlacedWorkload(key, placed.namespace, placed.run, placed.digest, views)
    return found


def _with_pods(world: World, terms: WorkloadTerms, each: WorkloadObject, s: WriteTarget) -> tuple[World, str]:
    """The world with the object's missing pods; or why it cannot have them."""
    there = {(w.job.namespace, w.job.name): w.owner for w in world.workloads}
    owner = f"{terms.key}/{each.id}"
    jobs = jobs_of(each, terms.namespace)
    taken = next((j for j in jobs if there.get((j.namespace, j.name), owner) != owner), None)
    if taken is not None:
        return world, f"namespace {terms.namespace} has a workload {taken.name} that is not of {terms.key}"
    new = [j for j in jobs if (j.namespace, j.name) not in there]
    made = [Workload(job, terms.slice, since=s.now, owner=owner) for job in new]
    return replace(world, workloads=(*world.workloads, *made)) if made else world, ""


def _without(world: World, namespace: str, objects: Iterable[WorkloadObject], s: WriteTarget) -> World:
    """The world without the pods of these objects."""
    names = {(job.namespace, job.name) for each in objects for job in jobs_of(each, namespace)}
    gone = [w for w in world.workloads if w.owner and (w.job.namespace, w.job.name) in names]
    if not gone:
        return world
    left = tuple(w for w in world.workloads if w not in gone)
    return remembered(replace(world, workloads=left), gone, s.now)


def _view(world: World, placed: Placed, each: WorkloadObject) -> ObjectView:
    if each.id in placed.refused:
        return ObjectView(each.kind, each.name, ObjectState.REFUSED, "ObjectTaken", placed.refused[each.id])
    names = {(job.namespace, job.name) for job in jobs_of(each, placed.namespace)}
    if not names:
        return ObjectView(each.kind, each.name, ObjectState.READY)
    phases = [w.phase for w in world.workloads if (w.job.namespace, w.job.name) in names]
    if len(phases) < len(names):
        return ObjectView(each.kind, each.name, ObjectState.MISSING)
    if "Running" in phases:
        ready = None if ends(each.kind) else phases.count("Running")
        return ObjectView(each.kind, each.name, ObjectState.RUNNING, ready=ready)
    over = ends(each.kind) and all(phase == "Succeeded" for phase in phases)
    return ObjectView(each.kind, each.name, ObjectState.SUCCEEDED if over else ObjectState.PENDING)
