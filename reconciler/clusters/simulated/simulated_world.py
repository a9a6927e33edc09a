"""The state of a simulated cluster: plain frozen values, and the fleet in its manifest.

Only changes to nodes are stored; the nodes themselves follow from the manifest, so that a changed manifest
adds and removes nodes without affecting leases. Mappings inside are never changed in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import md5
from typing import Literal

from reconciler.clusters.simulated.scripted_faults import (
    CheckFails,
    Scripted,
    cordoned_nodes,
    dead_nodes,
    drain_end,
    drains,
    foreign_pods,
    lost_namespaces,
    taints,
    upgrades,
)
from reconciler.model.cluster_port import (
    CheckResult,
    ClusterView,
    GpuView,
    LeaseRef,
    NodeView,
    Note,
    QueueTerms,
    QueueView,
    Stage,
    Stamp,
    WorkloadView,
)
from reconciler.model.service_port import Peer
from reconciler.model.workload_port import WorkloadObject, WorkloadRun
from schemas.documents.cluster import ClusterSpec
from schemas.documents.pool import Pool

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
IN_DOMAIN = 4
"""A rack holds about as many 8-GPU machines as its power allows."""
NOTES_KEPT = 1000
"""Notes kept, so that the state stays bounded."""


@dataclass(frozen=True, slots=True)
class CheckRun:
    """One stage of checks for one lease; `results` once finished."""

    lease: LeaseRef
    begun: datetime
    results: tuple[CheckResult, ...] | None = None


@dataclass(frozen=True, slots=True)
class RemedyRun:
    """One reset or reboot; `begun` once the agent had let go of the driver, `results` once finished."""

    uid: str
    asked: datetime
    begun: datetime | None = None
    results: tuple[CheckResult, ...] | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Changes made to one node."""

    lease: LeaseRef | None = None
    stamp: Stamp | None = None
    isolated: str | None = None  # the reason
    drain_until: datetime | None = None
    checks: Mapping[Stage, CheckRun] = field(default_factory=dict)
    driver_kept_until: datetime | None = None  # without a lease: no upgrade of the driver begins before
    drained: datetime | None = None  # when a request to drain it was last answered
    remedy: RemedyRun | None = None  # the last one


@dataclass(frozen=True, slots=True)
class SliceState:
    """A slice; a removed one keeps its stamp, so that an old controller cannot bring it back."""

    namespaces: tuple[str, ...]
    stamp: Stamp
    present: bool = True
    ensured: datetime = EPOCH  # when it was last ensured
    queue: QueueTerms | None = None
    peers: tuple[Peer, ...] | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """A node of an elastic pool."""

    name: str
    ready_at: datetime


@dataclass(frozen=True, slots=True)
class Sized:
    """An elastic pool's target size, its nodes, and how many it ever had."""

    count: int
    nodes: tuple[Made, ...]
    made: int
    stamp: Stamp | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A person's workload in a namespace; without `duration` it never ends by itself."""

    name: str
    namespace: str
    gpus: int  # 0: a CPU workload
    duration: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """A job and its state; it starts again after each eviction."""

    job: Job
    slice: str
    phase: Literal["Pending", "Running", "Succeeded"] = "Pending"
    node: str | None = None
    since: datetime = EPOCH  # when the phase began
    gpu_slots: tuple[int, ...] = ()  # indices of its GPUs while it runs
    owner: str = ""  # slice/name/Kind/name of the object that it is a pod of; empty: a person started it
    shown_end: str | None = None  # the end of its lease as it can read it
    checkpointed_at: datetime | None = None  # when it last saved its work, as it says

    @property
    def ends_at(self) -> datetime | None:
        """When it succeeds if it is not stopped."""
        if self.phase != "Running" or self.job.duration is None:
            return None
        return self.since + self.job.duration

    @property
    def uses_gpus_of(self) -> str | None:
        return self.node if self.job.gpus and self.phase == "Running" else None

    @property
    def gpu_indices(self) -> tuple[int, ...]:
        """Its GPUs on that node; a state of an earlier release does not tell, then the first ones."""
        return self.gpu_slots or tuple(range(self.job.gpus))


@dataclass(frozen=True, slots=True)
class Placed:
    """The objects of one workload of a slice."""

    slice: str
    namespace: str
    run: WorkloadRun
    digest: str
    objects: tuple[WorkloadObject, ...]
    refused: Mapping[str, str] = field(default_factory=dict)  # why, by Kind/name


@dataclass(frozen=True, slots=True)
class Ran:
    """GPUs that a workload had: their figures are remembered with it."""

    job: Job
    slice: str
    node: str
    gpu_slots: tuple[int, ...]
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class World:
    """The whole state of a simulated cluster; `at` is the time of its last change."""

    at: datetime = EPOCH
    nodes: Mapping[str, Held] = field(default_factory=dict)
    slices: Mapping[str, SliceState] = field(default_factory=dict)
    workloads: tuple[Workload, ...] = ()  # in the order in which they were submitted
    faults: tuple[Scripted, ...] = ()
    spent: tuple[CheckFails, ...] = ()  # one entry for each time that a limited one was applied
    sizes: Mapping[str, Sized] = field(default_factory=dict)  # of scaled elastic pools
    notes: tuple[Note, ...] = ()  # announced notes, oldest first, at most `NOTES_KEPT`
    placed: Mapping[str, Placed] = field(default_factory=dict)  # workloads of slices, by slice/name
    past: tuple[Ran, ...] = ()  # GPU workloads that ended or lost their node, oldest end first

    def held(self, node: str) -> Held:
        """Changes made to a node; empty for an untouched one."""
        return self.nodes.get(node, UNTOUCHED)

    def with_node(self, node: str, held: Held) -> World:
        """The same world with one node changed; the same object if nothing changes."""
        if held == self.nodes.get(node):
            return self
        return replace(self, nodes={**self.nodes, node: held})

    def with_slice(self, name: str, state: SliceState) -> World:
        """The same world with one slice changed; the same object if nothing changes."""
        if state == self.slices.get(name):
            return self
        return replace(self, slices={**self.slices, name: state})


UNTOUCHED = Held()


@dataclass(frozen=True, slots=True)
class Fleet:
    """The nodes of a manifest; `views` are untouched, in the manifest's order."""

    cluster: str
    spec: ClusterSpec
    pools: Mapping[str, Pool]  # node -> its pool
    views: Mapping[str, NodeView]


def fleet_of(cluster: str, spec: ClusterSpec) -> Fleet:
    """Every node in the manifest; of two equal names the first counts."""
    pools: dict[str, Pool] = {}
    for pool in spec.pools:
        for node in pool.node_names():
            pools.setdefault(node, pool)
    return Fleet(cluster, spec, pools, views_of(cluster, spec, pools))


def views_of(cluster: str, spec: ClusterSpec, pools: Mapping[str, Pool]) -> dict[str, NodeView]:
    """Untouched views of these nodes, by name with their pool."""
    attributes = {pool.name: _attributes(cluster, pool) for pool in spec.pools}
    domains = _domains(len(spec.topology), pools)
    return {
        node: NodeView(
            node,
            pool.name,
            True,
            gpus=_gpus(cluster, node, pool),
            attributes=attributes[pool.name],
            domains=domains.get(node, ()),
        )
        for node, pool in pools.items()
    }


def _domains(depth: int, pools: Mapping[str, Pool]) -> Mapping[str, tuple[str, ...]]:
    """Each node's topology domains: the smallest have `IN_DOMAIN` nodes, each larger one that many of the smaller."""
    sizes = [IN_DOMAIN ** (depth - kind) for kind in range(depth)]
    found, counts = {}, dict[str, int]()
    for node, pool in pools.items() if depth else ():
        place = counts.get(pool.name, 0)
        counts[pool.name] = place + 1
        found[node] = tuple(f"{pool.name}-{kind}-{place // size + 1}" for kind, size in enumerate(sizes, 1))
    return found


def _attributes(cluster: str, pool: Pool) -> Mapping[str, str]:
    known = {
        "instanceType": pool.instance_type,
        "rdmaSubnet": f"{cluster}-{pool.name}-rdma" if pool.rdma else None,
        "secondaryNetwork": f"{cluster}-{pool.name}-net1" if pool.secondary_network else None,
    }
    return {name: value for name, value in known.items() if value is not None}


def _gpus(cluster: str, node: str, pool: Pool) -> tuple[GpuView, ...]:
    return tuple(
        GpuView(_uuid(f"{cluster}/{node}/{index}"), index, pool.gpu_shape, pool.memory_per_gpu * 1024)
        for index in range(pool.gpus_per_node)
    )


def _uuid(seed: str) -> str:
    """Looks like NVML's, and is the same in every process."""
    h = md5(seed.encode(), usedforsecurity=False).hexdigest()
    return f"GPU-{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def view_of(world: World, fleet: Fleet, now: datetime) -> ClusterView:
    """The cluster's view. Costs a copy of the fleet and its changes."""
    nodes = dict(fleet.views)
    dead, cordoned = dead_nodes(world.faults, now), cordoned_nodes(world.faults, now)
    foreign = foreign_pods(world.faults, now)
    tainted, upgraded = taints(world.faults, now), upgrades(world.faults, now)
    asked = drains(world.faults, now) if fleet.spec.remediation.nvsentinel else {}
    for name in {*world.nodes, *dead, *cordoned, *foreign, *tainted, *upgraded, *asked} & nodes.keys():
        held = world.held(name)
        nodes[name] = replace(
            nodes[name],
            ready=name not in dead,
            cordoned=name in cordoned,
            isolated=held.isolated is not None,
            lease=held.lease,
            stamp=held.stamp,
            draining=held.drain_until is not None,
            staying=_staying(world, name),
            taint=tainted.get(name, ""),
            foreign=foreign.get(name, ()),
            upgrade=upgraded.get(name, ""),
            keeps_driver=held.lease is not None or now < (held.driver_kept_until or EPOCH),
            drain="NVSentinel" if name in asked else "",
            drain_open=name in asked and (held.drained or EPOCH) < asked[name],
        )
    slices = {name: namespaces_of(world, name, now) for name, s in sorted(world.slices.items()) if s.present}
    workloads = tuple(
        WorkloadView(
            w.job.name,
            w.job.namespace,
            w.slice,
            w.job.gpus,
            w.phase,
            w.node,
            w.shown_end,
            w.checkpointed_at,
        )
        for w in world.workloads
    )
    queues = {
        name: QueueView(s.queue.gpus, s.queue.stop, s.queue.mig)
        for name, s in sorted(world.slices.items())
        if s.present and s.queue is not None
    }
    return ClusterView(now, nodes, slices, workloads, fence=_fence(world), queues=queues)


def _fence(world: World) -> Stamp | None:
    """The newest stamp of slices, including removed ones, and of elastic pools."""
    sized = (size.stamp for size in world.sizes.values() if size.stamp is not None)
    return max((*(state.stamp for state in world.slices.values()), *sized), default=None)


def _staying(world: World, node: str) -> tuple[str, ...]:
    """GPU workloads on a node that is being drained."""
    if world.held(node).drain_until is None:
        return ()
    here = sorted(f"{w.job.namespace}/{w.job.name}" for w in world.workloads if w.uses_gpus_of == node)
    return tuple(f"{name} (its kubelet has not ended it)" for name in here)


def namespaces_of(world: World, slice_: str, now: datetime) -> tuple[str, ...]:
    """The slice's existing namespaces: people may have deleted some."""
    state = world.slices.get(slice_)
    if state is None or not state.present:
        return ()
    lost = lost_namespaces(world.faults, state.ensured, now)
    return tuple(name for name in state.namespaces if name not in lost)


def drained_at(world: World, node: str) -> datetime | None:
    """When a node's drain ends; None if it is not being drained."""
    planned = world.held(node).drain_until
    return None if planned is None else drain_end(world.faults, node, planned)
