"""Have GPU pods leave a node: asked first and in time, then as the cluster's policy says.

A pod is asked by an eviction, which respects disruption budgets and holds for that very pod alone (by uid). Its grace
ends at the strict end: a job that writes a checkpoint on SIGTERM has all of the notice for it. Pods without GPUs are
never touched. A pod whose controller is gone, or never was, does not come back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected, refused
from reconciler.clusters.kubernetes.nodes.node_inventory import Pod
from reconciler.model.cluster_port import Refused

GONE = frozenset({404, 409})
"""Answers to an eviction of a pod that ended, or was replaced by another of its name, in between."""
BUDGET = frozenset({429, 500})
"""Answers when a disruption budget forbids it now, or two budgets claim the pod."""
RETRY = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class EvictionRound:
    """What became of one round of asking; `blocked` names pods that a budget keeps for now, and why."""

    blocked: tuple[str, ...] = ()
    refused: Refused | None = None  # the first pod that the server keeps for another reason


def ask(api: Api, pods: Iterable[Pod], by: datetime, now: datetime, version: str) -> EvictionRound:
    """Evict every pod that is not leaving yet, with all the time until `by`. `version`: policy/v1 or policy/v1beta1."""
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
    """The strict end: what is still there is deleted. Budgets and finalizers' owners were asked before.

    With a second of grace the kubelet ends the pod, and takes it out of the API when none of its containers is left.
    Without any, the pod is out of the API at once, and its kubelet may give its processes all of the grace they ask.
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
    """The pod, and what keeps it, for people."""
    if pod.finalizers:
        return f"{pod.key} (kept by its finalizer {', '.join(pod.finalizers)})"
    if pod.ends is None:
        return f"{pod.key} (not told to stop yet)"
    return f"{pod.key} (its kubelet has not ended it)"


def _eviction(pod: Pod, by: datetime, now: datetime, version: str) -> Json:
    # A grace of 0 would take the pod out of the API at once and leave its processes to the kubelet.
    grace_s = max(1, int((by - now).total_seconds()))
    return {
        "apiVersion": version,
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": {"gracePeriodSeconds": grace_s, "preconditions": {"uid": pod.uid}},
    }
