"""Kinds of other projects in a workload, against their published definitions on a real API server (A9, J1).

Their controllers do not run here. Each status is one that the definition takes without dropping a field.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.model.cluster_port import Done
from reconciler.model.workload_port import ObjectView
from schemas.documents.workload import OBJECT_KINDS
from schemas.status.workload_status import ObjectState
from tests.contract.test_workload_contract import KEY, settings, terms
from tests.reconciler.clusters.kubernetes.test_workloads_applied import Bench
from tests.reconciler.clusters.rig import FIRST
from tests.support.crds import JOBSET, KUBERAY, LWS, TRAINER, TRAINING_OPERATOR, Published, install_crds
from tests.support.kube import Plane

AT = "2026-11-21T09:00:00Z"
POD = {
    "spec": {
        "containers": [
            {"name": "main", "image": "example.com/train", "resources": {"limits": {"nvidia.com/gpu": 8}}}
        ]
    }
}
PENDING, RUNNING = ObjectState.PENDING, ObjectState.RUNNING
SUCCEEDED, FAILED = ObjectState.SUCCEEDED, ObjectState.FAILED


def condition(type_: str, is_true: bool = True, message: str = "") -> Json:
    """As the API machinery has them."""
    status = "True" if is_true else "False"
    return {
        "type": type_,
        "status": status,
        "reason": f"{type_}Now",
        "message": message,
        "lastTransitionTime": AT,
    }


@dataclass(frozen=True)
class Kind:
    """A kind, an object of it, and statuses with the state that each means."""

    published: Published
    version: str
    spec: Json
    steps: tuple[tuple[Json, ObjectState], ...]


JOBS = {"name": "workers", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
KINDS = {
    "JobSet": Kind(
        JOBSET,
        "v1alpha2",
        # The leader's Job first, then the workers'.
        {
            "startupPolicy": {"startupPolicyOrder": "InOrder"},
            "replicatedJobs": [
                {"name": name, "replicas": 1, "template": {"spec": {"template": POD}}}
                for name in ("leader", "workers")
            ],
        },
        (
            ({"replicatedJobsStatus": [{**JOBS, "suspended": 1}]}, PENDING),
            ({"replicatedJobsStatus": [{**JOBS, "active": 1}]}, RUNNING),
            ({"conditions": [condition("Completed")], "terminalState": "Completed"}, SUCCEEDED),
            ({"conditions": [condition("Failed", True, "exit code 1")], "terminalState": "Failed"}, FAILED),
        ),
    ),
    "LeaderWorkerSet": Kind(
        LWS,
        "v1",
        # The leader first, then the workers of its group together.
        {
            "replicas": 1,
            "startupPolicy": "LeaderReady",
            "leaderWorkerTemplate": {"size": 2, "leaderTemplate": POD, "workerTemplate": POD},
        },
        (
            ({"replicas": 1, "readyReplicas": 0, "conditions": [condition("Progressing")]}, PENDING),
            ({"replicas": 1, "readyReplicas": 1, "conditions": [condition("Available")]}, RUNNING),
        ),
    ),
    "RayJob": Kind(
        KUBERAY,
        "v1",
        {
            "entrypoint": "python train.py",
            "rayClusterSpec": {
                "headGroupSpec": {"rayStartParams": {"num-gpus": "8"}, "template": POD},
                "workerGroupSpecs": [
                    {"groupName": "gpus", "replicas": 1, "rayStartParams": {}, "template": POD}
                ],
            },
        },
        (
            ({"jobDeploymentStatus": "Initializing"}, PENDING),
            ({"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}, RUNNING),
            ({"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}, SUCCEEDED),
            (
                {
                    "jobDeploymentStatus": "Failed",
                    "jobStatus": "FAILED",
                    "reason": "AppFailed",
                    "message": "exit code 1",
                },
                FAILED,
            ),
        ),
    ),
    "PyTorchJob": Kind(
        TRAINING_OPERATOR,
        "v1",
        {
            "pytorchReplicaSpecs": {
                "Master": {"replicas": 1, "template": POD},
                "Worker": {"replicas": 1, "template": POD},
            }
        },
        (
            ({"conditions": [condition("Created")]}, PENDING),
            ({"conditions": [condition("Created"), condition("Running")]}, RUNNING),
            ({"conditions": [condition("Running", False), condition("Succeeded")]}, SUCCEEDED),
            ({"conditions": [condition("Running", False), condition("Failed", True, "exit code 1")]}, FAILED),
        ),
    ),
    "TrainJob": Kind(
        TRAINER,
        "v1alpha1",
        {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {"image": "example.com/train", "numNodes": 2},
        },
        (
            ({"conditions": [condition("Suspended", True, "TrainJob is suspended")]}, PENDING),
            (
                {
                    "jobsStatus": [
                        {"name": "node", "ready": 0, "active": 1, "succeeded": 0, "failed": 0, "suspended": 0}
                    ]
                },
                RUNNING,
            ),
            ({"conditions": [condition("Complete")]}, SUCCEEDED),
            ({"conditions": [condition("Failed", True, "exit code 1")]}, FAILED),
        ),
    ),
}


@pytest.fixture
def bench(new_kube: Plane) -> Iterator[Bench]:
    made = Bench(new_kube.api, new_kube.connect())
    yield made
    made.driver.close()


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_applied_as_published_and_its_state_is_read(bench: Bench, kind: str) -> None:
    case = KINDS[kind]
    about = OBJECT_KINDS[kind]
    install_crds(bench.api, case.published, about.plural)
    made = {
        "apiVersion": f"{about.group}/{case.version}",
        "kind": kind,
        "metadata": {"name": "gang"},
        "spec": case.spec,
    }
    assert bench.run(terms(made, settings())) == Done()
    assert [each.id for each in bench.placed().objects] == ["ConfigMap/settings", f"{kind}/gang"]
    path = f"/apis/{about.group}/{case.version}/namespaces/vision-train/{about.plural}/gang"
    assert holds(bench.api.get(path)["spec"], case.spec), "the definition dropped a field"
    assert found(bench).state is PENDING
    for status, state in case.steps:
        bench.api.replace(f"{path}/status", {**bench.api.get(path), "status": status})
        assert holds(bench.api.get(path)["status"], status), "the definition dropped a field"
        assert found(bench).state is state, status
    if case.steps[-1][1] is FAILED:
        assert found(bench).message == "exit code 1"
    assert bench.driver.end_workload(KEY, FIRST, bench.clock.later()) == Done()
    assert bench.api.find(path) is None


def found(bench: Bench) -> ObjectView:
    return bench.placed().objects[-1]


def holds(there: Any, wanted: Any) -> bool:
    """Whether every wanted field is there with its value."""
    if isinstance(wanted, dict):
        return isinstance(there, dict) and all(
            holds(there.get(name), value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return len(there) == len(wanted) and all(map(holds, there, wanted))
    return bool(there == wanted)
