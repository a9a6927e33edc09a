"""The status branch's files about each cluster: its pools and nodes. Pure."""

from __future__ import annotations

from reconciler.model.facts import Facts, Wanted
from reconciler.model.statuses import live
from schemas.documents.base import Metadata
from schemas.status.gpr_status import HOLDING
from schemas.status.inventory import Inventory, InventoryNode, InventoryPool, NodeFaults
from schemas.status.node_status import NodeState

MAX_ROWS = 5000
"""Rows of one list in one file; about 150 bytes each, so a file stays under 1 MB."""


def inventory(cluster: str, facts: Facts, wanted: Wanted) -> Inventory:
    """`clusters/<cluster>/inventory.yaml`; its facts are read back by `reconciler.status.render.facts_of`."""
    leases = {
        node: key
        for key, status in live(facts.requests).items()
        if status.assignment is not None and status.assignment.cluster == cluster and status.phase in HOLDING
        for node in status.assignment.nodes
    }
    spec, reach = wanted.clusters[cluster], facts.clusters.get(cluster)
    pools, nodes = [], []
    for pool in spec.pools:
        names = pool.node_names()
        states = {n: _state(facts, cluster, n) for n in names}
        pools.append(
            InventoryPool(
                name=pool.name,
                gpu_shape=pool.gpu_shape,
                gpus_per_node=pool.gpus_per_node,
                memory_per_gpu=pool.memory_per_gpu,
                nodes=len(names),
                ready=sum(state is NodeState.READY for state in states.values()),
                leased=sum(n in leases for n in names),
                scale=facts.scales.get((cluster, pool.name)),
            )
        )
        nodes += [
            InventoryNode(name=n, pool=pool.name, state=states[n], lease=leases.get(n))
            for n in names
            if n in leases or states[n] is not NodeState.READY
        ]
    return Inventory(
        metadata=Metadata(name=cluster),
        mode=spec.mode,
        reachable=reach is None or reach.reachable,
        since=facts.at if reach is None else reach.since,
        pools=tuple(pools),
        nodes=tuple(nodes[:MAX_ROWS]),
        unmanaged=facts.unmanaged.get(cluster, ()),
        faults=_faults(facts, cluster),
        queues=facts.queues.get(cluster, ()),
        services=facts.services.get(cluster, ()),
    )


def _faults(facts: Facts, cluster: str) -> tuple[NodeFaults, ...]:
    """Nodes that failed recently, by name; beyond the limit, those that failed most."""
    rows = [
        NodeFaults(name=name, at=at) for (where, name), at in sorted(facts.faults.items()) if where == cluster
    ]
    most = {row.name for row in sorted(rows, key=lambda row: -len(row.at))[: MAX_ROWS // 5]}
    return tuple(row for row in rows if row.name in most)


def _state(facts: Facts, cluster: str, node: str) -> NodeState:
    record = facts.nodes.get((cluster, node))
    return NodeState.READY if record is None else record.state
