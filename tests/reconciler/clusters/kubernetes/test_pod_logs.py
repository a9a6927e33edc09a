"""Logs of the pods of a workload's objects (A9): each line once, those of others never."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import pytest

from reconciler.cli.answers.job_logs import is_of
from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.workloads.pod_logs import MOST_BYTES, PodLogs
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
        self.broken = set[str]()

    def items(self, path: str) -> Iterator[Json]:
        assert path == "/api/v1/namespaces/vision/pods"
        yield from self.pods

    def text(self, path: str, **params: Any) -> str:
        name = path.split("/")[-2]
        if name in self.broken:
            raise Rejected("no answer from its node", 502, "")
        if name not in self.logs:
            raise Rejected("gone", 404, "NotFound")
        since = str(params.get("sinceTime", ""))[:19]
        text = "".join(f"{line}\n" for line in self.logs[name] if line[:19] >= since)
        return text.encode()[: params["limitBytes"]].decode("utf-8", "replace")


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


def test_a_container_that_cannot_be_read_keeps_no_line_back(server: Server) -> None:
    logs = PodLogs(cast(Api, server), "east", "vision", partial(is_of, JOB))
    server.logs = {"a-0": ["2026-11-21T08:00:00.1Z one"], "d-0": ["2026-11-21T08:00:00.2Z first"]}
    server.broken = {"a-0", "d-0"}
    with pytest.raises(Rejected, match="no answer"):
        logs.news()
    server.broken = {"d-0"}
    refused = ("d-0", "(its log cannot be read: no answer from its node)")
    assert [(line.pod, line.text) for line in logs.news()] == [refused, ("a-0", "one")]
    assert logs.news() == []
    server.broken = set()
    assert [line.text for line in logs.news()] == ["first"]


def test_a_flood_is_passed_and_said(server: Server) -> None:
    """More than one read in one second, then a line that alone is more, then what is short again."""
    logs = PodLogs(cast(Api, server), "east", "vision", partial(is_of, JOB))
    many = [f"2026-11-21T08:00:00.{n:09}Z {n} {'x' * 1000}" for n in range(MOST_BYTES // 1000)]
    server.logs = {
        "a-0": [*many, "2026-11-21T08:00:01Z " + "y" * MOST_BYTES, "2026-11-21T08:00:02.5+00:00 10%\r20%"]
    }
    looks = [[line.text.split(" ")[0] for line in logs.news()] for _ in range(5)]
    shown = looks[0]
    assert shown == [str(n) for n in range(len(shown))]
    assert 0 < len(shown) < len(many)
    assert looks[1:] == [["(lines"], ["(lines"], ["10%\r20%"], []]
    server.logs["d-0"] = server.logs["a-0"][-2:]
    assert [[line.text.split(" ")[0] for line in logs.news()] for _ in range(3)] == [
        [],
        ["(lines"],
        ["10%\r20%"],
    ]


def test_times_sort_whatever_their_digits_and_zone(server: Server) -> None:
    logs = PodLogs(cast(Api, server), "east", "vision", partial(is_of, JOB))
    server.pods[0]["status"]["initContainerStatuses"] = [{"name": "fetch", "state": {"terminated": {}}}]
    server.pods = server.pods[:1]
    server.logs = {"a-0": ["2026-11-21T08:00:00.1Z one", "2026-11-21T09:00:00.15+01:00 two"]}
    assert [(line.container, line.text) for line in logs.news()] == [
        ("fetch", "one"),
        ("main", "one"),
        ("fetch", "two"),
        ("main", "two"),
    ]
    assert logs.news() == []
