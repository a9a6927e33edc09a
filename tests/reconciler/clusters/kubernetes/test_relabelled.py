"""A controller, a running request and a real API server: what somebody does to the namespace meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.fleet import Fleet, fleet
from tests.support.kube import Plane, eventually
from tests.support.world import cluster, project, slice_

SPACE = "/api/v1/namespaces/a"
POOL = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": ["gpu-1"]}
FILES = {
    "project.yaml": project(),
    "clusters/east.yaml": cluster(driver="kubernetes", pools=[POOL], admission={"mode": "none"}),
    "slices/a/slice.yaml": slice_("a"),
    "slices/b/slice.yaml": slice_("b"),
}


@pytest.fixture
def world(kube: Plane, tmp_path: Path) -> Iterator[Fleet]:
    with fleet(tmp_path, {"east": kube}, {"east": ("gpu-1",)}, FILES) as made:
        made.file("a/x", duration="2h")
        made.run(5)
        assert made.status("a/x").phase == "Provisioned"
        yield made


def said(world: Fleet) -> list[str]:
    """What the request says of its namespaces."""
    return [c.message for c in world.status("a/x").conditions if c.type == "NamespaceNotReady"]


def test_a_relabelled_namespace_is_put_right_and_the_request_says_so_meanwhile(world: Fleet) -> None:
    api = world.sites["east"].api
    pods = "/api/v1/namespaces/a/pods"
    world.sites["east"].submit("a", "train", 8)
    world.run(6)
    api.merge(SPACE, {"metadata": {"labels": {"egs.dev/slice": "b"}}})
    world.run(7)
    labels = api.get(SPACE)["metadata"]["labels"]
    assert (labels["egs.dev/slice"], labels["egs.dev/project"]) == ("a", "default")
    told = [f"{e.reason}: {e.message}" for e in world.events]
    assert any(
        "GPRNamespaceNotReady: a/x: namespace a differs from what its slice needs" in t for t in told
    ), told
    assert any("DriftRepaired" in t and "Namespace a" in t for t in told)
    assert world.told().count("GPRNamespaceReady") == 1
    assert said(world) == []
    assert [p["spec"].get("nodeName") for p in api.items(pods)] == ["gpu-1"], "the workload went on"


def test_a_namespace_that_somebody_else_made_again_waits_for_an_offer(world: Fleet) -> None:
    api = world.sites["east"].api
    api.delete(SPACE)
    eventually(lambda: api.find(SPACE) is None, "its end")
    api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    world.run(7)
    (text,) = said(world)
    assert "kubectl annotate namespace a egs.dev/adopt=default --overwrite" in text
    assert world.told().count("GPRNamespaceNotReady") == 1
    api.merge(SPACE, {"metadata": {"annotations": {"egs.dev/adopt": "default"}}})
    world.run(9)
    assert said(world) == []
    assert api.get(SPACE)["metadata"]["labels"]["egs.dev/slice"] == "a"
