"""How often each node failed lately: a node that did is given out last. Pure.

Only the instants at which faults began are kept, for a month, so that the history costs a line per node that failed. A
fault is a node that its agent reported bad, that failed a check, or that fell silent; a cordon is none.

Held by tests/reconciler/health/test_node_faults.py: one outage counts once, however long it lasts and whatever it
turns into.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from reconciler.model.facts import NodeKey
from schemas.documents.cluster import ClusterSpec
from schemas.status.gpr_status import NodeRecord, NodeState

KEPT = timedelta(days=30)
"""Lemons fail again within weeks; what is longer ago says little of a node that was mended or moved since."""
MOST = 20
"""Of one node: who failed so often is last anyway."""
FAULTY = frozenset({NodeState.UNHEALTHY, NodeState.SUSPECT, NodeState.QUARANTINED})

Faults = Mapping[NodeKey, tuple[datetime, ...]]


def with_faults(
    before: Faults,
    records: tuple[Mapping[NodeKey, NodeRecord], Mapping[NodeKey, NodeRecord]],
    clusters: Mapping[str, ClusterSpec],
    now: datetime,
) -> dict[NodeKey, tuple[datetime, ...]]:
    """The history after `records` (as they were, as they are); a node of no cluster in force is forgotten.

    What an admin's `cleared` says was mended no longer counts.
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
