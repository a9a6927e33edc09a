"""NVSentinel's DrainRequests on a real API server: what is answered, and what is left alone (H14)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.clusters.kubernetes.rbac import DRAIN_RULES, RULES
from reconciler.model.cluster_port import Busy, Done, Refused
from schemas.documents.cluster import ClusterSpec
from schemas.documents.remediation import Remediation
from tests.reconciler.clusters.kubernetes.tenants import as_user, pod
from tests.reconciler.clusters.kubernetes.test_slices_rights import CONTROLLER, granted, may
from tests.reconciler.clusters.rig import FIRST, KUBERNETES_SPEC, NOW
from tests.support import nvsentinel
from tests.support.kube import Plane, eventually, gpu_node

A = "h100-1"
SPEC: ClusterSpec = KUBERNETES_SPEC.model_copy(update={"remediation": Remediation(nvsentinel=True)})
PODS = "/api/v1/namespaces/nvsentinel/pods"


@pytest.fixture
def driver(new_kube: Plane) -> Iterator[KubernetesCluster]:
    """Of a cluster with NVSentinel, two nodes of ours and another one."""
    nvsentinel.served(new_kube.api)
    for name in (A, "h100-2", "other-1"):
        new_kube.api.create("/api/v1/nodes", gpu_node(name, 8, "NVIDIA-H100-80GB"))
    found = KubernetesCluster("east", SPEC, new_kube.connect())
    yield found
    found.close()


def test_the_condition_is_set_beside_the_others(new_kube: Plane, driver: KubernetesCluster) -> None:
    nvsentinel.ask(new_kube.api, A, checkName="GpuXid", entitiesImpacted=[{"type": "GPU", "value": "3"}])
    nvsentinel.ask(new_kube.api, A, "event-2")
    other = {
        "type": "DrainDeferred",
        "status": "False",
        "reason": "Now",
        "message": "",
        "lastTransitionTime": "2026-11-21T07:00:00Z",
    }
    new_kube.api.merge(f"{nvsentinel.HOME}/event-2/status", {"status": {"conditions": [other]}})
    node = driver.observe(NOW).nodes[A]
    assert node.drain == (
        "NVSentinel in nvsentinel/event-1 (COMPONENT_RESET), NVSentinel in nvsentinel/event-2 (COMPONENT_RESET)"
    )
    assert driver.drained(A, FIRST, NOW) == Done()
    for name in ("event-1", "event-2"):
        found = nvsentinel.conditions(new_kube.api, name)["DrainComplete"]
        assert (found["status"], found["reason"], found["lastTransitionTime"]) == (
            "True",
            "Drained",
            "2026-11-21T08:00:00Z",
        )
    assert nvsentinel.conditions(new_kube.api, "event-2")["DrainDeferred"] == other


def test_a_node_in_none_of_our_pools_is_neither_shown_nor_answered(
    new_kube: Plane, driver: KubernetesCluster
) -> None:
    """Others drain it: an answer of ours would say that its pods are gone."""
    nvsentinel.ask(new_kube.api, "other-1")
    assert "other-1" not in driver.observe(NOW).nodes
    answer = driver.drained("other-1", FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "NodeUnmanaged"
    assert nvsentinel.conditions(new_kube.api) == {}


def test_it_is_answered_when_the_listed_pods_are_gone(new_kube: Plane, driver: KubernetesCluster) -> None:
    """Its node drainer evicts none of them itself; pods of other nodes and names stay."""
    api = new_kube.api
    eventually(lambda: api.find("/api/v1/namespaces/nvsentinel/serviceaccounts/default"), "an account")
    for name, node in (("listed", A), ("unlisted", A), ("elsewhere", "h100-2")):
        api.create(PODS, pod(name, nodeName=node))
    nvsentinel.ask(api, A, podsToDrain={"nvsentinel": ["listed", "elsewhere", "gone-already"]})
    driver.observe(NOW)
    eventually(lambda: len(driver._pods.items()) == 3, "the pods")
    answer = driver.drained(A, FIRST, NOW)
    assert isinstance(answer, Busy)
    assert "1 pods must leave" in answer.message
    assert "deletionTimestamp" in api.get(f"{PODS}/listed")["metadata"]
    assert all(
        "deletionTimestamp" not in api.get(f"{PODS}/{name}")["metadata"] for name in ("unlisted", "elsewhere")
    )
    assert nvsentinel.conditions(api) == {}
    api.delete(f"{PODS}/listed", grace_s=0)
    eventually(lambda: len(driver._pods.items()) == 2, "its end")
    assert driver.drained(A, FIRST, NOW) == Done()
    assert nvsentinel.conditions(api)["DrainComplete"]["status"] == "True"


def test_a_request_that_ends_frees_the_node(new_kube: Plane, driver: KubernetesCluster) -> None:
    nvsentinel.ask(new_kube.api, A)
    assert driver.observe(NOW).nodes[A].drain_open
    new_kube.api.delete(f"{nvsentinel.HOME}/event-1")
    assert not driver.observe(NOW).nodes[A].drain


def test_a_cluster_without_nvsentinel_is_driven_as_ever(new_kube: Plane) -> None:
    new_kube.api.create("/api/v1/nodes", gpu_node(A, 8, "NVIDIA-H100-80GB"))
    driver = KubernetesCluster("east", SPEC, new_kube.connect())
    try:
        assert not driver.observe(NOW).nodes[A].drain
        assert driver.drained(A, FIRST, NOW) == Done()
    finally:
        driver.close()


@pytest.mark.parametrize("rules", [(), DRAIN_RULES], ids=["without the rules", "with them"])
def test_the_rules_for_drains_are_needed_and_enough(new_kube: Plane, rules: tuple[object, ...]) -> None:
    """Without them nothing is seen, and the cluster is driven all the same."""
    api = new_kube.api
    nvsentinel.served(api)
    api.create("/api/v1/nodes", gpu_node(A, 8, "NVIDIA-H100-80GB"))
    head = {"apiVersion": "v1", "kind": "Namespace"}
    api.create("/api/v1/namespaces", {**head, "metadata": {"name": "egs-system"}})
    granted(new_kube, [*RULES, *(DRAIN_RULES if rules else ())])
    eventually(lambda: may(new_kube, "watch", "namespaces"), "the rights")
    nvsentinel.ask(api, A)
    driver = KubernetesCluster("east", SPEC, as_user(new_kube, CONTROLLER))
    try:
        assert driver.observe(NOW).nodes[A].drain_open == bool(rules)
        assert driver.drained(A, FIRST, NOW) == Done()
        assert bool(nvsentinel.conditions(api)) == bool(rules)
    finally:
        driver.close()
