"""Pods of slices as a real cluster gives them (H1): owners, warnings, and a reader with few rights."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.clusters.kubernetes.workloads.pod_objects import read_pod, read_trouble
from reconciler.clusters.kubernetes.workloads.pod_reader import PodReader
from reconciler.model.pod_port import PodsSeen
from reconciler.workloads.workload import Homes, Workload, workloads_in
from tests.support.kube import Plane, eventually

NAMESPACE = "vision-train"
HOMES = Homes({("east", NAMESPACE): "vision"}, {})
MAIN = {
    "name": "main",
    "image": "vllm/vllm-openai:v1",
    "args": ["--model", "org/name"],
    "resources": {"limits": {"nvidia.com/gpu": "1"}},
}
TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [MAIN]}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "chat"},
    "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE},
}


@pytest.fixture
def made(kube: Plane) -> Plane:
    kube.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    kube.api.create(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", DEPLOYMENT)
    return kube


def found(seen: PodsSeen) -> tuple[Workload, ...]:
    return workloads_in({"east": seen}, HOMES)


def unplaced(reader: PodReader) -> list[Workload]:
    """By one look: the cluster's controllers may replace a pod at any time."""
    return [one for one in found(reader.read([NAMESPACE])) if any(pod.unplaced for pod in one.pods)]


def test_a_deployments_pods_lead_to_it_and_say_why_they_wait(made: Plane) -> None:
    reader = PodReader(made.api, "east")
    (one,) = eventually(lambda: unplaced(reader), "a pod without a node")
    assert (one.key.kind, one.key.name, one.via, one.phase) == ("Deployment", "chat", "owner", "Pending")
    assert one.model.name is not None
    assert one.model.name.value == "org/name"
    assert "nodes" in one.pods[0].unplaced
    calls = made.api.calls
    reader.read([NAMESPACE])
    assert made.api.calls - calls == 2, "owners are remembered: only pods and warnings are read"


def test_a_namespace_that_is_not_there_has_no_pods(made: Plane) -> None:
    assert PodReader(made.api, "east").read(["nowhere"]).pods == ()


def test_what_may_not_be_read_is_left_out(made: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels tell instead, and the ReplicaSet's hash."""
    reader = PodReader(made.api, "east")
    monkeypatch.setattr(reader, "_owner", lambda *_: None)
    (one,) = eventually(lambda: found(reader.read([NAMESPACE])), "a pod")
    assert (one.key.kind, one.key.name) == ("Deployment", "chat")


def pod(**status: Any) -> Any:
    meta = {"name": "p", "namespace": "n", "deletionTimestamp": "2026-11-23T14:00:00Z"}
    spec = {"containers": [{"name": "main"}], "schedulingGates": [{"name": "g"}]}
    return {"metadata": meta, "spec": spec, "status": status}


def test_states_of_containers_are_read() -> None:
    ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-11-23T13:59:00.123456Z"}
    state = {"waiting": {"reason": "CrashLoopBackOff"}}
    told = {"name": "main", "restartCount": 4, "state": state, "lastState": {"terminated": ended}}
    read = read_pod(pod(phase="Running", containerStatuses=[told], startTime="2026-11-23T13:00:00Z"), "east")
    (container,) = read.containers
    assert (container.waiting, container.ended) == ("CrashLoopBackOff", "OOMKilled")
    assert (container.exit_code, container.restarts) == (137, 4)
    assert container.ended_at is not None
    assert (read.gates, read.ending, read.restarts) == (("g",), True, 4)


def test_only_warnings_are_troubles() -> None:
    about = {"kind": "Job", "name": "train", "namespace": "n"}
    event: dict[str, Any] = {"type": "Warning", "reason": "FailedCreate", "message": "exceeded\nquota"}
    event |= {"metadata": {}, "involvedObject": about}
    trouble = read_trouble(event)
    assert trouble is not None
    assert (trouble.object, trouble.message) == ("Job/train", "exceeded quota")
    assert read_trouble({**event, "type": "Normal"}) is None
