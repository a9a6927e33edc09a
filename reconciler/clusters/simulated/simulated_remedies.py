"""Resets and reboots of simulated nodes. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.clusters.simulated.scripted_faults import GpuReset, ResetFails, dead_nodes, holds
from reconciler.clusters.simulated.simulated_checks import NODE_GONE
from reconciler.clusters.simulated.simulated_workloads import busy_gpus
from reconciler.clusters.simulated.simulated_world import RemedyRun, World
from reconciler.clusters.simulated.simulated_writes import WriteTarget, stale
from reconciler.model.cluster_port import Busy, CheckResult, Refused, RemedyOrder, Stamp

RESET = timedelta(seconds=30)
"""A reset takes seconds; the rest is the pod that makes it."""
LOOK = timedelta(seconds=10)
ASKED_FOR = timedelta(minutes=5)
"""An agent takes the driver up again after this long, whatever became of the controller."""

Results = tuple[CheckResult, ...]


def remedied(
    s: WriteTarget, node: str, order: RemedyOrder, stamp: Stamp
) -> tuple[World, Busy | Refused | Results]:
    """Asks the agent to let go, resets or reboots, or returns the result."""
    if node not in s.fleet.views:
        return s.world, NODE_GONE
    held = s.world.held(node)
    if (late := stale(f"node {node}", held.stamp, stamp)) is not None:
        return s.world, late
    if held.lease is not None:
        return s.world, Refused("NodeHeld", f"node {node} serves {held.lease.request}")
    run = held.remedy if held.remedy is not None and held.remedy.uid == order.uid else None
    run = run or RemedyRun(order.uid, s.now)
    if run.results is not None:
        return s.world, run.results
    if run.begun is None and order.released:
        run = replace(run, begun=s.now)
    begun = s.world.with_node(node, replace(held, remedy=run))
    if run.begun is None:
        return begun, Busy(s.now + LOOK, f"the agent of node {node} lets go of its GPUs")
    if s.now < run.begun + RESET:
        return begun, Busy(run.begun + RESET, f"{order.action} of node {node}")
    after, results = _carried_out(s, begun, node, order, run.begun + RESET)
    return after.with_node(node, replace(held, remedy=replace(run, results=results))), results


def _carried_out(
    s: WriteTarget, world: World, node: str, order: RemedyOrder, at: datetime
) -> tuple[World, Results]:
    name = "Reset" if order.action == "reset" else "Reboot"
    used = busy_gpus(world, node)
    if used:
        return world, (CheckResult(name, False, f"{used} GPUs in use", "in use by another client"),)
    fails = any(isinstance(f, ResetFails) and f.node == node and holds(f, at) for f in world.faults)
    if fails or node in dead_nodes(world.faults, at):
        return world, (CheckResult(name, False, "", f"{order.action} of node {node} failed"),)
    all_of = s.fleet.views[node].gpus
    gpus = tuple(gpu.index for gpu in all_of if not order.gpus or gpu.uuid in order.gpus)
    reset = GpuReset(node=node, gpus=gpus, at=at)
    result = CheckResult(name, True, f"{len(gpus)} GPUs", f"{order.action} of node {node} succeeded")
    return replace(world, faults=(*world.faults, reset)), (result,)


def let_go(world: World, node: str, now: datetime) -> bool:
    """Whether the node's agent is asked to let go of the driver."""
    run = world.held(node).remedy
    return run is not None and run.results is None and now < run.asked + ASKED_FOR
