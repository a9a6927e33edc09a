"""Keeps upgrades of the GPU driver between leases.

The GPU operator begins no upgrade on a node with the label `nvidia.com/gpu-driver-upgrade.skip=true`, and finishes
one that it began. A node is marked before the checks of a start, and unmarked after those of an end (see
`node_marks`). A mark that no lease needs is removed after a while: a start may have been cancelled, and a replaced
node has no checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.clusters.kubernetes.checks.check_records import Records, Run
from reconciler.clusters.kubernetes.checks.check_verdicts import Subject
from reconciler.clusters.kubernetes.names import DRIVER_SKIP
from reconciler.clusters.kubernetes.nodes.node_inventory import Node, upgrade_state
from reconciler.clusters.kubernetes.nodes.node_marks import Marks, marks_of
from reconciler.clusters.kubernetes.nodes.node_writer import NodeWriter
from reconciler.model.cluster_port import AT_REST, Busy, Difference, Refused, Stage, Stamp

PATIENCE = timedelta(minutes=2)
"""The checks after a lease begin within that time."""
AGAIN = timedelta(seconds=30)
"""Interval of looking at an upgrade; it takes minutes."""


def waits(subject: Subject, stage: Stage, now: datetime) -> Busy | None:
    """Checks before and after a lease wait until the driver is upgraded."""
    state = upgrade_state(subject.node)
    if stage == "run" or state in AT_REST:
        return None
    return Busy(now + AGAIN, f"the driver of node {subject.node.name} is being upgraded: {state}")


class DriverUpgrades:
    """The marks of one cluster's nodes. Thread-safe for different nodes."""

    def __init__(self, writer: NodeWriter, records: Records, longest: timedelta) -> None:
        self._writer, self._records, self._longest = writer, records, longest
        self._idle: dict[str, datetime] = {}  # marked nodes that no lease needs, since when

    def keep_away(self, subject: Subject, stage: Stage, stamp: Stamp) -> Refused | None:
        """Before the checks of a start; nothing changes while the node serves a lease."""
        uid = subject.lease.uid

        def prepared(_: Node, marks: Marks) -> Marks:
            return marks if marks.lease is not None else replace(marks, prepared=uid)

        return self._changed(subject.node, prepared, stamp) if stage == "pre" else None

    def let_in(self, node: Node, run: Run, stage: Stage, now: datetime, stamp: Stamp) -> Refused | None:
        """After its checks, unless the lease may still begin, or another one."""
        if stage == "run" or (stage == "pre" and run.passed):
            return None
        next_ = self._records.of(node.name).runs.get("pre")
        if next_ is not None and next_.uid != run.uid and self.is_awaited(node.name, now):
            return None
        return self._released(node, run.uid, stamp)

    def is_awaited(self, node: str, now: datetime) -> bool:
        """True if a lease is checking it, or has checked it and may still begin."""
        run = self._records.of(node).runs.get("pre")
        return (
            run is not None and run.counts(run.uid, now, self._longest) and (run.passed or run.ended is None)
        )

    def left_over(self, nodes: Iterable[Node], now: datetime) -> list[Difference]:
        """Marks that no lease needs."""
        what = f"label {DRIVER_SKIP}, which no lease needs"
        return [Difference("", f"Node {n.name}", "changed", what) for n in self._forgotten(nodes, now)]

    def sweep(self, nodes: Iterable[Node], stamp: Stamp, now: datetime) -> None:
        """Removes what `left_over` lists."""
        for node in self._forgotten(nodes, now):
            self._released(node, marks_of(node).prepared, stamp)

    def _forgotten(self, nodes: Iterable[Node], now: datetime) -> list[Node]:
        idle = [node for node in nodes if self._is_idle(node, now)]
        self._idle = {node.name: self._idle.get(node.name, now) for node in idle}
        return [node for node in idle if now - self._idle[node.name] >= PATIENCE]

    def _is_idle(self, node: Node, now: datetime) -> bool:
        marks = marks_of(node)
        if not marks.prepared or marks.lease is not None or self.is_awaited(node.name, now):
            return False
        after = self._records.of(node.name).runs.get("post")
        return after is None or after.ended is not None or not after.counts(after.uid, now, self._longest)

    def _released(self, node: Node, uid: str, stamp: Stamp) -> Refused | None:
        def over(_: Node, marks: Marks) -> Marks:
            return replace(marks, prepared="") if marks.prepared == uid else marks

        return self._changed(node, over, stamp)

    def _changed(self, node: Node, change: Callable[[Node, Marks], Marks], stamp: Stamp) -> Refused | None:
        if change(node, marks_of(node)) == marks_of(node):
            return None
        answer = self._writer.change(node.name, stamp, change)
        return answer if isinstance(answer, Refused) else None
