"""What runs in the simulated clusters of a site: pods, values of GPUs and devices, as a portal asks for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from reconciler.clusters.pod_sources import Attributes, Way, of_view
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.simulated_world import Job
from reconciler.model.facts import NodeKey
from reconciler.model.pod_port import PodsSeen
from reconciler.queries.running.sight import Sources
from reconciler.telemetry.simulated_telemetry import SimulatedTelemetry
from reconciler.telemetry.telemetry_port import Latest, Query, Ranges
from schemas.documents.cluster import ClusterSpec
from schemas.status.node_status import GpuReport


@dataclass
class SimulatedFleet:
    """The clusters of a controller in this process, by the files in which it keeps them."""

    state: Path
    specs: Callable[[], Mapping[str, ClusterSpec]]
    opened: dict[str, EmbeddedCluster] = field(default_factory=dict)
    devices: dict[NodeKey, tuple[GpuReport, ...]] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    """Clusters whose pods cannot be read."""

    def cluster(self, name: str) -> EmbeddedCluster:
        if name not in self.opened:
            self.opened[name] = EmbeddedCluster(name, self.specs()[name], self.state / f"{name}.json")
        return self.opened[name]

    def submit(self, cluster: str, namespace: str, name: str, gpus: int, now: datetime) -> None:
        """Somebody starts a workload."""
        self.cluster(cluster).submit(Job(name, namespace, gpus), now)

    @property
    def sources(self) -> Sources:
        return Sources(self, self, lambda _wanted, _now: dict(self.devices))

    def latest(self, nodes: Collection[NodeKey], now: datetime) -> Latest:
        found = [SimulatedTelemetry(name, self.cluster(name)).latest(nodes, now) for name in _names(nodes)]
        return Latest(
            tuple(one for each in found for one in each.samples),
            tuple(one for each in found for one in each.silences),
        )

    def range(self, query: Query, now: datetime) -> Ranges:
        names = _names(query.nodes)
        found = [SimulatedTelemetry(name, self.cluster(name)).range(query, now) for name in names]
        return Ranges(
            tuple(one for each in found for one in each.series),
            tuple(one for each in found for one in each.silences),
        )

    def look(self, cluster: str, _spec: ClusterSpec, namespaces: Collection[str], now: datetime) -> PodsSeen:
        if cluster in self.silent:
            return PodsSeen(silence=f"cluster {cluster} does not answer", knows_owners=False)
        return self._way(cluster).pods(namespaces, now)

    def attributes(self, cluster: str, _spec: ClusterSpec, now: datetime) -> Attributes:
        return {} if cluster in self.silent else self._way(cluster).nodes(now)

    def _way(self, cluster: str) -> Way:
        return of_view(cluster, self.cluster(cluster).observe, are_jobs=True)


def _names(nodes: Collection[NodeKey]) -> list[str]:
    return sorted({cluster for cluster, _ in nodes})
