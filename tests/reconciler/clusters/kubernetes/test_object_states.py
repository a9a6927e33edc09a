"""The states of workloads' objects, from statuses in the form in which their controllers write them (A9, J1)."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.clusters.kubernetes.workloads.object_states import state_of
from schemas.status.workload_status import ObjectState


def condition(kind: str, status: str = "True", reason: str = "") -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status, "reason": reason, "message": "why"}]}


@pytest.mark.parametrize(
    ("kind", "status", "state"),
    [
        ("ConfigMap", {}, "Ready"),
        ("Service", {"loadBalancer": {}}, "Ready"),
        ("PersistentVolumeClaim", {"phase": "Pending"}, "Pending"),
        ("PersistentVolumeClaim", {"phase": "Bound"}, "Ready"),
        ("Job", {}, "Pending"),
        ("Job", {"active": 2}, "Running"),
        ("Job", condition("Complete"), "Succeeded"),
        ("Job", condition("Failed", reason="BackoffLimitExceeded"), "Failed"),
        ("Job", condition("Suspended"), "Pending"),
        ("JobSet", {"replicatedJobsStatus": [{"name": "w", "active": 1, "ready": 0}]}, "Running"),
        ("JobSet", condition("Completed"), "Succeeded"),
        ("JobSet", condition("Failed"), "Failed"),
        ("LeaderWorkerSet", condition("Available"), "Running"),
        ("LeaderWorkerSet", condition("Progressing"), "Pending"),
        ("PyTorchJob", condition("Created"), "Pending"),
        ("PyTorchJob", condition("Running"), "Running"),
        ("PyTorchJob", condition("Succeeded"), "Succeeded"),
        ("TrainJob", {"jobsStatus": [{"name": "node", "active": 1}]}, "Running"),
        ("TrainJob", condition("Complete"), "Succeeded"),
        ("RayJob", {"jobStatus": "RUNNING", "jobDeploymentStatus": "Running"}, "Running"),
        ("RayJob", {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"}, "Succeeded"),
        ("RayJob", {"jobStatus": "FAILED", "reason": "AppFailed"}, "Failed"),
        ("RayJob", {"jobDeploymentStatus": "Failed"}, "Failed"),
        ("Deployment", {"availableReplicas": 1}, "Pending"),
        ("Deployment", {"availableReplicas": 2}, "Running"),
        ("Deployment", condition("Progressing", "False", "ProgressDeadlineExceeded"), "Failed"),
    ],
)
def test_the_state_of_an_object(kind: str, status: dict[str, Any], state: str) -> None:
    assert state_of(kind, {"spec": {"replicas": 2}, "status": status})[0] is ObjectState(state)


def test_a_failure_says_why() -> None:
    found = state_of("Job", {"status": condition("Failed", reason="BackoffLimitExceeded")})
    assert found == (ObjectState.FAILED, "BackoffLimitExceeded", "why")
