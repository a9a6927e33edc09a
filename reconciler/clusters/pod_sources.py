"""Pods and nodes of every cluster, each by its own way: the API server, an applier's report, or the simulation.

Answers serve all callers for `SHARED`. A slow cluster is silent after `DEADLINE_S`; its answer serves the next look.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooSlow
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import Generic, TypeVar

from reconciler.clock import monotonic_s
from reconciler.model.cluster_port import ClusterView, WorkloadView
from reconciler.model.pod_port import OwnerRef, Pod, PodsSeen
from schemas.documents.cluster import ClusterSpec
from schemas.documents.workload import OBJECT_KINDS
from schemas.errors import EgsError

log = logging.getLogger(__name__)

T = TypeVar("T")
Key = tuple[str, frozenset[str]]
"""Cluster and namespaces."""

SHARED = timedelta(seconds=15)
"""How long an answer serves other callers: the same as for values of GPUs."""
SEEN_NODES = timedelta(minutes=5)
"""The same for what nodes show of themselves: it hardly changes."""
FORGOTTEN_S = 3600.0
"""An answer that was not asked for again in this time is dropped."""
DEADLINE_S = 5.0
"""A slower cluster is silent: a page shows what there is instead of waiting."""
AT_ONCE = 8
"""Clusters that are asked at the same time."""

Read = Callable[[Collection[str], datetime], PodsSeen]
"""The pods of namespaces of one cluster; raises EgsError."""
Attributes = Mapping[str, Mapping[str, str]]
"""What nodes show of themselves besides their GPUs: network, machine, MIG, driver; by node."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way into a cluster. Both raise EgsError."""

    pods: Read
    nodes: Callable[[datetime], Attributes]


Open = Callable[[str, ClusterSpec], Way]
"""Opens the way into a cluster; raises EgsError if there is none."""


@dataclass(frozen=True, slots=True)
class _Asked(Generic[T]):
    """An answer on its way, or there."""

    at_s: float
    answer: Future[T]


class ClusterPods:
    """Pods and nodes of clusters, from ways that `opened` gives. Safe for threads."""

    def __init__(self, opened: Open, monotonic: Callable[[], float] = monotonic_s) -> None:
        self._open, self._monotonic, self._lock = opened, monotonic, Lock()
        self._ways: dict[str, tuple[ClusterSpec, Way]] = {}
        self._pods: dict[tuple[str, frozenset[str]], _Asked[PodsSeen]] = {}
        self._nodes: dict[tuple[str, frozenset[str]], _Asked[Attributes]] = {}
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="pods")

    def look(self, cluster: str, spec: ClusterSpec, namespaces: Collection[str], now: datetime) -> PodsSeen:
        """The pods of these namespaces, at most `SHARED` old; `silence` says why there are none."""
        if not namespaces:
            return PodsSeen()
        names = frozenset(namespaces)
        held = self._held(self._pods, (cluster, names), SHARED, lambda: self._read(cluster, spec, names, now))
        try:
            return held.result(DEADLINE_S)
        except TooSlow:
            text = f"cluster {cluster} did not answer within {DEADLINE_S:g} s"
            return PodsSeen(silence=text, knows_owners=False)

    def attributes(self, cluster: str, spec: ClusterSpec, now: datetime) -> Attributes:
        """What the cluster's nodes show of themselves, at most `SEEN_NODES` old; nothing if it does not answer."""
        key = (cluster, frozenset[str]())
        held = self._held(self._nodes, key, SEEN_NODES, lambda: self._looked(cluster, spec, now))
        try:
            return held.result(DEADLINE_S)
        except TooSlow:
            return {}

    def close(self) -> None:
        """Ends the threads; an answer on its way is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _held(
        self, known: dict[Key, _Asked[T]], key: Key, serves: timedelta, ask: Callable[[], T]
    ) -> Future[T]:
        """The answer that there is, or a new question; one under way is not asked again."""
        with self._lock:
            at_s = self._monotonic()
            held = known.get(key)
            if held is None or (held.answer.done() and at_s - held.at_s >= serves.total_seconds()):
                for old in [one for one, asked in known.items() if at_s - asked.at_s >= FORGOTTEN_S]:
                    del known[old]
                held = known[key] = _Asked(at_s, self._threads.submit(ask))
            return held.answer

    def _read(self, cluster: str, spec: ClusterSpec, namespaces: frozenset[str], now: datetime) -> PodsSeen:
        try:
            return self._way(cluster, spec).pods(namespaces, now)
        except EgsError as error:
            log.debug("pods not read cluster=%s reason=%s", cluster, error.reason)
            return PodsSeen(silence=str(error), knows_owners=False)

    def _looked(self, cluster: str, spec: ClusterSpec, now: datetime) -> Attributes:
        try:
            return self._way(cluster, spec).nodes(now)
        except EgsError as error:
            log.debug("nodes not read cluster=%s reason=%s", cluster, error.reason)
            return {}

    def _way(self, cluster: str, spec: ClusterSpec) -> Way:
        known = self._ways.get(cluster)
        if known is None or known[0] != spec:
            known = (spec, self._open(cluster, spec))
            self._ways[cluster] = known
        return known[1]


def of_view(cluster: str, observe: Callable[[datetime], ClusterView], *, are_jobs: bool) -> Way:
    """From views of a cluster: of pods names, nodes and phases.

    In a simulation a pod belongs to the object of a workload that it is named after; another one is a Job of its own.
    """

    def read(namespaces: Collection[str], now: datetime) -> PodsSeen:
        view = observe(now)
        found = (_pod(cluster, one) for one in view.workloads if one.namespace in namespaces)
        pods = sorted(found, key=lambda pod: (pod.namespace, pod.name))
        makers = _makers(view) if are_jobs else {}
        owned = (replace(pod, owners=(_owner(pod, makers),)) for pod in pods)
        return PodsSeen(tuple(owned if are_jobs else pods), knows_owners=False)

    def nodes(now: datetime) -> Attributes:
        return {name: node.attributes for name, node in observe(now).nodes.items()}

    return Way(read, nodes)


def _makers(view: ClusterView) -> dict[tuple[str, str], OwnerRef]:
    """Objects of workloads that may have pods, by namespace and name."""
    found = {}
    for placed in view.placed.values():
        for each in placed.objects:
            kind, _, name = each.id.partition("/")
            known = OBJECT_KINDS.get(kind)
            if known is not None and not known.first:
                found[placed.namespace, name] = OwnerRef(known.group, kind, name, "")
    return found


def _owner(pod: Pod, makers: Mapping[tuple[str, str], OwnerRef]) -> OwnerRef:
    name = pod.name.rpartition("-")[0]
    return makers.get((pod.namespace, name)) or OwnerRef("batch", "Job", pod.name, "")


def _pod(cluster: str, one: WorkloadView) -> Pod:
    return Pod(cluster, one.namespace, one.name, phase=one.phase, node=one.node, gpus=one.gpus)
