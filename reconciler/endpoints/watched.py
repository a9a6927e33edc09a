"""Which endpoints are observed now: those whose weights are on their way, in clusters that have a Prometheus. Pure."""

from __future__ import annotations

from reconciler.endpoints.rendered import service_name
from reconciler.endpoints.rollout import is_watched
from reconciler.model.facts import Facts, Wanted
from reconciler.model.observation import Asked
from schemas.documents.cluster import ClusterSpec
from schemas.documents.endpoint import EndpointSpec
from schemas.documents.metrics import Prometheus


def watched(wanted: Wanted, facts: Facts) -> tuple[Asked, ...]:
    """What is asked about each, by slice and name."""
    found = []
    for key, spec in sorted(wanted.endpoints.items()):
        status = facts.endpoints.get(key)
        if status is None or spec.rollout is None or not is_watched(spec, status.rollout):
            continue
        cluster, namespace = status.run.cluster or "", status.run.namespace
        source = source_of(wanted.clusters.get(cluster))
        if source is not None and namespace is not None:
            pods = pods_of(key, spec)
            window, since = spec.rollout.interval, status.rollout.at
            found.append(Asked(key, cluster, source, namespace, pods, window, since))
    return tuple(found)


def source_of(cluster: ClusterSpec | None) -> Prometheus | None:
    """The Prometheus of a cluster, if it names one."""
    metrics = None if cluster is None else cluster.metrics
    return None if metrics is None else metrics.prometheus


def pods_of(key: str, spec: EndpointSpec) -> tuple[tuple[str, str], ...]:
    """Each version, and the name of the Deployment that makes its pods."""
    name = key.partition("/")[2]
    return tuple((version.name, service_name(name, spec, version.name)) for version in spec.versions)
