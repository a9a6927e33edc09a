"""The pods of every cluster, each by its own way: the API server, what an applier reported, or the simulation.

Answers serve all callers for `SHARED`. A slow cluster is silent after `DEADLINE_S`; its answer serves the next look.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooSlow
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock

from reconciler.clock import monotonic_s
from reconciler.model.cluster_port import ClusterView, WorkloadView
from reconciler.model.pod_port import OwnerRef, Pod, PodsSeen
from schemas.documents.cluster import ClusterSpec
from schemas.errors import EgsError

log = logging.getLogger(__name__)

SHARED = timedelta(seconds=15)
"""How long an answer serves other callers: the same as for values of GPUs."""
DEADLINE_S = 5.0
"""A slower cluster is silent: a page shows what there is instead of waiting."""
AT_ONCE = 8
"""Clusters that are asked at the same time."""

Read = Callable[[Collection[str], datetime], PodsSeen]
"""The pods of namespaces of one cluster; raises EgsError."""
Open = Callable[[str, ClusterSpec], Read]
"""A way into a cluster; raises EgsError if there is none."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """An answer on its way, or there."""

    at_s: float
    answer: Future[PodsSeen]


class ClusterPods:
    """Pods of clusters, from ways that `opened` gives. Safe for threads."""

    def __init__(self, opened: Open, monotonic: Callable[[], float] = monotonic_s) -> None:
        self._open, self._monotonic, self._lock = opened, monotonic, Lock()
        self._ways: dict[str, tuple[ClusterSpec, Read]] = {}
        self._asked: dict[tuple[str, frozenset[str]], _Asked] = {}
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="pods")

    def look(self, cluster: str, spec: ClusterSpec, namespaces: Collection[str], now: datetime) -> PodsSeen:
        """The pods of these namespaces, at most `SHARED` old; `silence` says why there are none."""
        if not namespaces:
            return PodsSeen()
        key = (cluster, frozenset(namespaces))
        with self._lock:
            at_s = self._monotonic()
            held = self._asked.get(key)
            if held is None or (held.answer.done() and at_s - held.at_s >= SHARED.total_seconds()):
                self._asked = {one: two for one, two in self._asked.items() if at_s - two.at_s < 3600}
                held = _Asked(at_s, self._threads.submit(self._read, cluster, spec, key[1], now))
                self._asked[key] = held
        try:
            return held.answer.result(DEADLINE_S)
        except TooSlow:
            return PodsSeen(
                silence=f"cluster {cluster} did not answer within {DEADLINE_S:g} s", knows_owners=False
            )

    def close(self) -> None:
        """Ends the threads; an answer on its way is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _read(self, cluster: str, spec: ClusterSpec, namespaces: frozenset[str], now: datetime) -> PodsSeen:
        try:
            return self._way(cluster, spec)(namespaces, now)
        except EgsError as error:
            log.debug("pods not read cluster=%s reason=%s", cluster, error.reason)
            return PodsSeen(silence=str(error), knows_owners=False)

    def _way(self, cluster: str, spec: ClusterSpec) -> Read:
        known = self._ways.get(cluster)
        if known is None or known[0] != spec:
            known = (spec, self._open(cluster, spec))
            self._ways[cluster] = known
        return known[1]


class NoPods:
    """Where nothing reaches clusters."""

    def look(self, cluster: str, *_: object) -> PodsSeen:
        """None, and why."""
        return PodsSeen(silence=f"nothing here reaches the pods of cluster {cluster}", knows_owners=False)


def of_view(cluster: str, observe: Callable[[datetime], ClusterView], *, are_jobs: bool) -> Read:
    """Pods from a view of a cluster: names, nodes and phases. In a simulation each is a Job of its own."""

    def read(namespaces: Collection[str], now: datetime) -> PodsSeen:
        found = (_pod(cluster, one) for one in observe(now).workloads if one.namespace in namespaces)
        pods = sorted(found, key=lambda pod: (pod.namespace, pod.name))
        owned = (replace(pod, owners=(OwnerRef("batch", "Job", pod.name, ""),)) for pod in pods)
        return PodsSeen(tuple(owned if are_jobs else pods), knows_owners=False)

    return read


def _pod(cluster: str, one: WorkloadView) -> Pod:
    return Pod(cluster, one.namespace, one.name, phase=one.phase, node=one.node, gpus=one.gpus)
