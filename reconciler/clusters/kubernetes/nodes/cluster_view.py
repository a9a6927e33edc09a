"""Builds the reconciler's view of a cluster from its informers. Decides nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal

from reconciler.clusters.kubernetes.names import PROJECT
from reconciler.clusters.kubernetes.nodes import mig, node_inventory
from reconciler.clusters.kubernetes.nodes.node_inventory import Node, Pod
from reconciler.clusters.kubernetes.nodes.node_marks import cordoned_by_others, marks_of
from reconciler.clusters.kubernetes.nodes.pod_exits import kept_by
from reconciler.model.cluster_port import ClusterView, NodeView, WorkloadView
from reconciler.model.memo import Memo
from schemas.documents.cluster import ClusterSpec
from schemas.documents.pool import Pool

PodsOfNodes = Mapping[str, tuple[Pod, ...]]


@dataclass(frozen=True, slots=True)
class Known:
    """Everything in the informers at one time."""

    nodes: Mapping[str, Node]
    pods: Mapping[str, Pod]
    slices: Mapping[str, tuple[str, ...]]  # slice -> its namespaces
    project: str


def owners_of(slices: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {namespace: slice_ for slice_, spaces in slices.items() for namespace in spaces}


def by_node(pods: Mapping[str, Pod], owners: Mapping[str, str]) -> PodsOfNodes:
    """Pods with GPUs that must leave before a node is free, by node.

    A slice's pod is never exempt, whatever its owner or labels say.
    """
    found: dict[str, list[Pod]] = defaultdict(list)
    for _, pod in sorted(pods.items()):
        if pod.uses_gpus and pod.node is not None and (pod.namespace in owners or not pod.exempt):
            found[pod.node].append(pod)
    return {node: tuple(here) for node, here in found.items()}


class Looks:
    """Makes views; for a node unchanged since the last time, with unchanged pods, the same object."""

    def __init__(self, spec: ClusterSpec, named: Mapping[str, Pool]) -> None:
        self._spec, self._named = spec, named
        self._nodes: Memo[NodeView] = Memo()

    def look(self, known: Known, pods: PodsOfNodes, at: datetime) -> ClusterView:
        """The whole view; a node of ours that left its pool is included while it has a lease."""
        owners = owners_of(known.slices)
        views, rest = {}, []
        for name, node in sorted(known.nodes.items()):
            pool = node_inventory.pool_of(node, self._spec, self._named)
            here = pods.get(name, ())
            view = self._nodes.of(name, partial(self._node, node, here, owners), equal=(node, here, owners))
            if node.annotations.get(PROJECT, known.project) != known.project:
                continue
            if pool is not None or view.lease is not None:
                views[name] = view
            else:
                rest.append(node)
        self._nodes.keep(known.nodes)
        slices = dict(sorted(known.slices.items()))
        return ClusterView(at, views, slices, _workloads(known, owners), node_inventory.unmanaged(rest))

    def _node(self, node: Node, pods: tuple[Pod, ...], owners: Mapping[str, str]) -> NodeView:
        return _view(node, node_inventory.pool_of(node, self._spec, self._named), self._spec, pods, owners)


def _view(
    node: Node, pool: Pool | None, spec: ClusterSpec, pods: tuple[Pod, ...], owners: Mapping[str, str]
) -> NodeView:
    marks = marks_of(node)
    return NodeView(
        name=node.name,
        pool="" if pool is None else pool.name,
        ready=node.ready,
        cordoned=cordoned_by_others(node, marks),
        isolated=marks.isolated is not None,
        lease=marks.lease,
        stamp=marks.stamp,
        # Until every pod has been asked, an eviction is still to be sent.
        draining=marks.exit_by is not None and all(pod.ends is not None for pod in pods),
        gpus=node_inventory.gpus_view(node, pool, spec),
        attributes=node_inventory.attributes(node),
        foreign=foreign(pods, owners, marks.lease.slice if marks.lease is not None else None),
        unfit="" if pool is None else node_inventory.misfit(node, pool, spec),
        taint="" if pool is None else node_inventory.repelling_taint(node, spec),
        domains=node_inventory.domains(node, spec),
        staying=() if marks.exit_by is None else tuple(kept_by(pod) for pod in pods),
        upgrade=node_inventory.upgrade_state(node),
        keeps_driver=marks.keeps_driver,
    )


def foreign(pods: Iterable[Pod], owners: Mapping[str, str], slice_: str | None) -> tuple[str, ...]:
    """Pods that hold GPUs of a node but do not belong to the slice it serves."""
    return tuple(pod.key for pod in pods if slice_ is None or owners.get(pod.namespace) != slice_)


def empty_leased(pool: str, known: Known, spec: ClusterSpec, named: Mapping[str, Pool]) -> tuple[str, ...]:
    """Nodes of the pool with a lease and no pods except those that every node has."""
    used = {
        pod.node for pod in known.pods.values() if not pod.exempt and pod.phase not in node_inventory.FINISHED
    }
    held = [node for _, node in sorted(known.nodes.items()) if marks_of(node).lease is not None]
    of_pool = [
        node for node in held if (its := node_inventory.pool_of(node, spec, named)) and its.name == pool
    ]
    return tuple(node.name for node in of_pool if node.name not in used)


def managed(known: Known, spec: ClusterSpec, named: Mapping[str, Pool]) -> list[Node]:
    """Nodes of our pools that no other project has."""
    return [
        node
        for _, node in sorted(known.nodes.items())
        if node_inventory.pool_of(node, spec, named) is not None
        and marks_of(node).project in {"", known.project}
    ]


def to_sweep(known: Known, spec: ClusterSpec, named: Mapping[str, Pool]) -> list[Node]:
    """Nodes where checks may have left something: also nodes that left our pools, until they are restored."""
    return [*managed(known, spec, named), *filter(mig.is_returning, _left(known, spec, named))]


def left_over(known: Known, spec: ClusterSpec, named: Mapping[str, Pool]) -> list[Node]:
    """Nodes that left our pools, are empty, and have their MIG layout restored: our marks can be removed."""
    return [node for node in _left(known, spec, named) if not mig.is_returning(node)]


def _left(known: Known, spec: ClusterSpec, named: Mapping[str, Pool]) -> list[Node]:
    return [
        node
        for _, node in sorted(known.nodes.items())
        if node_inventory.pool_of(node, spec, named) is None
        and marks_of(node).project == known.project
        and marks_of(node).lease is None
    ]


def _workloads(known: Known, owners: Mapping[str, str]) -> tuple[WorkloadView, ...]:
    return tuple(
        WorkloadView(
            pod.name,
            pod.namespace,
            owners[pod.namespace],
            pod.gpus,
            _phase(pod),
            pod.node,
            pod.ends_at,
            pod.checkpointed_at,
        )
        for _, pod in sorted(known.pods.items())
        if pod.namespace in owners
    )


def _phase(pod: Pod) -> Literal["Pending", "Running", "Succeeded"]:
    if pod.phase in node_inventory.FINISHED:
        return "Succeeded"
    return "Pending" if pod.node is None or pod.phase == "Pending" else "Running"
