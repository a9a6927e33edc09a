"""How a serving process reaches pods and values of GPUs: with its own settings, and without deciding anything."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from reconciler.clusters.kubernetes.api.connection import Keys
from reconciler.clusters.open_cluster import DriverOptions
from reconciler.clusters.pod_sources import ClusterPods
from reconciler.clusters.pod_ways import ways
from reconciler.clusters.pulled_cluster import PATTERN, PullCluster, ReportBranches
from reconciler.health.agent_devices import AgentDevices
from reconciler.model.cluster_port import ClusterView
from reconciler.queries.running.sight import Sources
from reconciler.settings import Settings
from reconciler.store.store_port import Store
from reconciler.telemetry.fleet_telemetry import FleetTelemetry
from reconciler.telemetry.open_telemetry import Simulated, TelemetryOptions, open_telemetry
from reconciler.telemetry.served_history import PastLoads
from reconciler.telemetry.served_models import ModelLoads
from reconciler.trust.machines import machines_of
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault

Observe = Callable[[datetime], ClusterView]


def sources_of(
    settings: Settings, store: Store, metrics_files: Path | None, simulated: Simulated = lambda _: None
) -> Sources:
    """Pods by the process's kubeconfigs or by appliers' reports; devices by agents' reports.

    `metrics_files`: the folder of credentials for Prometheus. `simulated`: clusters that live in this process.
    """
    machines = machines_of(settings.trust)
    keys = Keys(settings.kubeconfigs, settings.namespace)
    branches = ReportBranches(store, machines)
    opened = ways(DriverOptions(keys=keys), partial(_observer, store, branches, simulated))
    options = TelemetryOptions(metrics_files, DriverOptions(keys=keys), simulated)
    telemetry = FleetTelemetry(partial(open_telemetry, options=options))
    pods = ClusterPods(opened)

    def close() -> None:
        pods.close()
        telemetry.close()
        loads.close()
        past.close()

    devices = AgentDevices(store, machines)
    loads, past = ModelLoads(metrics_files), PastLoads(metrics_files)
    return Sources(telemetry, pods, devices, telemetry.follow, close, loads, past)


def _observer(
    store: Store, branches: ReportBranches, simulated: Simulated, cluster: str, spec: ClusterSpec
) -> Observe | None:
    """A view of a cluster that this process does not reach by credentials."""
    if spec.driver == "embedded":
        return _simulated(cluster, simulated)
    if spec.access is None or not spec.access.pull:
        return None
    reported = PullCluster(cluster, spec, partial(branches.read, cluster, spec))

    def observe(now: datetime) -> ClusterView:
        store.fetch([PATTERN])
        return reported.observe(now)

    return observe


def _simulated(cluster: str, simulated: Simulated) -> Observe:
    """A simulation lives in its controller's process."""

    def observe(now: datetime) -> ClusterView:
        found = simulated(cluster)
        if found is not None:
            return found.observe(now)
        text = f"cluster {cluster} is simulated, and its pods are known only to its controller"
        raise Fault(text, "ClusterUnreachable")

    return observe
