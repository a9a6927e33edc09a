"""Where simulated workloads run over time.

Pure. GPU workloads wait until a node of their slice has free GPUs, and return to Pending when that node is
removed; CPU workloads always run and no lease affects them. Placement is in order of submission, on nodes by
name, so that the same history always gives the same result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.clusters.simulated.scripted_faults import cordoned_nodes, dead_nodes, turning_points
from reconciler.clusters.simulated.simulated_world import Fleet, Ran, Workload, World, drained_at

KEPT = timedelta(days=1)
"""Finished workloads are shown this long and then removed, so that the state stays bounded."""
PAST_KEPT, MOST_PAST = timedelta(days=8), 1000
"""How long and how many of the earlier uses of GPUs are remembered: charts look back a week."""


def advance(world: World, fleet: Fleet, now: datetime) -> World:
    """The world at `now`, after every event in between. O(events x workloads)."""
    at = world.at
    while (at := _next_instant(world, at, now)) < now:
        world = settle(world, fleet, at)
    return settle(world, fleet, max(at, now))


def settle(world: World, fleet: Fleet, now: datetime) -> World:
    """Ends finished workloads, stops those without a node, starts those that can run. The same object if
    nothing changes.
    """
    if not world.workloads:
        return world
    kept = tuple(w for w in world.workloads if not _forgotten(w, now))
    stopped = _stopped(tuple(_ended(w, now) for w in kept), world, fleet, now)
    left = [
        before for before, after in zip(kept, stopped, strict=True) if before.gpu_slots != after.gpu_slots
    ]
    placed = _placed(stopped, world, fleet, now)
    if placed == world.workloads:
        return world
    return remembered(replace(world, workloads=placed, at=now), left, now)


def remembered(world: World, left: Iterable[Workload], now: datetime) -> World:
    """The world that knows which GPUs these running workloads had until `now`, or until their own end."""
    ran = [
        Ran(w.job, w.slice, w.node, w.gpu_slots, w.since, min(w.ends_at or now, now))
        for w in left
        if w.node is not None and w.gpu_slots
    ]
    if not ran:
        return world
    recent = (r for r in world.past if now - r.until <= PAST_KEPT)
    return replace(world, past=(*recent, *ran)[-MOST_PAST:])


def busy_gpus(world: World, node: str) -> int:
    return sum(w.job.gpus for w in world.workloads if w.uses_gpus_of == node)


def _next_instant(world: World, after: datetime, limit: datetime) -> datetime:
    ends = [w.ends_at for w in world.workloads]
    drains = [drained_at(world, name) for name, held in world.nodes.items() if held.drain_until]
    points = [t for t in (*ends, *drains) if t is not None] + turning_points(world.faults)
    return min((t for t in points if after < t < limit), default=limit)


def _forgotten(w: Workload, now: datetime) -> bool:
    return w.phase == "Succeeded" and now - w.since >= KEPT


def _ended(w: Workload, now: datetime) -> Workload:
    end = w.ends_at
    return w if end is None or now < end else replace(w, phase="Succeeded", since=end, gpu_slots=())


def _stopped(
    workloads: tuple[Workload, ...], world: World, fleet: Fleet, now: datetime
) -> tuple[Workload, ...]:
    dead = dead_nodes(world.faults, now)
    return tuple(
        replace(w, phase="Pending", node=None, since=now, gpu_slots=(), shown_end=None, checkpointed_at=None)
        if (node := w.uses_gpus_of) is not None
        and (node in dead or node not in fleet.views or not _may_stay(w, node, world, now))
        else w
        for w in workloads
    )


def _may_stay(w: Workload, node: str, world: World, now: datetime) -> bool:
    lease, drained = world.held(node).lease, drained_at(world, node)
    if lease is None or lease.slice != w.slice or not _at_home(w, world):
        return False
    return drained is None or now < drained


def _at_home(w: Workload, world: World) -> bool:
    """True if its namespace still belongs to its slice."""
    state = world.slices.get(w.slice)
    return state is not None and state.present and w.job.namespace in state.namespaces


def _placed(
    workloads: tuple[Workload, ...], world: World, fleet: Fleet, now: datetime
) -> tuple[Workload, ...]:
    if all(w.phase != "Pending" for w in workloads):
        return workloads
    free = _free_gpus(workloads, world, fleet, now)
    return tuple(
        _started(w, free, now) if w.phase == "Pending" and _at_home(w, world) else w for w in workloads
    )


def _free_gpus(
    workloads: tuple[Workload, ...], world: World, fleet: Fleet, now: datetime
) -> dict[str, dict[str, list[int]]]:
    """Slice -> node -> indices of the GPUs that a new workload may use, nodes by name."""
    out = dead_nodes(world.faults, now) | cordoned_nodes(world.faults, now)
    free: dict[str, dict[str, list[int]]] = {}
    for name, held in sorted(world.nodes.items()):
        shut = held.isolated is not None or held.drain_until is not None or name in out
        if held.lease is not None and not shut and name in fleet.views:
            free.setdefault(held.lease.slice, {})[name] = list(range(fleet.pools[name].gpus_per_node))
    for w in workloads:
        if w.uses_gpus_of in free.get(w.slice, {}):
            left = free[w.slice][str(w.node)]
            free[w.slice][str(w.node)] = [index for index in left if index not in w.gpu_indices]
    return free


def _started(w: Workload, free: dict[str, dict[str, list[int]]], now: datetime) -> Workload:
    """`w` running if it can, with its GPUs taken out of `free`."""
    if w.job.gpus == 0:
        return replace(w, phase="Running", since=now)
    nodes = free.get(w.slice, {})
    node = next((name for name, left in nodes.items() if len(left) >= w.job.gpus), None)
    if node is None:
        return w
    slots, nodes[node] = tuple(nodes[node][: w.job.gpus]), nodes[node][w.job.gpus :]
    return replace(w, phase="Running", node=node, since=now, gpu_slots=slots)
