"""Changes of a cluster's document that admins make every day: nodes that are repaired, and times without nodes. Pure.

Held by tests/egs/test_sdk_admin.py and tests/portal/pages/test_admin_forms.py: every other line stays as it is.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from portal.http.errors import bad_parameters, conflict, not_found
from portal.http.names import listed
from portal.views.view import View
from portal.writes.write_request import Changes, Tree
from portal.writes.yaml_files import fields_of, standing
from reconciler.changes.yaml_list import with_item, without_item
from scheduler.calendars.elastic import existing
from schemas.documents.cluster import Cluster
from schemas.documents.maintenance import Maintenance
from schemas.reading.units import format_instant

CLEARED, WINDOWS = ("spec", "cleared"), ("spec", "maintenance")


def cluster_path(name: str) -> str:
    return f"clusters/{name}.yaml"


def check_cluster(view: View, cluster: str) -> None:
    """ApiError 404 for a cluster that no document has."""
    if cluster not in view.wanted.clusters:
        raise not_found("cluster", cluster)


def check_node(view: View, cluster: str, node: str) -> None:
    """The same for a node."""
    check_cluster(view, cluster)
    if node not in _nodes(view, cluster) and (cluster, node) not in view.facts.nodes:
        raise not_found("node", f"{cluster}/{node}")


def _nodes(view: View, cluster: str) -> set[str]:
    return {name for key, pool in view.wanted.pools.items() if key[0] == cluster for name in existing(pool)}


def cleared(tree: Tree, cluster: str, node: str, at: datetime) -> Changes:
    """The node counts as repaired from then on; what it did before no longer counts."""
    data, document = _file(tree, cluster)
    for place, entry in enumerate(document.spec.cleared):
        if entry.node == node:
            data = without_item(data, CLEARED, place)
            break
    return {cluster_path(cluster): with_item(data, CLEARED, {"node": node, "at": format_instant(at)})}


def check_window(view: View, cluster: str, window: Maintenance, now: datetime) -> None:
    """ApiError 422 for pools and nodes that the cluster has not, and for a window that is over."""
    check_cluster(view, cluster)
    if window.end <= window.begin:
        raise bad_parameters("end: it must be after begin")
    if window.end <= now and window.every is None:
        raise bad_parameters(f"end: {format_instant(window.end)} is over; choose a later time")
    pools = {key[1] for key in view.wanted.pools if key[0] == cluster}
    nodes = _nodes(view, cluster)
    for field, given, known in (("pools", window.pools, pools), ("nodes", window.nodes, nodes)):
        unknown = sorted(set(given) - known)
        if unknown:
            raise bad_parameters(
                f"{field}: cluster {cluster} has no {', '.join(unknown)}; choose from {listed(sorted(known))}"
            )


def with_window(tree: Tree, cluster: str, window: Maintenance) -> Changes:
    """The window comes last. ApiError 409 if the document has the same one."""
    data, document = _file(tree, cluster)
    if window in document.spec.maintenance:
        raise conflict(f"cluster {cluster} has this window already")
    return {cluster_path(cluster): with_item(data, WINDOWS, fields_of(window))}


def without_window(tree: Tree, cluster: str, window: Maintenance) -> Changes:
    """ApiError 409 if the document has no such window any more."""
    data, document = _file(tree, cluster)
    if window not in document.spec.maintenance:
        raise conflict(f"cluster {cluster} has no such window any more; look at it again")
    return {cluster_path(cluster): without_item(data, WINDOWS, document.spec.maintenance.index(window))}


def _file(tree: Tree, cluster: str) -> tuple[bytes, Cluster]:
    found: Any = standing(tree, cluster_path(cluster), Cluster)
    if found is None:
        raise not_found("cluster", cluster)
    data, document = found
    return data, document
