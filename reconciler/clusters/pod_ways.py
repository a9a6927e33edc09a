"""How pods of a cluster are reached: by credentials, by what its applier reports, or in a simulation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from reconciler.clusters.open_cluster import DriverOptions, api_of, open_cluster
from reconciler.clusters.pod_sources import Open, Read, of_view
from reconciler.model.cluster_port import ClusterView
from schemas.documents.cluster import ClusterSpec

Observe = Callable[[datetime], ClusterView]


def ways(
    options: DriverOptions, observers: Callable[[str, ClusterSpec], Observe | None] = lambda *_: None
) -> Open:
    """Ways by these credentials; `observers` gives a view of clusters that are not reached directly, or None."""

    def opened(cluster: str, spec: ClusterSpec) -> Read:
        observe = observers(cluster, spec)
        if observe is None and spec.driver == "embedded":
            observe = open_cluster(cluster, spec, options).observe
        if observe is not None:
            return of_view(cluster, observe, are_jobs=spec.driver == "embedded")
        from reconciler.clusters.kubernetes.workloads.pod_reader import PodReader

        reader = PodReader(api_of(cluster, spec, options), cluster)
        return lambda namespaces, _now: reader.read(namespaces)

    return opened
