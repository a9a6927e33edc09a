"""The nodes of a pool with a selector: those that its cluster shows now, or showed when it last answered. Pure.

The result is committed, so that all readers plan with the same nodes, also while a cluster is unreachable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconciler.model.cluster_port import ClusterView
from reconciler.model.facts import Wanted
from reconciler.model.pools import manifest_pools
from scheduler.snapshot import PoolKey
from schemas.documents.cluster import ClusterSpec
from schemas.status.inventory import UnmanagedNode

Found = Mapping[PoolKey, tuple[str, ...]]
MOST_UNMANAGED = 1000
"""Unmanaged nodes recorded per cluster."""


def with_found(wanted: Wanted, found: Found) -> Wanted:
    """The documents with these nodes in their pools; the same object if nothing changed."""
    keys = {
        (name, pool.name) for name, spec in wanted.manifests.items() for pool in spec.pools if pool.discovered
    }
    kept = {key: nodes for key, nodes in sorted(found.items()) if key in keys and nodes}
    if kept == wanted.found:
        return wanted
    clusters = {name: _resolved(name, spec, kept) for name, spec in wanted.manifests.items()}
    return replace(wanted, clusters=clusters, pools=manifest_pools(clusters), found=kept)


def _resolved(cluster: str, spec: ClusterSpec, found: Found) -> ClusterSpec:
    if not any(pool.discovered for pool in spec.pools):
        return spec
    pools = tuple(
        pool.edited(nodes=found.get((cluster, pool.name), ())) if pool.discovered else pool
        for pool in spec.pools
    )
    return spec.edited(pools=pools)


def found_in(wanted: Wanted, views: Mapping[str, ClusterView]) -> dict[PoolKey, tuple[str, ...]]:
    """The nodes of every pool with a selector, by name; for a silent cluster the previous ones."""
    found = dict(wanted.found)
    for name, spec in wanted.manifests.items():
        view = views.get(name)
        if view is None or not any(pool.discovered for pool in spec.pools):
            continue
        named = {node for pool in spec.pools for node in pool.node_names()}
        members: dict[str, list[str]] = {}
        grows = {pool.name for pool in spec.pools if pool.elastic is not None}
        for node in view.nodes.values():
            known = node.pool not in grows or node.name in wanted.found.get((name, node.pool), ())
            # A node named by one pool is not selected by another; a new node counts once it can serve.
            if node.name not in named and (known or (node.ready and node.fits)):
                members.setdefault(node.pool, []).append(node.name)
        for pool in spec.pools:
            if pool.discovered:
                found[name, pool.name] = tuple(sorted(members.get(pool.name, ())))
    return found


def unmanaged_in(view: ClusterView) -> tuple[UnmanagedNode, ...]:
    """GPU nodes without a pool, as recorded."""
    known = sorted(view.unmanaged, key=lambda node: node.name)
    return tuple(
        UnmanagedNode(name=node.name, product=node.product, gpus=node.gpus) for node in known[:MOST_UNMANAGED]
    )
