"""Releases nodes: their GPU pods are asked to leave, then told, then deleted, and then the node is free.

At the strict end a remaining pod is deleted with one second of grace: its kubelet ends it, and removes it
from the API once all its containers ended. A pod still there after that is deleted without grace. Its kubelet
may still be working then, so the time is written on the node first, and the node is not free before
`exit.settle` has passed since. The same holds for a pod that others removed from the API while it ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.clock import monotonic_s
from reconciler.clusters.kubernetes.api.api_client import Api, Json
from reconciler.clusters.kubernetes.nodes import pod_ends, pod_exits
from reconciler.clusters.kubernetes.nodes.node_inventory import Pod, gpus_of
from reconciler.clusters.kubernetes.nodes.node_marks import Marks, freed, late, leaving, unproven
from reconciler.clusters.kubernetes.nodes.node_writer import NodeWriter
from reconciler.clusters.kubernetes.nodes.pod_exits import kept_by
from reconciler.model.cluster_port import Answer, Busy, Done, Refused, Stamp
from schemas.documents.cluster import ClusterSpec

NAMED = 3
"""Pods listed per node."""
LAST = timedelta(seconds=2)
"""A healthy kubelet has ended a pod with one second of grace by then."""
AGAIN, LONGEST = timedelta(seconds=1), timedelta(minutes=1)
LEAVING = timedelta(seconds=5)
"""Interval of looking at a node whose pods are being deleted."""


@dataclass(frozen=True, slots=True)
class Sight:
    """Current knowledge of the cluster."""

    marks: Callable[[str], Marks]  # of a node
    pods: Callable[[str], tuple[Pod, ...]]  # of a node: those that must leave before it is free
    eviction: Callable[[], str]  # the apiVersion of an Eviction


class Departures:
    """The nodes of one cluster that are being released. Thread-safe for different nodes."""

    def __init__(self, api: Api, spec: ClusterSpec, writer: NodeWriter, sight: Sight) -> None:
        self._api, self._spec, self._writer, self._sight = api, spec, writer, sight
        # By node and uid: when each pod got its last second. Lost with the process, and then given again.
        self._told: dict[str, dict[str, datetime]] = {}
        self._cut: dict[str, float] = {}  # by node: when one of its pods last disappeared while running

    def gone(self, pod: Json) -> None:
        """A pod was removed from the API; if it was running, its kubelet has not ended it yet."""
        node, statuses = pod["spec"].get("nodeName"), (pod.get("status") or {}).get("containerStatuses") or ()
        if (
            node
            and gpus_of(pod["spec"])
            and any("running" in (found.get("state") or {}) for found in statuses)
        ):
            self._cut[node] = monotonic_s()

    def evict(self, node: str, uid: str, by: datetime, stamp: Stamp, now: datetime) -> Answer:
        """Cordons it and asks its GPU pods to stop by `by`. Busy while a disruption budget blocks one."""
        answer = self._writer.change(node, stamp, lambda _, marks: leaving(marks, uid, by, now))
        marks = self._sight.marks(node)
        if not isinstance(answer, Done) or marks.lease is None or marks.lease.uid != uid:
            return answer
        pods, by = self._sight.pods(node), max(by, now)
        pod_ends.correct(self._api, self._still(node, pods, stamp), by)
        asked = self.ask(node, pods, by, stamp, now)
        if asked.refused is not None:
            return asked.refused
        if asked.blocked:
            return Busy(now + pod_exits.RETRY, f"a disruption budget blocks {'; '.join(asked.blocked)}")
        return Done()

    def remove(self, node: str, uid: str, stamp: Stamp, now: datetime) -> Answer:
        """Free once no GPU pod is left, and no deleted one can still run."""
        notice = now + self._spec.notice if self._sight.pods(node) else now
        answer = self._writer.change(node, stamp, lambda _, marks: leaving(marks, uid, notice, now))
        if isinstance(answer, Refused):
            return Done() if answer.reason == "NodeGone" else answer
        marks = self._sight.marks(node)
        if marks.lease is None or marks.lease.uid != uid or marks.exit_by is None:
            return Done()
        pods = self._sight.pods(node)
        if pods:
            return self._wait_for(node, pods, marks, stamp, now)
        self._told.pop(node, None)
        if (refusal := self._remember(node, uid, stamp, now)) is not None:
            return refusal
        marks = self._sight.marks(node)
        if marks.forced is not None and now < (settled := marks.forced + self._spec.exit.settle):
            return Busy(settled, f"node {node} is draining: deleted pods may still run there until then")
        return self._writer.change(node, stamp, lambda _, marks: freed(marks, uid))

    def _remember(self, node: str, uid: str, stamp: Stamp, now: datetime) -> Refused | None:
        """Pods just deleted by others without grace count like those that we delete."""
        cut_s = self._cut.pop(node, None)
        if cut_s is None or monotonic_s() - cut_s >= self._spec.exit.settle.total_seconds():
            return None
        if self._sight.marks(node).forced is not None:
            return None
        marked = self._writer.change(node, stamp, lambda _, marks: unproven(marks, uid, now))
        return marked if isinstance(marked, Refused) else None

    def ask(
        self, node: str, pods: tuple[Pod, ...], by: datetime, stamp: Stamp, now: datetime
    ) -> pod_exits.EvictionRound:
        return pod_exits.ask(self._api, self._still(node, pods, stamp), by, now, self._sight.eviction())

    def _still(self, node: str, pods: Iterable[Pod], stamp: Stamp) -> Iterator[Pod]:
        """Only while no newer controller has written the node: evictions have no stamp, so an outdated
        controller evicts one pod at most.
        """
        for pod in pods:
            if late(f"node {node}", self._sight.marks(node).stamp, stamp) is not None:
                return
            yield pod

    def _wait_for(
        self, node: str, pods: tuple[Pod, ...], marks: Marks, stamp: Stamp, now: datetime
    ) -> Busy | Refused:
        assert marks.exit_by is not None
        by = marks.exit_by
        if now >= by and self._spec.exit.force:
            return self._forced(node, pods, marks, stamp, now)
        pod_ends.correct(self._api, self._still(node, pods, stamp), by)
        asked = self.ask(node, pods, max(by, now), stamp, now)
        if asked.refused is not None:
            return asked.refused
        if now < by:
            blocked = f"; a disruption budget blocks {'; '.join(asked.blocked)}" if asked.blocked else ""
            return Busy(by, f"node {node} is draining: {len(pods)} GPU pods have time until then{blocked}")
        return Busy(
            now + LEAVING,
            f"node {node} is draining: these pods should have stopped but did not: {_named(pods)}",
        )

    def _forced(
        self, node: str, pods: tuple[Pod, ...], marks: Marks, stamp: Stamp, now: datetime
    ) -> Busy | Refused:
        assert marks.exit_by is not None
        assert marks.lease is not None
        before, uid = self._told.get(node, {}), marks.lease.uid
        told = self._told[node] = {pod.uid: before.get(pod.uid, now) for pod in pods}
        fresh = [pod for pod in pods if pod.uid not in before and not pod.stopped]
        refusal = pod_exits.force(self._api, self._still(node, fresh, stamp), grace_s=1)
        due = [pod for pod in pods if pod.stopped or now - told[pod.uid] >= LAST]
        if marks.forced is None and not all(pod.stopped for pod in due):
            marked = self._writer.change(node, stamp, lambda _, marks: unproven(marks, uid, now))
            if isinstance(marked, Refused):
                return marked
        refusal = pod_exits.force(self._api, self._still(node, due, stamp)) or refusal
        if refusal is not None:
            return refusal
        pause = min(max((now - marks.exit_by) / 4, AGAIN), LONGEST)  # a finalizer can hold a pod for days
        first = min((told[pod.uid] + LAST for pod in fresh), default=now + pause)
        then = min(first, now + pause)
        return Busy(
            then, f"node {node} is draining: deleted at the strict end, but still there: {_named(pods)}"
        )


def _named(pods: tuple[Pod, ...]) -> str:
    more = f" and {len(pods) - NAMED} more" if len(pods) > NAMED else ""
    return ", ".join(kept_by(pod) for pod in pods[:NAMED]) + more
