"""The state of a workload's object, as its own controller reports it. Pure.

Tested on statuses of each kind in the documented form; of Job also on its real controller, of other projects' kinds
also against their published definitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.clusters.kubernetes.workloads.endpoint_states import SERVED, Told
from schemas.status.workload_status import ObjectState

_ENDS = {
    "Complete": ObjectState.SUCCEEDED,  # Job, TrainJob
    "Completed": ObjectState.SUCCEEDED,  # JobSet
    "Succeeded": ObjectState.SUCCEEDED,  # PyTorchJob
    "Failed": ObjectState.FAILED,
}
_RAY = {
    "SUCCEEDED": ObjectState.SUCCEEDED,
    "FAILED": ObjectState.FAILED,
    "STOPPED": ObjectState.FAILED,
    "RUNNING": ObjectState.RUNNING,
}


def state_of(kind: str, item: Mapping[str, Any]) -> Told:
    """Without a status, its controller has not begun: Pending."""
    status = item.get("status") or {}
    if kind in SERVED:
        return SERVED[kind](status)
    conditions = {str(c.get("type")): c for c in status.get("conditions") or () if c.get("status") == "True"}
    for name, state in _ENDS.items():
        if name in conditions:
            return _told(state, conditions[name])
    match kind:
        case "ConfigMap" | "Service":
            return ObjectState.READY, "", ""
        case "PersistentVolumeClaim":
            bound = status.get("phase") == "Bound"
            return (ObjectState.READY if bound else ObjectState.PENDING), "", ""
        case "RayJob":
            return _of_ray(status)
        case "Deployment":
            return _of_deployment(item, status)
    if "Suspended" in conditions:
        return _told(ObjectState.PENDING, conditions["Suspended"])
    return (ObjectState.RUNNING if _is_active(kind, status, conditions) else ObjectState.PENDING), "", ""


def _is_active(kind: str, status: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    match kind:
        case "Job":
            return bool(status.get("active"))
        case "JobSet":
            jobs = status.get("replicatedJobsStatus") or ()
            return any(job.get("active") or job.get("ready") for job in jobs)
        case "TrainJob":
            return any(job.get("active") or job.get("ready") for job in status.get("jobsStatus") or ())
        case "LeaderWorkerSet":
            return "Available" in conditions
    return "Running" in conditions


def _of_ray(status: Mapping[str, Any]) -> Told:
    state = _RAY.get(str(status.get("jobStatus")), ObjectState.PENDING)
    if status.get("jobDeploymentStatus") == "Failed":
        state = ObjectState.FAILED
    return state, str(status.get("reason") or ""), str(status.get("message") or "")


def _of_deployment(item: Mapping[str, Any], status: Mapping[str, Any]) -> Told:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Progressing" and condition.get("status") == "False":
            return _told(ObjectState.FAILED, condition)
    wanted = (item.get("spec") or {}).get("replicas", 1)
    state = ObjectState.RUNNING if status.get("availableReplicas", 0) >= wanted else ObjectState.PENDING
    return state, "", ""


def _told(state: ObjectState, condition: Mapping[str, Any]) -> Told:
    if state is ObjectState.SUCCEEDED:
        return state, "", ""
    return state, str(condition.get("reason") or ""), str(condition.get("message") or "")
