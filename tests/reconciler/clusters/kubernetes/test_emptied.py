"""Every test finds its control plane empty, whether that is emptied in its store or by requests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.clusters.kubernetes.api.api_client import Json
from tests.reconciler.clusters.kubernetes.tenants import namespace, pod
from tests.reconciler.clusters.rig import stateful
from tests.support.emptied import wipe_by_requests
from tests.support.kube import Plane, eventually, gpu_node

RBAC = "/apis/rbac.authorization.k8s.io/v1"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MADE: dict[str, Json] = {
    "/api/v1/nodes": gpu_node("h100-1"),
    "/api/v1/namespaces/vision/configmaps": {"metadata": {"name": "work"}},
    "/api/v1/namespaces/default/pods": pod("stray", nodeName="h100-1"),
    "/apis/apps/v1/namespaces/vision/statefulsets": stateful("train", "vision", 8, 2),
    f"{RBAC}/clusterroles": {
        "metadata": {"name": "ours", "labels": {"app.kubernetes.io/managed-by": "egs"}},
        "rules": [],
    },
    HOOKS: {"metadata": {"name": "judge"}, "webhooks": []},
}
LISTED = ("/api/v1/nodes", "/api/v1/pods", "/apis/apps/v1/statefulsets", HOOKS)


@pytest.mark.parametrize(
    "wipe",
    [
        pytest.param(Plane.wipe, id="as for every test"),
        pytest.param(lambda plane: wipe_by_requests(plane.api), id="by requests"),
    ],
)
def test_nothing_of_a_test_is_left(kube: Plane, wipe: Callable[[Plane], None]) -> None:
    before = {path: len(kube.items(path)) for path in LISTED}
    namespace(kube, "vision")
    for path, body in MADE.items():
        kube.api.create(path, body)
    eventually(lambda: len(kube.items("/api/v1/pods")) == 3, "the pods")
    wipe(kube)
    for path, body in MADE.items():
        assert kube.api.find(f"{path}/{body['metadata']['name']}") is None
    assert {path: len(kube.items(path)) for path in LISTED} == before == dict.fromkeys(LISTED, 0)
    assert kube.api.find("/api/v1/namespaces/vision") is None
    assert kube.api.find("/api/v1/namespaces/default")


def test_a_listing_that_is_kept_shows_every_change(kube: Plane) -> None:
    nodes = "/api/v1/nodes"
    for name in ("a", "b"):
        kube.api.create(nodes, gpu_node(name))
    assert [node["metadata"]["name"] for node in kube.items(nodes)] == ["a", "b"]
    kube.api.merge(f"{nodes}/a", {"metadata": {"labels": {"seen": "yes"}}})
    assert [node["metadata"]["labels"].get("seen") for node in kube.items(nodes)] == ["yes", None]
    kube.api.delete(f"{nodes}/a")
    assert [node["metadata"]["name"] for node in kube.items(nodes)] == ["b"]
    kube.api.delete(f"{nodes}/b")
    kube.api.create(nodes, gpu_node("c"))
    assert [node["metadata"]["name"] for node in kube.items(nodes)] == ["c"]
