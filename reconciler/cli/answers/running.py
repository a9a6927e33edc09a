"""What runs, for the commands on a repository: the same rows as a server gives to an admin.

Without a way into a cluster the rows say so; nothing fails for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from egs.commands import output
from egs.commands.backend import Where
from reconciler.cli.answers.reachable_clusters import Reach, Ways
from reconciler.cli.lists import check_known
from reconciler.clusters.kubernetes.api.api_client import Api
from reconciler.clusters.kubernetes.api.connection import Keys
from reconciler.clusters.kubernetes.tenancy import member_tokens
from reconciler.clusters.open_cluster import DriverOptions
from reconciler.clusters.pod_sources import ClusterPods, Open, Way
from reconciler.clusters.pod_ways import Observe, of_api, ways
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.health.agent_devices import AgentDevices, no_devices
from reconciler.model.cluster_port import ClusterDriver
from reconciler.queries.event_search import Filter, events
from reconciler.queries.running.choose import chosen
from reconciler.queries.running.diagnoses import diagnosis
from reconciler.queries.running.sight import EVERYTHING, Devices, Sight, Sources, sight
from reconciler.queries.running.workload_details import gpu_table, request_rows
from reconciler.queries.state import State, clock, read_state
from reconciler.sources.believed_keys import believed
from reconciler.sources.command_errors import WrongUse
from reconciler.sources.open_source import opened
from reconciler.sources.source import Source
from reconciler.telemetry.agent_pods import AgentPods
from reconciler.telemetry.fleet_telemetry import FleetTelemetry
from reconciler.telemetry.open_telemetry import TelemetryOptions, open_telemetry
from reconciler.telemetry.ring_telemetry import RingTelemetry
from reconciler.telemetry.shared_answers import Source as TelemetrySource
from reconciler.workloads.alerts import alerts_of
from reconciler.workloads.alerts import row as alert_row
from schemas.documents.cluster import ClusterSpec

Row = dict[str, Any]
Filters = Mapping[str, Any]
EVENTS = 200
"""Latest events of a request in which a diagnosis looks."""


@dataclass(frozen=True, slots=True)
class Looked:
    """An open repository, its state, and what reaches its clusters."""

    source: Source
    state: State
    sources: Sources

    def sight(self, slice_: str | None, *, waiting_too: bool = False) -> Sight:
        """All that runs; who has the repository sees every slice."""
        world = (self.state.wanted, self.state.facts, self.state.now)
        return sight(self.sources, world, EVERYTHING, slice_, waiting_too=waiting_too)


@contextlib.contextmanager
def look(where: Where) -> Iterator[Looked]:
    """Open the repository; what was opened is closed at the end."""
    with opened(where.repo) as source, contextlib.ExitStack() as stack:
        state = read_state(source, clock(where.now, source))
        yield Looked(source, state, _sources(source, state, where, stack))


def running_rows(where: Where, kind: str, filters: Filters) -> list[Row]:
    """The rows of `egs get workloads`, `gpus` and `alerts`. Raises NotFound for a filter that fits nothing."""
    with look(where) as looked:
        slice_ = filters["slice"]
        check_known("slice", slice_, looked.state.wanted.slices)
        check_known("cluster", filters.get("cluster"), looked.state.wanted.clusters)
        with output.working("Looking at clusters"):
            seen = looked.sight(slice_)
            return _ROWS[kind](seen, filters)


def _workloads(seen: Sight, filters: Filters) -> list[Row]:
    return request_rows(seen, filters["slice"])


def _gpus(seen: Sight, filters: Filters) -> list[Row]:
    rows = gpu_table(seen, filters["grep"] or "", hot_only=filters["hot"])
    cluster, node = filters["cluster"], filters["node"]
    return [
        row
        for row in rows
        if cluster in (None, row["cluster"])
        and node in (None, row["node"], f"{row['cluster']}/{row['node']}")
    ]


def _alerts(seen: Sight, filters: Filters) -> list[Row]:
    found = alerts_of(seen.gpus, seen.now)
    return [alert_row(one) for one in found if filters["cluster"] in (None, one.gpu.cluster)]


_ROWS: Mapping[str, Callable[[Sight, Filters], list[Row]]] = {
    "workloads": _workloads,
    "gpus": _gpus,
    "alerts": _alerts,
}


def diagnosed(where: Where, workload: str, slice_: str | None) -> Row:
    """The data of `egs diagnose`. Raises NotFound."""
    with look(where) as looked:
        check_known("slice", slice_, looked.state.wanted.slices)
        with output.working("Looking at clusters"):
            seen = looked.sight(slice_, waiting_too=True)
            about = chosen(seen, workload)
            told = events(looked.source, Filter(gpr=about.request), EVENTS) if about.request else []
            return diagnosis(looked.sources.telemetry, seen, about, told)


# -- ways into clusters ------------------------------------------------------------------------------------------------


def _sources(source: Source, state: State, where: Where, stack: contextlib.ExitStack) -> Sources:
    specs = state.wanted.manifests
    reach = _Reached(Reach(source, _ways(where), stack), specs)
    own = _Own(where, _own_cluster(where, specs))
    pods = ClusterPods(_opened(where, reach, own))
    stack.callback(pods.close)
    drivers = DriverOptions(keys=Keys(_path(where.kubeconfigs)))
    options = TelemetryOptions(_path(where.metrics_files), drivers, reach.simulated)
    telemetry = FleetTelemetry(partial(_measured, own, options))
    stack.callback(telemetry.close)
    return Sources(telemetry, pods, _devices(source), telemetry.follow)


def _own_cluster(where: Where, specs: Mapping[str, ClusterSpec]) -> str:
    """The cluster of the person's own kubeconfig; empty: none is given. Raises WrongUse if it is not clear."""
    if where.kubeconfig is None:
        return ""
    direct = sorted(name for name, spec in specs.items() if is_direct(spec))
    if len(direct) != 1:
        text = (
            f"--kubeconfig reaches one cluster, and there are {len(direct)} to reach; give --kubeconfigs DIR"
        )
        raise WrongUse(text)
    return direct[0]


def is_direct(spec: ClusterSpec) -> bool:
    """Whether the cluster has an API server to ask."""
    return spec.driver == "kubernetes" and not (spec.access is not None and spec.access.pull)


@dataclass(frozen=True, slots=True)
class _Own:
    """The person's own kubeconfig, and the cluster that it reaches."""

    where: Where
    cluster: str

    def api(self, cluster: str) -> Api | None:
        """None: that cluster is reached by another way."""
        if not self.cluster or cluster != self.cluster:
            return None
        door = member_tokens.opened(self.where.kubeconfig, self.where.context)
        return member_tokens.connected(door, cluster)


def _measured(own: _Own, options: TelemetryOptions, cluster: str, spec: ClusterSpec) -> TelemetrySource:
    """Values from the source that the manifest names; of agents by the person's own kubeconfig, if there is one."""
    has_prometheus = spec.metrics is not None and spec.metrics.prometheus is not None
    api = None if has_prometheus else own.api(cluster)
    return (
        open_telemetry(cluster, spec, options)
        if api is None
        else RingTelemetry(cluster, AgentPods(cluster, api))
    )


class _Reached:
    """Clusters that are reached by a driver: reports, and copies of simulations. Opened once."""

    def __init__(self, reach: Reach, specs: Mapping[str, ClusterSpec]) -> None:
        self._reach, self._specs, self._lock = reach, specs, Lock()
        self._drivers: dict[str, ClusterDriver] = {}

    def driver(self, cluster: str) -> ClusterDriver:
        """Raises EgsError that says what to give."""
        with self._lock:
            if cluster not in self._drivers:
                self._drivers[cluster] = self._reach.open(cluster, self._specs[cluster])
            return self._drivers[cluster]

    def observer(self, cluster: str, spec: ClusterSpec) -> Observe | None:
        """None: the cluster has an API server to ask."""
        return None if is_direct(spec) else self.driver(cluster).observe

    def simulated(self, cluster: str) -> EmbeddedCluster | None:
        """A simulation, from the same copy."""
        driver = self.driver(cluster)
        return driver if isinstance(driver, EmbeddedCluster) else None


def _opened(where: Where, reach: _Reached, own: _Own) -> Open:
    """By the person's own kubeconfig, else by the folder of kubeconfigs, by reports, or by a copy of a simulation."""
    by_folder = ways(DriverOptions(keys=Keys(_path(where.kubeconfigs))), reach.observer)

    def opened(cluster: str, spec: ClusterSpec) -> Way:
        api = own.api(cluster)
        return by_folder(cluster, spec) if api is None else of_api(cluster, api)

    return opened


def _ways(where: Where) -> Ways:
    return Ways(_path(where.kubeconfigs), _path(where.kubeconfig), where.context, _path(where.state))


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text).expanduser()


def _devices(source: Source) -> Callable[..., Devices]:
    status = source.status()
    return no_devices if status is None else AgentDevices(status[0], believed())
