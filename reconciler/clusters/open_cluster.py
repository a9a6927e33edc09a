"""Opens the driver for a Cluster manifest, and the connection to the cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.model.cluster_port import ClusterDriver
from schemas.documents.cluster import Access, ClusterSpec
from schemas.errors import UserError

if TYPE_CHECKING:
    from reconciler.clusters.kubernetes.api.api_client import Api
    from reconciler.clusters.kubernetes.api.connection import Keys
    from reconciler.clusters.kubernetes.driver import Home


@dataclass(frozen=True, slots=True)
class DriverOptions:
    """What a controller provides for its drivers."""

    state: Path | None = None  # of simulated clusters; None: only in memory
    keys: Keys | None = None  # credentials for real ones; None: only our own cluster
    home: Home | None = None  # the project; None: the default project
    wake: Callable[[], None] = lambda: None  # called after every change in a cluster


def open_cluster(name: str, spec: ClusterSpec, options: DriverOptions) -> ClusterDriver:
    """A driver for the cluster.

    Raises `UserError` if its manifest names no valid connection, and `DriverMissing` for a cluster reached
    only from within: `reconciler.clusters.pulled_cluster` reads what its applier reports.
    """
    if spec.driver == "embedded":
        return EmbeddedCluster(name, spec, None if options.state is None else options.state / f"{name}.json")
    # Imported only if needed: it is slow.
    from reconciler.clusters.kubernetes.driver import Home, KubernetesCluster

    return KubernetesCluster(name, spec, api_of(name, spec, options), options.home or Home(), options.wake)


def api_of(name: str, spec: ClusterSpec, options: DriverOptions) -> Api:
    """Its API server. Raises `UserError` like `open_cluster`."""
    from reconciler.clusters.kubernetes.api import connection
    from reconciler.clusters.kubernetes.api.api_client import Rate

    access, keys = spec.access or Access(in_cluster=True), options.keys or connection.Keys()
    rate = Rate(spec.client_rate.qps, spec.client_rate.burst)
    if access.kubeconfig is not None:
        return connection.from_file(name, access.kubeconfig, keys, access.context, rate)
    if access.secret is not None:
        return connection.from_secret(name, access.secret, keys, access.context, rate)
    if access.pull:
        text = f"clusters/{name}.yaml: with access.pull only its own applier reaches the cluster"
        raise UserError(text, "DriverMissing")
    return connection.in_cluster(name, rate)
