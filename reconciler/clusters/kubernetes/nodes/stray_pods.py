"""Slices' pods that hold GPUs on the wrong nodes. Reported and evicted only if this lasts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from reconciler.clusters.kubernetes.names import SLICE
from reconciler.clusters.kubernetes.nodes.cluster_view import Known, by_node, owners_of
from reconciler.clusters.kubernetes.nodes.node_inventory import Pod, pool_of
from reconciler.clusters.kubernetes.nodes.node_marks import marks_of
from schemas.documents.cluster import ClusterSpec
from schemas.documents.pool import Pool

LASTING = timedelta(minutes=1)
"""Long enough to restore the marks of a node that someone removed."""


def strays(known: Known, spec: ClusterSpec, named: Mapping[str, Pool]) -> tuple[Pod, ...]:
    """Slices' pods with GPUs of a managed node that does not serve their slice, which are not leaving yet.

    A scheduler may bind a pod to a node chosen before it saw our taint. On a free node only pods with our
    toleration were admitted by us; others are older than their namespace's slice, and keep the node occupied
    until they end. Pods outside slices are not judged here.
    """
    owners = owners_of(known.slices)
    found = []
    for name, pods in sorted(by_node(known.pods, owners).items()):
        node = known.nodes.get(name)
        if node is None or pool_of(node, spec, named) is None:
            continue
        lease = marks_of(node).lease
        for pod in pods:
            slice_ = owners.get(pod.namespace)
            came_by_us = lease is not None or any(t.get("key") == SLICE for t in pod.tolerations)
            if (
                slice_ is not None
                and (lease is None or lease.slice != slice_)
                and came_by_us
                and pod.ends is None
            ):
                found.append(pod)
    return tuple(found)


class Strays:
    """Since when each stray of one cluster has been seen. One owner."""

    def __init__(self, spec: ClusterSpec, named: Mapping[str, Pool]) -> None:
        self._spec, self._named = spec, named
        self._since: dict[str, datetime] = {}

    def lasting(self, known: Known, now: datetime) -> list[Pod]:
        """Those that did not end by themselves."""
        found = strays(known, self._spec, self._named)
        self._since = {pod.uid: self._since.get(pod.uid, now) for pod in found}
        return [pod for pod in found if now - self._since[pod.uid] >= LASTING]
