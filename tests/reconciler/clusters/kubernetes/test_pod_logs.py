"""Logs of the pods of a workload's objects (A9): each line once, those of others never."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import pytest

from reconciler.cli.answers.job_logs import is_of
from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.workloads.pod_logs import PodLogs
from reconciler.clusters.kubernetes.workloads.pod_objects import read_pod

JOB = {"objects": [{"kind": "ConfigMap", "name": "other"}, {"kind": "Job", "name": "train"}]}


def pod(name: str, job: str, state: str = "running") -> Json:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job, "controller": True}
    meta = {"name": name, "namespace": "vision", "uid": f"uid-{name}", "ownerReferences": [owner]}
    status = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {state: {}}}]}
    return {"metadata": meta, "spec": {"containers": [{"name": "main"}]}, "status": status}


class Server:
    """Pods and the logs of each, as the API gives them from a time on, in whole seconds."""

    def __init__(self, *pods: Json) -> None:
        self.pods, self.logs = list(pods), dict[str, list[str]]()

    def items(self, path: str) -> Iterator[Json]:
        assert path == "/api/v1/namespaces/vision/pods"
        yield from self.pods

    def text(self, path: str, **params: Any) -> str:
        name = path.split("/")[-2]
        if name not in self.logs:
            raise Rejected("gone", 404, "NotFound")
        since = str(params.get("sinceTime", ""))[:19]
        return "".join(f"{line}\n" for line in self.logs[name] if line[:19] >= since)


@pytest.fixture
def server() -> Server:
    return Server(
        pod("a-0", "train"), pod("b-0", "other"), pod("c-0", "train", "waiting"), pod("d-0", "train")
    )


def test_each_line_comes_once_and_only_of_the_own_pods(server: Server) -> None:
    logs = PodLogs(cast(Api, server), "east", "vision", partial(is_of, JOB))
    server.logs = {
        "a-0": ["2026-11-21T08:00:00.1Z one", "2026-11-21T08:00:00.5Z two words"],
        "b-0": ["2026-11-21T08:00:00.2Z hidden"],
    }
    assert [(line.pod, line.text) for line in logs.news()] == [("a-0", "one"), ("a-0", "two words")]
    assert logs.news() == []
    server.logs["a-0"].append("2026-11-21T08:00:00.7Z three")
    server.logs["d-0"] = ["2026-11-21T08:00:00.6Z first"]
    assert [(line.pod, line.text) for line in logs.news()] == [("d-0", "first"), ("a-0", "three")]


def test_the_pods_of_a_train_job_are_its_own() -> None:
    """They are labelled with the JobSet that Trainer makes."""
    labelled = pod("e-0", "gang-node-0")
    labelled["metadata"]["labels"] = {"jobset.sigs.k8s.io/jobset-name": "gang"}
    found = read_pod(labelled, "east")
    for kind, is_own in (("TrainJob", True), ("JobSet", True), ("RayJob", False)):
        assert is_of({"objects": [{"kind": kind, "name": "gang"}]}, found) is is_own


def test_a_refusal_is_told(server: Server) -> None:
    def refused(path: str, **params: Any) -> str:
        raise Rejected("pods/log is forbidden", 403, "Forbidden")

    server.text = refused  # type: ignore[method-assign]
    with pytest.raises(Rejected, match="forbidden"):
        PodLogs(cast(Api, server), "east", "vision", partial(is_of, JOB)).news()
