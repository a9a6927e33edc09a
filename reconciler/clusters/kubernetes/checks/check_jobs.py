"""The Job that runs checks on one node, and what is read of it and of its pod. Pure.

The scheduler places the pod on exactly that node, never `nodeName`: a volume that binds when its first
consumer is scheduled would never be bound. The pod has no service account token and only the rights that RDMA
needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.checks.check_verdicts import Subject, rdma_resources
from reconciler.clusters.kubernetes.names import (
    CHECK,
    GPU_RESOURCE,
    JOB,
    MANAGED_BY,
    MANAGER,
    OBJECT_STAMP,
    REQUEST_UID,
    SLICE,
)
from reconciler.clusters.kubernetes.nodes.node_inventory import is_gpu
from reconciler.clusters.kubernetes.nodes.node_marks import write_stamp
from reconciler.model.cluster_port import Stage, Stamp

CONTAINER = "checks"
VOLUME, SCRATCH, SHARED_MEMORY = "/volume", "/tmp", "/dev/shm"  # noqa: S108 - paths in the pod
VOLUME_SIZE = "1Gi"
GRACE = timedelta(minutes=1)
"""We give up at the timeout and report why; only if no controller runs, the cluster ends the Job itself."""
OTHERS = (GPU_RESOURCE, "node.kubernetes.io/unschedulable", "node.kubernetes.io/network-unavailable")
"""Other taints that must not keep a check away: the vendor's, and a cordon."""


@dataclass(frozen=True, slots=True)
class Order:
    subject: Subject
    stage: Stage
    begun: datetime
    checks: tuple[str, ...]  # the checks to run
    image: str
    timeout: timedelta
    tolerate: tuple[str, ...] = ()
    volume: str | None = None  # storage class of the tested volume; None: no volume
    peer: str = ""  # name=address of the node to measure the latency to

    @property
    def name(self) -> str:
        """The same for the same lease, node, stage and begin: a repeat finds it."""
        return job_name(self.subject.node.name, self.subject.lease.uid, self.stage, self.begun)


@dataclass(frozen=True, slots=True)
class JobState:
    name: str
    uid: str
    node: str
    failed: str  # the Job controller's reason; empty: not failed


@dataclass(frozen=True, slots=True)
class PodState:
    name: str
    job: str
    phase: str
    said: str  # its termination message
    trouble: str  # why it does not run, or failed

    @property
    def ended(self) -> bool:
        """True once its container can report nothing more."""
        return self.phase in {"Succeeded", "Failed"}


def job_name(node: str, uid: str, stage: Stage, begun: datetime) -> str:
    """The Job's name, at most 63 characters for any node name."""
    key = f"{node}\n{uid}\n{stage}\n{begun.timestamp():.0f}"
    return f"check-{stage}-{sha256(key.encode()).hexdigest()[:16]}"


def job(order: Order, namespace: str, stamp: Stamp) -> Json:
    node = order.subject.node
    labels = {MANAGED_BY: MANAGER, CHECK: order.stage, REQUEST_UID: order.subject.lease.uid}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": order.name,
            "namespace": namespace,
            "labels": labels,
            "annotations": {OBJECT_STAMP: write_stamp(stamp)},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}],
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": int((order.timeout + GRACE).total_seconds()),
            # Alpha in 1.20 and dropped there: `sweep` deletes old Jobs.
            "ttlSecondsAfterFinished": 3600,
            "template": {"metadata": {"labels": {**labels, JOB: order.name}}, "spec": _pod(order)},
        },
    }


def claim(order: Order, namespace: str, job_uid: str) -> Json:
    """The volume that its pod writes to and reads from; it is deleted with the Job."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": order.name,
            "namespace": namespace,
            "labels": {MANAGED_BY: MANAGER, CHECK: order.stage},
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": order.name, "uid": job_uid}
            ],
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": order.volume,
            "resources": {"requests": {"storage": VOLUME_SIZE}},
        },
    }


def _pod(order: Order) -> Json:
    mounts = {"scratch": SCRATCH, "shm": SHARED_MEMORY}
    volumes: list[Json] = [
        {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
        {
            "name": "shm",
            "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi" if _wants_gpus(order) else "16Mi"},
        },
    ]
    if order.volume is not None:
        mounts["tried"] = VOLUME
        volumes.append({"name": "tried", "persistentVolumeClaim": {"claimName": order.name}})
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "affinity": only_on(order.subject.node.name),
        "tolerations": [
            {"key": key, "operator": "Exists"} for key in dict.fromkeys((SLICE, *OTHERS, *order.tolerate))
        ],
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": volumes,
        "containers": [_container(order, mounts)],
    }


def _container(order: Order, mounts: Mapping[str, str]) -> Json:
    rdma = "RdmaSubnet" in order.checks
    # RDMA memory is locked; no other check needs a capability.
    capabilities: Json = {"drop": ["ALL"]} | ({"add": ["IPC_LOCK"]} if rdma else {})
    return {
        "name": CONTAINER,
        "image": order.image,
        "env": [{"name": name, "value": value} for name, value in _environment(order).items()],
        "resources": _resources(order),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": capabilities,
        },
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts.items()],
    }


def _environment(order: Order) -> dict[str, str]:
    """The contract with the image; see docs/reference/checks.md."""
    return {
        "EGS_STAGE": order.stage,
        "EGS_CHECKS": ",".join(order.checks),
        "EGS_NODE": order.subject.node.name,
        "EGS_GPUS": str(order.subject.gpus) if _wants_gpus(order) else "0",
        "EGS_IMAGE": order.image,
        "EGS_PEERS": order.peer,
        "EGS_VOLUME": VOLUME if order.volume is not None else "",
        "EGS_TIMEOUT": str(int(order.timeout.total_seconds())),
    }


def _resources(order: Order) -> Json:
    if not _wants_gpus(order):
        # Beside a running workload: minimal resources, and never a GPU.
        small = {"cpu": "10m", "memory": "32Mi"}
        return {"requests": small, "limits": {"cpu": "200m", "memory": "128Mi"}}
    node = order.subject.node
    found = sorted(node.allocatable.items())
    devices = {name: str(count) for name, count in found if count and is_gpu(name)}
    if "RdmaSubnet" in order.checks:
        devices |= dict.fromkeys(rdma_resources(node), "1")
    return {"requests": {"cpu": "500m", "memory": "1Gi", **devices}, "limits": devices}


def _wants_gpus(order: Order) -> bool:
    return order.stage == "pre" or "NcclLatency" in order.checks


def only_on(node: str) -> Json:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def read_job(item: Json) -> JobState:
    meta, conditions = item["metadata"], (item.get("status") or {}).get("conditions") or ()
    node = next((o["name"] for o in meta.get("ownerReferences") or () if o["kind"] == "Node"), "")
    failed = next((c for c in conditions if c["type"] == "Failed" and c["status"] == "True"), None)
    reason = "" if failed is None else failed.get("reason") or "Failed"
    return JobState(meta["name"], meta["uid"], node, reason)


def read_check_pod(item: Json) -> PodState | None:
    """A pod of a Job of ours, cut down; None for any other."""
    meta, status = item["metadata"], item.get("status") or {}
    name = (meta.get("labels") or {}).get(JOB)
    if name is None:
        return None
    states = [c.get("state") or {} for c in status.get("containerStatuses") or ()]
    ended: Json = next((s["terminated"] for s in states if s.get("terminated")), {})
    phase, said = status.get("phase", "Pending"), ended.get("message") or ""
    return PodState(meta["name"], name, phase, said, _trouble(status, states))


def _trouble(status: Json, states: list[Json]) -> str:
    """The most informative message in the pod's status."""
    waiting = [s["waiting"] for s in states if s.get("waiting")]
    ended = [s["terminated"] for s in states if s.get("terminated")]
    # A container that ended was scheduled, whatever an earlier condition says.
    unplaced = [
        c
        for c in status.get("conditions") or ()
        if not ended and c["type"] == "PodScheduled" and c["status"] == "False"
    ]
    for found in (*waiting, *unplaced, *([status] if status.get("reason") else [])):
        return ": ".join(filter(None, (found.get("reason"), found.get("message"))))
    for found in ended:
        return f"{found.get('reason') or 'ended'}, exit code {found.get('exitCode')}"
    return ""
