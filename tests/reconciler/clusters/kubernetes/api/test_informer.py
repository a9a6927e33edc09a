"""What an informer knows follows the server, whatever becomes of its watch (issue: watches that break or expire)."""

from __future__ import annotations

import pytest

from reconciler.clusters.kubernetes.api.informer import Informer
from tests.support.kube import eventually, gpu_node


@pytest.fixture
def nodes(kube):
    """An informer of nodes that keeps their labels."""
    found = Informer(kube.api, "/api/v1/nodes", lambda node: node["metadata"].get("labels", {}))
    kube.api.create("/api/v1/nodes", gpu_node("gpu-1"))
    found.start()
    found.wait_synced(10)
    yield found
    found.stop()


def test_what_was_there_is_known_once_it_is_synced(nodes):
    assert list(nodes.items()) == ["gpu-1"]


def test_changes_arrive_by_themselves(kube, nodes):
    """A node that comes, changes and goes."""
    kube.api.create("/api/v1/nodes", gpu_node("gpu-2"))
    eventually(lambda: "gpu-2" in nodes.items(), "gpu-2")
    kube.api.merge("/api/v1/nodes/gpu-2", {"metadata": {"labels": {"new": "yes"}}})
    eventually(lambda: nodes.items()["gpu-2"].get("new") == "yes", "the label")
    kube.api.delete("/api/v1/nodes/gpu-2")
    eventually(lambda: "gpu-2" not in nodes.items(), "gpu-2 is gone")


def test_a_write_of_ours_is_known_at_once(kube, nodes):
    """No cycle acts on what it changed itself."""
    nodes.learn(kube.api.merge("/api/v1/nodes/gpu-1", {"metadata": {"labels": {"ours": "1"}}}))
    assert nodes.items()["gpu-1"]["ours"] == "1"


def test_only_what_matters_wakes(kube):
    """A heartbeat is no change, and a change of no interest wakes nobody."""
    woken: list[str] = []
    found = Informer(
        kube.api,
        "/api/v1/nodes",
        lambda node: node["metadata"].get("labels", {}),
        wake=lambda: woken.append("now"),
        matters=lambda labels: labels.get("quiet") != "yes",
    )
    kube.api.create("/api/v1/nodes", gpu_node("gpu-1"))
    loud, quiet = (
        kube.api.get("/api/v1/nodes/gpu-1"),
        kube.api.create("/api/v1/nodes", gpu_node("q", quiet="yes")),
    )
    found.learn(loud)
    assert len(woken) == 1
    found.learn(kube.api.merge("/api/v1/nodes/gpu-1", {"spec": {"unschedulable": True}}))
    found.learn(quiet)
    assert len(woken) == 1
    found.learn(kube.api.merge("/api/v1/nodes/gpu-1", {"metadata": {"labels": {"new": "1"}}}))
    assert len(woken) == 2
