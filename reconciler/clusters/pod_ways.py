"""How pods and nodes of a cluster are reached: by credentials, by what its applier reports, or in a simulation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from reconciler.clusters.open_cluster import DriverOptions, api_of, open_cluster
from reconciler.clusters.pod_sources import Attributes, Open, Way, of_view
from reconciler.model.cluster_port import ClusterView
from schemas.documents.cluster import ClusterSpec

if TYPE_CHECKING:
    from reconciler.clusters.kubernetes.api.api_client import Api

Observe = Callable[[datetime], ClusterView]


def ways(
    options: DriverOptions, observers: Callable[[str, ClusterSpec], Observe | None] = lambda *_: None
) -> Open:
    """Ways by these credentials; `observers` gives a view of clusters that are not reached directly, or None."""

    def opened(cluster: str, spec: ClusterSpec) -> Way:
        observe = observers(cluster, spec)
        if observe is None and spec.driver == "embedded":
            observe = open_cluster(cluster, spec, options).observe
        if observe is not None:
            return of_view(cluster, observe, are_jobs=spec.driver == "embedded")
        return of_api(cluster, api_of(cluster, spec, options))

    return opened


def of_api(cluster: str, api: Api) -> Way:
    """The way through an API server."""
    from reconciler.clusters.kubernetes.nodes.node_inventory import attributes, read_node
    from reconciler.clusters.kubernetes.workloads.pod_reader import PodReader

    reader = PodReader(api, cluster)

    def nodes(_now: datetime) -> Attributes:
        found = (read_node(item) for item in api.items("/api/v1/nodes"))
        return {node.name: attributes(node) for node in found if node.has_gpus}

    return Way(lambda namespaces, _now: reader.read(namespaces), nodes)
