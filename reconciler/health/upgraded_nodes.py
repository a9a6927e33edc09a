"""What an upgrade of the GPU driver means for a node. Pure.

While the driver is replaced, nothing that the node's agent finds is a fault, and for a short time afterwards: the agent
needs a few readings. What was found before goes on. A failed upgrade is for people.

An upgrade that waits begins only between leases (see `reconciler.model.cluster_port.NodeView.keeps_driver`). So that it
can, some nodes without a lease wait for it and get no request: no more of a pool than may be isolated.

Held by tests/reconciler/health/test_upgraded_nodes.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from reconciler.model.cluster_port import UPGRADE_FAILED, NodeView
from reconciler.model.facts import NodeKey, Seen
from schemas.documents.pool import Pool
from schemas.status.node_status import NodeRecord, NodeState

UPGRADE, WAITS, FAILED = "DriverUpgrade", "DriverUpgradeWaits", "DriverUpgradeFailed"
SETTLE = timedelta(minutes=10)
"""The agent sees a new driver within that time: it allows as much for one that is away."""

Verdict = tuple[NodeState, str, str]
"""State, reason and message of one node."""


def spared_nodes(seen: Seen, before: Mapping[NodeKey, NodeRecord], now: datetime) -> frozenset[NodeKey]:
    """Nodes whose agents' findings do not count now."""
    return frozenset(
        (cluster, name)
        for cluster, view in seen.views.items()
        for name, node in view.nodes.items()
        if node.upgrade_runs
        or node.upgrade == UPGRADE_FAILED
        or _settles((cluster, name), seen, before.get((cluster, name)), now)
    )


def _settles(key: NodeKey, seen: Seen, old: NodeRecord | None, now: datetime) -> bool:
    """True while the agent still reports what it found during the upgrade."""
    report = seen.reports.get(key)
    if old is None or old.reason not in {UPGRADE, FAILED} or report is None or report.healthy:
        return False
    return old.until is None or now < old.until


def verdict_on(node: NodeView) -> Verdict:
    """On a node whose agent's findings do not count."""
    if node.upgrade == UPGRADE_FAILED:
        text = (
            "the upgrade of its GPU driver failed; repair it (the GPU operator's driver pod there says why), then set "
            "its label nvidia.com/gpu-driver-upgrade-state to upgrade-required"
        )
        return NodeState.QUARANTINED, FAILED, text
    if node.upgrade_runs:
        text = "its GPU driver is being upgraded; it is free again when the GPU operator is done"
    else:
        text = "its GPU driver was upgraded, and its agent does not report it healthy yet"
    return NodeState.CORDONED, UPGRADE, text


def counts_again(old: NodeRecord | None, node: NodeView | None, now: datetime) -> datetime | None:
    """When findings count again although the agent reports no others; None: not before the upgrade is over."""
    if node is None or node.upgrade_runs:
        return None
    return (old.until if old is not None else None) or now + SETTLE


def waiting(node: NodeView) -> Verdict | None:
    """On a node whose upgrade waits for its turn."""
    if not node.upgrade:
        return None
    if node.keeps_driver:
        return NodeState.READY, WAITS, "an upgrade of its GPU driver waits until its request is over"
    text = "an upgrade of its GPU driver is due; it gets no new request before, so that the upgrade can begin"
    return NodeState.CORDONED, WAITS, text


def in_turn(
    records: Iterable[NodeRecord], pool: Pool, before: Mapping[NodeKey, NodeRecord]
) -> list[NodeRecord]:
    """The records, without those of nodes that wait for an upgrade beyond the pool's limit: they serve meanwhile."""
    found = list(records)

    def waited(record: NodeRecord) -> bool:
        old = before.get((record.cluster, record.metadata.name))
        return old is not None and _waits(old)

    due = sorted(filter(_waits, found), key=lambda r: (not waited(r), r.since, r.metadata.name))
    later = {record.metadata.name for record in due[pool.isolation_limit :]}
    return [record for record in found if record.metadata.name not in later]


def _waits(record: NodeRecord) -> bool:
    return (record.state, record.reason) == (NodeState.CORDONED, WAITS)
