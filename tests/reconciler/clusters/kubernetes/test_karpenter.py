"""A pool that Karpenter makes, whose real definition is served, never shrinks under a lease (F13)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.model.cluster_port import Done, LeaseRef, Refused, SliceTerms
from schemas.documents.cluster import Admission, ClusterSpec
from tests.reconciler.clusters.kubernetes.living import MINUTE
from tests.reconciler.clusters.kubernetes.tenants import pod
from tests.reconciler.clusters.rig import FIRST, NOW, placed
from tests.support.crds import KARPENTER, install_crds
from tests.support.kube import Plane, eventually, gpu_node

POOLS = "/apis/karpenter.sh/v1/nodepools"
VISION = LeaseRef("gpr-00000001-aaaa", "vision/train", "vision", NOW + 60 * MINUTE)
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


@pytest.fixture
def driver(new_kube: Plane) -> Iterator[KubernetesCluster]:
    """Of a NodePool of two, one of whose nodes is leased to a slice."""
    api = new_kube.api
    install_crds(api, KARPENTER, "nodepools")
    api.create(POOLS, NODEPOOL)
    for name in ("a", "b"):
        api.create("/api/v1/nodes", gpu_node(name, 8, pool="h100"))
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
