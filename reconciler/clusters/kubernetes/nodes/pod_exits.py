"""Makes GPU pods leave a node: asked first and in time, then as the cluster's policy says.

A pod is asked with an eviction, which respects disruption budgets and applies to exactly that pod (by uid).
Its grace period ends at the strict end: a job that writes a checkpoint on SIGTERM has the whole notice for
it. Pods without GPUs are never touched. A pod without a controller does not come back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected, refused
from reconciler.clusters.kubernetes.nodes.node_inventory import Pod
from reconciler.model.cluster_port import Refused

GONE = frozenset({404, 409})
"""Answers to an eviction of a pod that ended, or was replaced by another of its name."""
BUDGET = frozenset({429, 500})
"""Answers if a disruption budget blocks it, or two budgets claim the pod."""
RETRY = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class EvictionRound:
    """The result of one round; `blocked` lists pods that a budget blocks, and why."""

    blocked: tuple[str, ...] = ()
    refused: Refused | None = None  # the first pod refused for another reason


def ask(api: Api, pods: Iterable[Pod], by: datetime, now: datetime, version: str) -> EvictionRound:
    """Evicts every pod that is not leaving yet, with all the time until `by`. `version`: policy/v1 or
    policy/v1beta1.
    """
    blocked, denied = [], None
    for pod in pods:
        if pod.ends is not None:
            continue
        try:
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction"
            api.create(path, _eviction(pod, by, now, version), patient=False)
        except Rejected as no:
            if no.status in GONE:
                continue
            if no.status in BUDGET:
                blocked.append(f"{pod.key}: {no.body.get('message') or no}")
            else:
                denied = denied or refused(no)
    return EvictionRound(tuple(blocked), denied)


def force(api: Api, pods: Iterable[Pod], grace_s: int = 0) -> Refused | None:
    """At the strict end: deletes remaining pods. Budgets and finalizers were respected before.

    With a second of grace the kubelet ends the pod, and removes it from the API once all its containers
    ended. Without grace it leaves the API at once, while its kubelet may still grant its processes the full
    grace.
    """
    denied = None
    for pod in pods:
        try:
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
            api.delete(path, uid=pod.uid, grace_s=grace_s)
        except Rejected as no:
            if no.status != 409:
                denied = denied or refused(no)
    return denied


def kept_by(pod: Pod) -> str:
    """The pod, and what blocks it, as text."""
    if pod.finalizers:
        return f"{pod.key} (blocked by its finalizer {', '.join(pod.finalizers)})"
    if pod.ends is None:
        return f"{pod.key} (not told to stop yet)"
    return f"{pod.key} (its kubelet has not ended it)"


def _eviction(pod: Pod, by: datetime, now: datetime, version: str) -> Json:
    # A grace of 0 would remove the pod from the API at once and leave its processes to the kubelet.
    grace_s = max(1, int((by - now).total_seconds()))
    return {
        "apiVersion": version,
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": {"gracePeriodSeconds": grace_s, "preconditions": {"uid": pod.uid}},
    }
