"""How often each node failed recently: a node that did is handed out last. Pure.

Only the times at which faults began are kept, for a month, so that the history costs a line per failed node.
A fault is a node that its agent reported bad, that failed a check, or that became silent; a cordon is not a
fault.

Held by tests/reconciler/health/test_node_faults.py: one outage counts once, however long it lasts and
whatever it turns into.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from reconciler.model.facts import NodeKey
from schemas.documents.cluster import ClusterSpec
from schemas.status.node_status import NodeRecord, NodeState

KEPT = timedelta(days=30)
"""Bad nodes fail again within weeks; older faults say little about a node repaired or moved since."""
MOST = 20
"""Per node: one that failed so often is last anyway."""
FAULTY = frozenset({NodeState.UNHEALTHY, NodeState.SUSPECT, NodeState.QUARANTINED})

Faults = Mapping[NodeKey, tuple[datetime, ...]]


def with_faults(
    before: Faults,
    records: tuple[Mapping[NodeKey, NodeRecord], Mapping[NodeKey, NodeRecord]],
    clusters: Mapping[str, ClusterSpec],
    now: datetime,
) -> dict[NodeKey, tuple[datetime, ...]]:
    """The history after `records` (before, after); nodes without a cluster in force are forgotten.

    Faults before an admin's `cleared` no longer count.
    """
    old, new = records
    cleared = {
        (name, item.node): item.at
        for name, spec in clusters.items()
        for item in sorted(spec.cleared, key=lambda item: item.at)
    }
    found = {}
    for key in sorted({*before, *(key for key, record in new.items() if _is_fault(record))}):
        is_new = _is_fault(new.get(key)) and not _is_fault(old.get(key))
        times = (*before.get(key, ()), *([now] if is_new else []))
        mended = cleared.get(key)
        times = tuple(at for at in times if now - at < KEPT and (mended is None or at > mended))
        if times and key[0] in clusters:
            found[key] = times[-MOST:]
    return found


def _is_fault(record: NodeRecord | None) -> bool:
    return record is not None and (record.state in FAULTY or record.reason == "NodeNotReady")
