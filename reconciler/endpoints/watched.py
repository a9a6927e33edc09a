"""Which endpoints are observed now: those whose weights are on their way, in clusters that have a Prometheus. Pure.

And the pods that advice asks about. All names are those of documents in force: a caller chooses none.
"""

from __future__ import annotations

from reconciler.documents.workload_terms import namespace_of
from reconciler.endpoints.rendered import service_name
from reconciler.endpoints.rollout import is_watched
from reconciler.model.facts import Facts, Wanted
from reconciler.model.observation import Asked, Past
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


def asked_past(key: str, wanted: Wanted) -> tuple[Past, ...]:
    """What is asked about its last weeks, for each Prometheus of its slice's clusters, by cluster.

    Its versions that are gone count too: Deployments whose names begin as its own do, and are not another endpoint's.
    """
    spec, slice_ = wanted.endpoints[key], wanted.slices.get(key.partition("/")[0])
    namespace = namespace_of(spec, wanted)
    if slice_ is None or namespace is None:
        return ()
    name, own = key.partition("/")[2], {pods for _, pods in pods_of(key, spec)}
    theirs = {
        pods
        for other, its in wanted.endpoints.items()
        if its.slice == spec.slice and other != key
        for _, pods in pods_of(other, its)
        if pods.startswith(f"{name}-")
    }
    found: dict[tuple[str, str], Past] = {}
    for cluster in sorted(slice_.clusters):
        source = source_of(wanted.clusters.get(cluster))
        if source is not None:
            # One Prometheus of two clusters that are not told apart has each series once.
            same = (source.url, repr(sorted(source.matchers.items())))
            found.setdefault(same, Past(cluster, source, namespace, name, tuple(sorted(theirs - own))))
    return tuple(found.values())


def source_of(cluster: ClusterSpec | None) -> Prometheus | None:
    """The Prometheus of a cluster, if it names one."""
    metrics = None if cluster is None else cluster.metrics
    return None if metrics is None else metrics.prometheus


def pods_of(key: str, spec: EndpointSpec) -> tuple[tuple[str, str], ...]:
    """Each version, and the name of the Deployment that makes its pods."""
    name = key.partition("/")[2]
    return tuple((version.name, service_name(name, spec, version.name)) for version in spec.versions)
