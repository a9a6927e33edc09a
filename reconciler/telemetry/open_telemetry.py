"""Opens the source of telemetry of a Cluster: the Prometheus that it names, its agents, or its simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reconciler.clusters.open_cluster import DriverOptions, api_of
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.telemetry.ring_telemetry import RingTelemetry
from reconciler.telemetry.shared_answers import Source
from reconciler.telemetry.simulated_telemetry import SimulatedTelemetry
from schemas.documents.cluster import ClientRate, ClusterSpec
from schemas.errors import Fault

NO_DRIVERS = DriverOptions()
Simulated = Callable[[str], EmbeddedCluster | None]
RATE = ClientRate(qps=500, burst=1000)
"""Each page may ask every agent of a cluster, once in 15 seconds."""


@dataclass(frozen=True, slots=True)
class TelemetryOptions:
    """What a process provides for its sources."""

    files: Path | None = None  # credentials of Prometheus; None: there are none
    drivers: DriverOptions = NO_DRIVERS  # how API servers are reached
    simulated: Simulated = lambda _: None  # clusters that this process simulates


def open_telemetry(name: str, spec: ClusterSpec, options: TelemetryOptions) -> Source:
    """Raises `EgsError` if it cannot be opened, with the reason `NoMetrics` if there is none."""
    if spec.metrics is not None and spec.metrics.prometheus is not None:
        from reconciler.telemetry.prometheus_telemetry import PrometheusTelemetry  # HTTP is slow to import

        return PrometheusTelemetry(name, spec.metrics.prometheus, options.files)
    if spec.driver == "embedded":
        return _simulated(name, options)
    if spec.access is not None and spec.access.pull:
        text = f"only its own applier reaches cluster {name}: give spec.metrics.prometheus in clusters/{name}.yaml"
        raise Fault(text, "NoMetrics")
    from reconciler.telemetry.agent_pods import AgentPods  # the client of Kubernetes is slow to import

    return RingTelemetry(name, AgentPods(name, api_of(name, spec.edited(client_rate=RATE), options.drivers)))


def _simulated(name: str, options: TelemetryOptions) -> Source:
    cluster = options.simulated(name)
    if cluster is None:
        raise Fault(f"cluster {name} is simulated by another process, which shows no telemetry", "NoMetrics")
    return SimulatedTelemetry(name, cluster)
