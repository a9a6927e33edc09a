"""What one person may see of what runs, at one instant: gathered once, then every answer is made of it.

A person sees GPUs of nodes that a request of their slices holds now, with values measured in that lease, and pods of
their slices' namespaces. A person who sees every slice also sees GPUs without a lease. Nothing else reaches a `Sight`,
so neither counts nor names of others can leave it.

Held by tests/reconciler/queries/test_sight.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from reconciler.model.facts import Facts, NodeKey, Wanted
from reconciler.model.observation import CountLoad, CountPast
from reconciler.model.pod_port import PodSource, PodsSeen
from reconciler.model.statuses import holders, live
from reconciler.telemetry.leased_time import Leased, visible_latest
from reconciler.telemetry.telemetry_port import Latest, Telemetry
from reconciler.workloads.gpu_rows import Fleet, Gpu, gpus_of
from reconciler.workloads.leases import Held, holding_now, leased_to
from reconciler.workloads.workload import Homes, Workload, workloads_in
from scheduler.calendars.elastic import existing
from schemas.documents.cluster import ClusterSpec
from schemas.status.gpr_status import GPRStatus
from schemas.status.node_status import GpuReport

Devices = Mapping[NodeKey, tuple[GpuReport, ...]]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the present comes from. Each answers for itself; none raises."""

    telemetry: Telemetry
    pods: PodSource
    devices: Callable[[Wanted, datetime], Devices]
    """GPUs as agents reported them last, healthy ones too."""
    follow: Callable[[Mapping[str, ClusterSpec], datetime], None] = lambda *_: None
    """Tells the sources the clusters in force, before each look."""
    close: Callable[[], None] = lambda: None
    """No look follows."""
    load: CountLoad = lambda _asked, _now: None
    """Requests at hand of served models."""
    past: CountPast = lambda _asked, _now: ()
    """Requests of served models by hour."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Whose sight it is."""

    may_see: Callable[[str], bool] = lambda _: True
    """Whether they see a slice."""
    sees_all: bool = True
    """Whether they see every slice, and nodes of none."""


EVERYTHING = Viewer()


@dataclass(frozen=True)
class Sight:
    """What is known about GPUs and pods that one person may see."""

    wanted: Wanted
    facts: Facts
    now: datetime
    viewer: Viewer
    requests: Mapping[str, GPRStatus]  # those that hold nodes
    leased: Leased  # of these requests
    fleet: Fleet
    pods: Mapping[str, PodsSeen] = field(default_factory=dict)  # by cluster
    latest: Latest = field(default_factory=Latest)

    @cached_property
    def gpus(self) -> tuple[Gpu, ...]:
        """The nearest to their limits first."""
        return gpus_of(self.fleet)

    @property
    def workloads(self) -> tuple[Workload, ...]:
        return self.fleet.workloads

    @property
    def held(self) -> Mapping[NodeKey, Held]:
        return self.fleet.held

    def request_of(self, workload: Workload) -> str:
        """The running request of its slice in its cluster; empty: there is none."""
        for key, status in self.requests.items():
            held = status.assignment
            if (
                key.partition("/")[0] == workload.slice
                and held is not None
                and held.cluster == workload.key.cluster
            ):
                return key
        return ""

    def gpus_of_request(self, key: str) -> tuple[Gpu, ...]:
        return tuple(gpu for gpu in self.gpus if gpu.held is not None and gpu.held.request == key)

    def gpus_of_workload(self, workload: Workload) -> tuple[Gpu, ...]:
        """GPUs that its pods use, as far as it is known: those of its nodes, unless a source names the pods."""
        return tuple(gpu for gpu in self.gpus if any(one.key == workload.key for one in gpu.workloads))

    @property
    def silences(self) -> tuple[str, ...]:
        """Why values or pods are missing, each reason once."""
        told = [one.message for one in self.latest.silences]
        told += [seen.silence for _, seen in sorted(self.pods.items()) if seen.silence]
        return tuple(dict.fromkeys(told))


def sight(
    sources: Sources,
    world: tuple[Wanted, Facts, datetime],
    viewer: Viewer = EVERYTHING,
    slice_: str | None = None,
    *,
    waiting_too: bool = False,
) -> Sight:
    """Asks the sources. `waiting_too`: also for pods in clusters where their slice holds nothing."""
    wanted, facts, now = world
    requests = {
        key: status
        for key, status in sorted(holders(facts.requests).items())
        if viewer.may_see(name := key.partition("/")[0]) and slice_ in (None, name)
    }
    held = holding_now(requests, now)
    nodes = _nodes(wanted, requests, held, everything=viewer.sees_all and slice_ is None)
    leased = leased_to(requests.values())
    sources.follow(wanted.manifests or wanted.clusters, now)
    latest = sources.telemetry.latest(sorted(nodes), now)
    if not viewer.sees_all:
        latest = visible_latest(latest, {node: leased[node] for node in held if node in leased})
    homes = _homes(wanted, requests, _waiting(wanted, facts, viewer, slice_) if waiting_too else ())
    pods = _pods(sources.pods, wanted, homes, now)
    devices = {
        **{key: record.gpus for key, record in facts.nodes.items() if record.gpus},
        **sources.devices(wanted, now),
    }
    fleet = Fleet(wanted.clusters, nodes, devices, latest.samples, held, workloads_in(pods, homes))
    return Sight(wanted, facts, now, viewer, requests, leased, fleet, pods, latest)


def _nodes(
    wanted: Wanted, requests: Mapping[str, GPRStatus], held: Collection[NodeKey], *, everything: bool
) -> dict[NodeKey, str]:
    """The nodes to show, with their pools."""
    found: dict[NodeKey, str] = {}
    if everything:
        found = {(key[0], node): key[1] for key, pool in wanted.pools.items() for node in existing(pool)}
    for status in requests.values():
        if status.assignment is not None:
            place = status.assignment
            found |= {(place.cluster, n): place.pool for n in place.nodes if (place.cluster, n) in held}
    return found


def _waiting(wanted: Wanted, facts: Facts, viewer: Viewer, slice_: str | None) -> list[str]:
    """Slices whose pods may wait: that one, else those with live requests, and for a member all of theirs."""
    if slice_ is not None:
        return [slice_]
    busy = {key.partition("/")[0] for key in live(facts.requests)}
    return [
        name
        for name in sorted(wanted.slices)
        if viewer.may_see(name) and (name in busy or not viewer.sees_all)
    ]


def _homes(wanted: Wanted, requests: Mapping[str, GPRStatus], also: Iterable[str]) -> Homes:
    """Namespaces to look into: where slices hold nodes, and everywhere for those in `also`."""
    slices: dict[tuple[str, str], str] = {}
    models = {}
    for key, status in requests.items():
        name = key.partition("/")[0]
        spec = wanted.slices.get(name)
        if spec is not None and status.assignment is not None:
            slices |= {(status.assignment.cluster, namespace): name for namespace in spec.namespaces}
        models[name] = status.accepted_spec.model
    for name in also:
        spec = wanted.slices.get(name)
        if spec is not None:
            slices |= {
                (cluster, namespace): name for cluster in spec.clusters for namespace in spec.namespaces
            }
    return Homes(slices, models)


def _pods(source: PodSource, wanted: Wanted, homes: Homes, now: datetime) -> dict[str, PodsSeen]:
    spaces: dict[str, set[str]] = defaultdict(set)
    for cluster, namespace in homes.slices:
        spaces[cluster].add(namespace)
    return {
        cluster: source.look(
            cluster, wanted.manifests.get(cluster, wanted.clusters[cluster]), frozenset(names), now
        )
        for cluster, names in sorted(spaces.items())
        if cluster in wanted.clusters
    }
