"""A reverted commit undoes in a real cluster what it caused there: objects, rights and marks (B5, C2, A12, H13)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.clusters.kubernetes.api.api_client import Api, Json
from reconciler.clusters.kubernetes.api.informer import key_of
from reconciler.clusters.kubernetes.names import MANAGED_BY, MANAGER
from tests.e2e.fleet import Fleet, fleet
from tests.support import repos
from tests.support.kube import Plane
from tests.support.world import cluster, project, slice_

RBAC = "/apis/rbac.authorization.k8s.io/v1"
OURS = (
    f"{RBAC}/roles",
    f"{RBAC}/rolebindings",
    "/api/v1/serviceaccounts",
    "/api/v1/resourcequotas",
    "/apis/networking.k8s.io/v1/networkpolicies",
)
NODES = ("gpu-1", "gpu-2", "gpu-3")
POOL = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80}


def manifest(*nodes: str) -> str:
    """The cluster with these nodes in its pool."""
    pool = {**POOL, "nodes": list(nodes)}
    return cluster(driver="kubernetes", pools=[pool], admission={"mode": "none"})


BEFORE = {
    "project.yaml": project(),
    "clusters/east.yaml": manifest("gpu-1", "gpu-2"),
    "slices/a/slice.yaml": slice_("a", quota={"gpus": 8}),
}
MEMBERS = [{"email": "bo@example.com"}, {"email": "cy@example.com"}]
MERGED = {
    "clusters/east.yaml": manifest("gpu-1", "gpu-3"),
    "slices/a/slice.yaml": slice_("a", namespaces=["a", "more"], members=MEMBERS, quota={"gpus": 16}),
    "slices/b/slice.yaml": slice_("b"),
}


@pytest.fixture
def world(kube: Plane, tmp_path: Path) -> Iterator[Fleet]:
    with fleet(tmp_path, {"east": kube}, {"east": NODES}, BEFORE) as made:
        yield made


def shown(api: Api) -> dict[str, Any]:
    """All that is ours in the cluster, but for who wrote it when."""
    found = {f"Node {item['metadata']['name']}": _node(item) for item in api.items("/api/v1/nodes")}
    for item in api.items("/api/v1/namespaces"):
        found[f"Namespace {item['metadata']['name']}"] = _meta(item)
    for path in OURS:
        for item in api.items(path, labelSelector=f"{MANAGED_BY}={MANAGER}"):
            kept = {key: item[key] for key in ("spec", "rules", "roleRef", "subjects") if key in item}
            found[f"{path} {key_of(item)}"] = (_meta(item), kept)
    return found


def _meta(item: Json) -> tuple[dict[str, str], ...]:
    meta = item["metadata"]
    found = [
        {k: v for k, v in (meta.get(of) or {}).items() if "egs" in k} for of in ("labels", "annotations")
    ]
    return tuple({k: v for k, v in entries.items() if not k.endswith("/stamp")} for entries in found)


def _node(item: Json) -> Any:
    taints = [taint for taint in item["spec"].get("taints") or () if "egs" in taint["key"]]
    return (*_meta(item), taints, item["spec"].get("unschedulable"))


UNTOUCHED = ({}, {}, [], None)
"""A node that bears no mark of ours."""


def test_namespaces_rights_quota_and_marks_are_as_they_were(world: Fleet) -> None:
    api = world.sites["east"].api
    world.run(2)
    before = shown(api)
    assert before["Node gpu-3"] == UNTOUCHED
    assert before["Node gpu-2"] != UNTOUCHED

    repos.commit(world.repo, MERGED)
    world.run(5)
    between = shown(api)
    assert {"Namespace more", "Namespace b"} <= between.keys() - before.keys()
    assert between["Node gpu-2"] == UNTOUCHED
    assert between["Node gpu-3"] == before["Node gpu-2"]
    members = between[f"{RBAC}/rolebindings a/egs-members"][1]["subjects"]
    assert any(subject["name"] == "cy@example.com" for subject in members)

    repos.commit(world.repo, {path: BEFORE.get(path) for path in MERGED})
    world.run(8)
    found = shown(api)
    # What people have in a namespace that their slice gave up is theirs: it stays, with nothing of ours.
    assert found.pop("Namespace more") == ({}, {})
    assert found == before
