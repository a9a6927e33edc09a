"""What failures of its nodes take from a running request. Pure.

Held by tests/reconciler/lifecycle/test_lost_time.py and tests/cases/reconciler/nodes.yaml: a failure counts from the
fault to the replacement, to the recovery or to the end, once for each node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from reconciler.model.facts import NodeKey
from schemas.status.gpr_status import FailedNode, GPRStatus, LostTime
from schemas.status.node_status import NodeRecord


def with_lost_time(
    status: GPRStatus, bad: Collection[str], records: Mapping[NodeKey, NodeRecord], now: datetime
) -> GPRStatus:
    """The status with failures that began or ended; `bad` are its nodes that fail now, replaced ones not among them."""
    before = status.lost or LostTime()
    if not bad and not before.failing:
        return status
    over = [node for node in before.failing if node.name not in bad]
    known = {node.name for node in before.failing}
    began = [
        FailedNode(name=name, since=_since(status, name, records, now)) for name in bad if name not in known
    ]
    failing = [*(node for node in before.failing if node.name in bad), *began]
    lost = before.edited(
        seconds=before.seconds + sum(int((now - node.since).total_seconds()) for node in over),
        failing=tuple(sorted(failing, key=lambda node: node.name)),
    )
    return status if lost == before else status.edited(lost=lost)


def with_replaced(status: GPRStatus, count: int) -> GPRStatus:
    """The status after so many of its nodes were replaced."""
    lost = status.lost or LostTime()
    return status.edited(lost=lost.edited(replaced=lost.replaced + count))


def _since(status: GPRStatus, node: str, records: Mapping[NodeKey, NodeRecord], now: datetime) -> datetime:
    """Since when it fails, but not from before the lease."""
    assert status.assignment is not None
    record = records.get((status.assignment.cluster, node))
    since = now if record is None else min(record.since, now)
    return since if status.start_time is None else max(since, status.start_time)
