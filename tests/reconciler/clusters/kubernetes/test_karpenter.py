"""A pool that Karpenter makes, with its real definitions: it shrinks by named nodes, and never under a lease (F13).

No Karpenter runs: `karpenter` does what the static pools of version 1.15 do with a NodePool, its NodeClaims and nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.model.cluster_port import Answer, Done, LeaseRef, Refused, SliceTerms
from schemas.documents.cluster import Admission, ClusterSpec
from tests.reconciler.clusters.kubernetes.living import MINUTE
from tests.reconciler.clusters.kubernetes.tenants import pod
from tests.reconciler.clusters.rig import FIRST, NOW, placed
from tests.support.crds import KARPENTER, install_crds
from tests.support.kube import Plane, eventually, gpu_node

POOLS = "/apis/karpenter.sh/v1/nodepools"
VISION = LeaseRef("gpr-00000001-aaaa", "vision/train", "vision", NOW + 60 * MINUTE)
MORE = LeaseRef("gpr-00000002-bbbb", "vision/more", "vision", NOW + 60 * MINUTE)
NODEPOOL: dict[str, Any] = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "h100"},
    "spec": {
        "replicas": 2,
        "template": {
            "spec": {
                "nodeClassRef": {"group": "example.com", "kind": "ExampleNodeClass", "name": "h100"},
                "requirements": [{"key": "kubernetes.io/arch", "operator": "Exists"}],
            }
        },
    },
}


def spec() -> ClusterSpec:
    target = {"apiVersion": "karpenter.sh/v1", "resource": "nodepools", "name": "h100"}
    pool = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80}
    pool |= {"selector": {"pool": "h100"}, "elastic": {"max": 4, "target": target}}
    made = ClusterSpec.model_validate({"driver": "kubernetes", "pools": [pool]}, strict=False)
    return made.model_copy(update={"admission": Admission(mode="none")})


CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
TEMPLATE: dict[str, Any] = NODEPOOL["spec"]["template"]["spec"]


def claimed(plane: Plane, name: str) -> None:
    """A NodeClaim of the pool, and its node, which it owns."""
    meta = {"name": f"claim-{name}", "labels": {"karpenter.sh/nodepool": "h100"}}
    body = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta, "spec": TEMPLATE}
    claim = plane.api.create(CLAIMS, body)
    owner = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "name": meta["name"],
        "uid": claim["metadata"]["uid"],
    }
    node = gpu_node(name, 8, pool="h100")
    node["metadata"]["ownerReferences"] = [{**owner, "blockOwnerDeletion": True}]
    plane.api.create("/api/v1/nodes", node)


def claims(plane: Plane) -> set[str]:
    return {item["metadata"]["name"].removeprefix("claim-") for item in plane.api.items(CLAIMS)}


def karpenter(plane: Plane, in_use: set[str]) -> None:
    """To the NodePool's number: empty nodes go first, whichever these are; here those that we want to keep."""
    wanted = plane.api.get(f"{POOLS}/h100")["spec"]["replicas"]
    by_cost = sorted(claims(plane), key=lambda name: (name in in_use, name))
    for name in by_cost[: max(0, len(by_cost) - wanted)]:
        plane.api.delete(f"{CLAIMS}/claim-{name}")


@pytest.fixture
def driver(new_kube: Plane) -> Iterator[KubernetesCluster]:
    """Of a NodePool of two, one of whose nodes is leased to a slice."""
    api = new_kube.api
    install_crds(api, KARPENTER, "nodepools", "nodeclaims")
    api.create(POOLS, NODEPOOL)
    for name in ("a", "b"):
        claimed(new_kube, name)
    found = KubernetesCluster("east", spec(), new_kube.connect())
    found.ensure_slice(SliceTerms("vision", ("vision",)), FIRST, NOW)
    accounts = "/api/v1/namespaces/vision/serviceaccounts/default"
    eventually(lambda: api.find(accounts), "an account for pods")
    assert found.add("a", VISION, FIRST, NOW) == Done()
    yield found
    found.close()


def test_it_is_told_of_fewer_nodes_only_when_each_leased_one_bears_a_pod(
    new_kube: Plane, driver: KubernetesCluster
) -> None:
    answer = driver.scale("h100", 1, ("b",), FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "LeasedNodeEmpty"
    assert driver.scale("h100", 3, (), FIRST, NOW) == Done(), "it may grow"
    new_kube.api.create("/api/v1/namespaces/vision/pods", pod("train", 8, nodeName="a", **placed("vision")))
    eventually(lambda: driver._gpu_pods("a"), "the pod on its node")
    assert driver.scale("h100", 1, ("b",), FIRST, NOW) == Done()
    assert new_kube.api.get(f"{POOLS}/h100")["spec"]["replicas"] == 1
    assert claims(new_kube) == {"a"}


def test_exactly_the_nodes_that_leave_are_removed(new_kube: Plane, driver: KubernetesCluster) -> None:
    """Karpenter would have taken any of the three that are empty."""
    for name in ("c", "d"):
        claimed(new_kube, name)
    new_kube.api.merge(f"{POOLS}/h100", {"spec": {"replicas": 4}})
    new_kube.api.create("/api/v1/namespaces/vision/pods", pod("train", 8, nodeName="a", **placed("vision")))
    eventually(lambda: driver._gpu_pods("a"), "the pod on its node")
    assert driver.scale("h100", 3, ("d",), FIRST, NOW) == Done()
    assert claims(new_kube) == {"a", "b", "c"}
    karpenter(new_kube, {"a"})
    assert claims(new_kube) == {"a", "b", "c"}
    assert driver.scale("h100", 3, ("d",), FIRST, NOW) == Done(), "once more, after a crash"
    assert claims(new_kube) == {"a", "b", "c"}


def test_a_node_that_is_leased_is_never_removed_by_name(new_kube: Plane, driver: KubernetesCluster) -> None:
    """Whatever was decided before its lease."""
    new_kube.api.create("/api/v1/namespaces/vision/pods", pod("train", 8, nodeName="a", **placed("vision")))
    eventually(lambda: driver._gpu_pods("a"), "the pod on its node")
    answer = driver.scale("h100", 1, ("a",), FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "NodeHeld"
    assert claims(new_kube) == {"a", "b"}
    assert new_kube.api.get(f"{POOLS}/h100")["spec"]["replicas"] == 2


def test_a_lease_of_a_newer_controller_keeps_a_node_that_is_about_to_go(
    new_kube: Plane, driver: KubernetesCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes between our stamp and the deletion, which the server then refuses."""
    new_kube.api.create("/api/v1/namespaces/vision/pods", pod("train", 8, nodeName="a", **placed("vision")))
    eventually(lambda: driver._gpu_pods("a"), "the pod on its node")
    stamped = driver._scaling._stamped
    leased: list[Answer] = []

    def leased_then(*asked: Any) -> Any:
        found = stamped(*asked)
        leased.append(driver.add("b", MORE, replace(FIRST, term=FIRST.term + 1), NOW))
        return found

    monkeypatch.setattr(driver._scaling, "_stamped", leased_then)
    assert isinstance(driver.scale("h100", 1, ("b",), FIRST, NOW), Refused)
    assert leased == [Done()]
    assert claims(new_kube) == {"a", "b"}
    assert "deletionTimestamp" not in new_kube.api.get("/api/v1/nodes/b")["metadata"]
