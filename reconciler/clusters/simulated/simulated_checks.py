"""The checks of a simulated node: before a start, between the nodes of a running lease, after an end.

Pure. A check uses the simulated node's state where it can (Ready, GPU health, drain, lease), else it gives a
plausible figure; a scripted `CheckFails` overrides it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from zlib import crc32

from reconciler.clusters.simulated.gpu_readings import readings_of
from reconciler.clusters.simulated.scripted_faults import CheckFails, dead_nodes, holds
from reconciler.clusters.simulated.simulated_workloads import busy_gpus
from reconciler.clusters.simulated.simulated_world import CheckRun, Fleet, World
from reconciler.model.cluster_port import CheckResult, LeaseRef, Stage

NODE_GONE = (CheckResult("NodeHealth", False, "", "the cluster has no such node"),)


@dataclass(frozen=True, slots=True)
class Subject:
    world: World
    fleet: Fleet
    node: str
    lease: LeaseRef
    at: datetime

    @property
    def ready(self) -> bool:
        return self.node not in dead_nodes(self.world.faults, self.at)

    def figure(self, name: str, low: float, high: float) -> float:
        """A measurement of this node for this lease, always the same."""
        share = crc32(f"{self.fleet.cluster}/{self.node}/{name}/{self.lease.uid}".encode()) % 1000 / 999
        return low + share * (high - low)


Check = Callable[[Subject], CheckResult]


def finished(world: World, fleet: Fleet, node: str, stage: Stage, at: datetime) -> World:
    """The world in which the run of `stage` on `node` has its results, as found at `at`."""
    held = world.held(node)
    run = held.checks[stage]
    subject = Subject(world, fleet, node, run.lease, at)
    scripts = _scripts(world, node, stage, at)
    results = tuple(_overruled(check(subject), scripts) for check in checks_of(fleet, node, stage))
    done = replace(held, checks={**held.checks, stage: CheckRun(run.lease, run.begun, results)})
    spent = tuple(f for f in scripts if f.times is not None)
    return replace(world.with_node(node, done), spent=world.spent + spent)


def checks_of(fleet: Fleet, node: str, stage: Stage) -> tuple[Check, ...]:
    """The checks of a stage, in the order shown."""
    pool = fleet.pools[node]
    if stage == "run":
        return (_latency,)
    nccl = (_nccl_latency,) if pool.gpus_per_node > 1 else ()
    if stage == "post":
        return (_drained, _network, *nccl, _persistent_volume, _labels)
    rdma = (_rdma_subnet,) if pool.rdma else ()
    return (_node_health, _persistent_volume, _connectivity, *rdma, *nccl)


def _scripts(world: World, node: str, stage: Stage, at: datetime) -> list[CheckFails]:
    return [
        f
        for f in world.faults
        if isinstance(f, CheckFails) and (f.node, f.stage) == (node, stage) and holds(f, at)
        if f.times is None or world.spent.count(f) < f.times
    ]


def _overruled(result: CheckResult, scripts: list[CheckFails]) -> CheckResult:
    script = next((s for s in scripts if s.check == result.name), None)
    if script is None:
        return result
    return replace(result, passed=False, log=f"{result.name} failed on {script.node}")


def _result(s: Subject, name: str, value: str, log: str) -> CheckResult:
    """Passed as measured, or failed because the node does not answer."""
    if not s.ready:
        return CheckResult(name, False, "", f"node {s.node} is not Ready")
    return CheckResult(name, True, value, log)


def _node_health(s: Subject) -> CheckResult:
    limit = s.fleet.spec.health.max_temperature
    gpus = readings_of(s.world, s.fleet, s.node, s.at)
    bad = [
        f"GPU {g.gpu.index} ({g.gpu.uuid}): {text}" for g in gpus if (text := g.trouble(limit)) is not None
    ]
    value = f"{len(gpus) - len(bad)}/{len(gpus)} GPUs well"
    if bad and s.ready:
        return CheckResult("NodeHealth", False, value, "\n".join(bad[:4]))
    return _result(s, "NodeHealth", value, "Ready, and no GPU reports a fault")


def _persistent_volume(s: Subject) -> CheckResult:
    speed = s.figure("PersistentVolume", 820, 1150)
    return _result(s, "PersistentVolume", f"{speed:.0f} MB/s", "bound, wrote and read back 64 MiB")


def _connectivity(s: Subject) -> CheckResult:
    delay = s.figure("Connectivity", 0.11, 0.38)
    return _result(s, "Connectivity", f"{delay:.2f} ms", "API server, DNS and registry answer")


def _rdma_subnet(s: Subject) -> CheckResult:
    subnet = s.fleet.views[s.node].attributes["rdmaSubnet"]
    rate = s.figure("RdmaSubnet", 372, 391)
    return _result(s, "RdmaSubnet", f"{rate:.0f} Gb/s", f"all ports are active in {subnet}")


def _nccl_latency(s: Subject) -> CheckResult:
    bandwidth, delay = s.figure("NcclBandwidth", 462, 481), s.figure("NcclLatency", 18, 27)
    gpus = s.fleet.pools[s.node].gpus_per_node
    return _result(
        s,
        "NcclLatency",
        f"{delay:.1f} us",
        f"all_reduce over {gpus} GPUs: {delay:.1f} us at 8 B, {bandwidth:.0f} GB/s at 8 GB",
    )


def _latency(s: Subject) -> CheckResult:
    """To the other nodes of the same lease; too long when it passes the manifest's bound."""
    held = ((name, node.lease) for name, node in sorted(s.world.nodes.items()) if name != s.node)
    peers = [name for name, lease in held if lease is not None and lease.uid == s.lease.uid]
    delay, most = s.figure("Latency", 9, 14), s.fleet.spec.checks.max_latency
    text = f"to {', '.join(peers) or 'no other node'}: {delay:.1f} us"
    if s.ready and most is not None and delay > most:
        return CheckResult("Latency", False, f"{delay:.1f} us", f"{text}, above {most:g} us")
    return _result(s, "Latency", f"{delay:.1f} us", text)


def _network(s: Subject) -> CheckResult:
    delay = s.figure("Network", 0.11, 0.38)
    return _result(s, "Network", f"{delay:.2f} ms", "no address or route of the slice remains")


def _drained(s: Subject) -> CheckResult:
    used = busy_gpus(s.world, s.node)
    if used:
        return CheckResult("Drained", False, f"{used} GPUs in use", f"GPU workloads still run on {s.node}")
    return _result(s, "Drained", "0 GPUs in use", "no GPU workload is left")


def _labels(s: Subject) -> CheckResult:
    lease = s.world.held(s.node).lease
    if lease is not None:
        return CheckResult("Labels", False, lease.slice, f"the node still has the labels of {lease.request}")
    return _result(s, "Labels", "none left", "no label of a slice is left")
