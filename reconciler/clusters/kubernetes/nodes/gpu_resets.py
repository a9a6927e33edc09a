"""Resets of GPUs and reboots of nodes: by NVSentinel's objects where they are served, else by a Job of ours.

A living client of NVML makes a reset impossible, so the node's agent is asked to let go of the driver first: by an
annotation of its pod with the time until which it does. The annotation is renewed while we work, and removed at the
end; without us it runs out.

Objects are named after the order, so that a repeat finds them: nothing is reset or rebooted twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.checks.check_jobs import OTHERS, only_on, read_check_pod, read_job
from reconciler.clusters.kubernetes.names import (
    JOB,
    MANAGED_BY,
    MANAGER,
    OBJECT_STAMP,
    RELEASE_NVML,
    SLICE,
)
from reconciler.clusters.kubernetes.nodes.node_inventory import Node
from reconciler.clusters.kubernetes.nodes.node_marks import write_stamp
from reconciler.model.cluster_port import Busy, CheckResult, RemedyOrder, Stamp
from schemas.documents.cluster import ClusterSpec
from schemas.reading.units import format_instant, parse_instant

NVSENTINEL = "janitor.dgxc.nvidia.com"
SENTINEL_PATH = f"/apis/{NVSENTINEL}/v1alpha1"
AGENTS = "app.kubernetes.io/name=egs,app.kubernetes.io/component=agents"
"""The pods of our agents, as installed."""
LET_GO = timedelta(minutes=5)
"""So long an agent lets go of the driver after our last word; the word is renewed at half of it."""
POLL = timedelta(seconds=10)
JOB_S = 600
"""A reset takes seconds; pulling the image may take minutes."""

Results = tuple[CheckResult, ...]


class GpuResets:
    """Carries out the orders for one cluster."""

    def __init__(self, api: Api, spec: ClusterSpec, namespace: str) -> None:
        self._api, self._spec, self._namespace = api, spec, namespace
        self._jobs_path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self._pods_path = f"/api/v1/namespaces/{namespace}/pods"

    def run(self, node: Node, order: RemedyOrder, stamp: Stamp, now: datetime) -> Busy | Results:
        """The next step, or the result."""
        sentinel = self._api.find(SENTINEL_PATH) is not None
        if order.action == "reboot":
            return self._rebooted(node, order, stamp, now) if sentinel else (_TOLD,)
        if not (sentinel or self._spec.remediation.image):
            return (
                _result("Reset", False, "NVSentinel is not installed, and spec.remediation has no image"),
            )
        self._let_go(node.name, now)
        if not order.released:
            return Busy(now + POLL, f"the agent of node {node.name} lets go of its GPUs")
        found = self._by_sentinel(node, order, stamp) if sentinel else self._by_job(node, order, stamp)
        if found is None:
            return Busy(now + POLL, f"GPUs of node {node.name} are being reset")
        self._let_go(node.name, None)
        return (found,)

    # --- the agent ---

    def _let_go(self, node: str, now: datetime | None) -> None:
        """Asks the node's agents to let go of the driver for a while from now on; None: they may take it up again."""
        found = self._api.get(self._pods_path, labelSelector=AGENTS, fieldSelector=f"spec.nodeName={node}")
        for pod in found.get("items") or ():
            have = (pod["metadata"].get("annotations") or {}).get(RELEASE_NVML)
            if (now is None and have is None) or (now is not None and _lasts(have, now)):
                continue
            until = None if now is None else format_instant(now + LET_GO)
            body: Json = {"metadata": {"annotations": {RELEASE_NVML: until}}}
            self._api.merge(f"{self._pods_path}/{pod['metadata']['name']}", body)

    # --- NVSentinel ---

    def _by_sentinel(self, node: Node, order: RemedyOrder, stamp: Stamp) -> CheckResult | None:
        spec: Json = {"nodeName": node.name}
        if order.gpus:
            spec["selector"] = {"uuids": list(order.gpus)}
        status = self._object("GPUReset", "gpuresets", order, spec, stamp)
        phase = status.get("phase")
        if phase not in {"Succeeded", "Failed"}:
            return None
        return _result("Reset", phase == "Succeeded", _last_words(status) or f"GPUReset {order.uid}: {phase}")

    def _rebooted(self, node: Node, order: RemedyOrder, stamp: Stamp, now: datetime) -> Busy | Results:
        spec = {"nodeName": node.name, "force": False}
        status = self._object("RebootNode", "rebootnodes", order, spec, stamp)
        if not status.get("completionTime"):
            return Busy(now + POLL, f"node {node.name} is being rebooted")
        conditions = status.get("conditions") or ()
        is_back = any(c["type"] == "NodeReady" and c["status"] == "True" for c in conditions)
        return (_result("Reboot", is_back, _last_words(status) or f"RebootNode {order.uid} ended"),)

    def _object(self, kind: str, plural: str, order: RemedyOrder, spec: Json, stamp: Stamp) -> Json:
        """The status of the object for this order, made if it is missing."""
        path = f"{SENTINEL_PATH}/{plural}"
        found = self._api.find(f"{path}/{order.uid}")
        if found is None:
            found = self._made(
                path,
                {
                    "apiVersion": f"{NVSENTINEL}/v1alpha1",
                    "kind": kind,
                    "metadata": _about(order, stamp),
                    "spec": spec,
                },
            )
        return found.get("status") or {}

    # --- our own Job ---

    def _by_job(self, node: Node, order: RemedyOrder, stamp: Stamp) -> CheckResult | None:
        found = self._api.find(f"{self._jobs_path}/{order.uid}")
        if found is None:
            found = self._made(self._jobs_path, self._job(node, order, stamp))
        conditions = (found.get("status") or {}).get("conditions") or ()
        failed = read_job(found).failed
        if not failed and not any(c["type"] == "Complete" and c["status"] == "True" for c in conditions):
            return None
        said = next(self._said(order.uid), "")
        return _result("Reset", not failed, said or (f"Job {order.uid} failed: {failed}" if failed else ""))

    def _said(self, job: str) -> Iterator[str]:
        found = self._api.get(self._pods_path, labelSelector=f"{JOB}={job}")
        for pod in filter(None, (read_check_pod(item) for item in found.get("items") or ())):
            if pod.said or pod.trouble:
                yield pod.said or pod.trouble

    def _job(self, node: Node, order: RemedyOrder, stamp: Stamp) -> Json:
        labels = {MANAGED_BY: MANAGER, JOB: order.uid}
        about = _about(order, stamp) | {"namespace": self._namespace}
        about["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}]
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": about,
            "spec": {
                "backoffLimit": 0,
                "activeDeadlineSeconds": JOB_S,
                "ttlSecondsAfterFinished": 3600,
                "template": {"metadata": {"labels": labels}, "spec": self._pod(node, order)},
            },
        }

    def _pod(self, node: Node, order: RemedyOrder) -> Json:
        policy = self._spec.remediation
        keys = dict.fromkeys((SLICE, *OTHERS, *self._spec.checks.tolerate))
        pod: Json = {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "affinity": only_on(node.name),
            "tolerations": [{"key": key, "operator": "Exists"} for key in keys],
            "containers": [
                {
                    "name": "reset",
                    "image": policy.image,
                    "command": [
                        "nvidia-smi",
                        "--gpu-reset",
                        *(["-i", ",".join(order.gpus)] if order.gpus else []),
                    ],
                    "env": [
                        # All GPUs are shown and none is requested: a requested one may be any.
                        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
                        {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
                    ],
                    "securityContext": {"privileged": True, "runAsUser": 0},  # a reset is root's
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                }
            ],
        }
        return pod | ({"runtimeClassName": policy.runtime_class} if policy.runtime_class else {})

    def _made(self, path: str, body: Json) -> Json:
        try:
            return self._api.create(path, body)
        except Rejected as no:
            if no.status != 409:
                raise
            return self._api.get(f"{path}/{body['metadata']['name']}")


def _about(order: RemedyOrder, stamp: Stamp) -> Json:
    return {
        "name": order.uid,
        "labels": {MANAGED_BY: MANAGER},
        "annotations": {OBJECT_STAMP: write_stamp(stamp)},
    }


def _result(name: str, passed: bool, log: str) -> CheckResult:
    return CheckResult(name, passed, "done" if passed else "", log)


_TOLD = _result("Reboot", True, "NVSentinel is not installed; the event NodeRebootRequested told its routes")


def _last_words(status: Json) -> str:
    """What the newest condition says."""
    conditions = sorted(status.get("conditions") or (), key=lambda c: str(c.get("lastTransitionTime") or ""))
    return str(conditions[-1].get("message") or "") if conditions else ""


def _lasts(have: str | None, now: datetime) -> bool:
    """Whether an earlier word needs no renewal yet."""
    try:
        return have is not None and parse_instant(have) - now > LET_GO / 2
    except ValueError:
        return False
