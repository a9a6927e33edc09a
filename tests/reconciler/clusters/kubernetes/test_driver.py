"""What is Kubernetes' own about handing nodes over: A12, C3, C6, D7, D12, F9, H13, B3. On the real API server."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.clock import SystemClock, steady_s
from reconciler.clusters.kubernetes.driver import Home, KubernetesCluster
from reconciler.clusters.kubernetes.names import LEASE as LEASE_MARK
from reconciler.clusters.kubernetes.names import SLICE
from reconciler.model.cluster_port import Busy, Done, LeaseRef, Refused, SliceTerms, Stamp
from schemas.documents.cluster import Admission, ClusterSpec
from tests.reconciler.clusters.rig import caught_up, placed, stateful
from tests.support.kube import await_new_nodes, gpu_node
from tests.support.kubelet import Kubelets

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
STAMP = Stamp(1, 1)
LEASE = LeaseRef("gpr-1", "vision/train", "vision", NOW + 60 * MINUTE)
STRANGE = {"key": "example.com/broken", "value": "fan", "effect": "PreferNoSchedule"}


def spec(*nodes: str, **more: object) -> ClusterSpec:
    """One pool of these nodes."""
    pool = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": nodes}
    made = ClusterSpec.model_validate({"driver": "kubernetes", "mode": "manage", "pools": (pool,)})
    return made.model_copy(update={"admission": Admission(mode="none"), **more})


def offered(namespace: str):
    """A namespace that the cluster's admin lets a slice of the default project have."""
    return {"metadata": {"name": namespace, "annotations": {"egs.dev/adopt": "default"}}}


class Place:
    """Three GPU nodes, drivers opened on them, and time."""

    def __init__(self, kube):
        self.kube, self.api, self.kubelets = kube, kube.api, Kubelets(kube)
        self.opened: list[KubernetesCluster] = []
        for name in ("a", "b", "c"):
            self.api.create("/api/v1/nodes", gpu_node(name))
        await_new_nodes(self.api)

    def open(self, given: ClusterSpec, project: str = "default") -> KubernetesCluster:
        self.opened.append(KubernetesCluster("east", given, self.kube.connect(), Home(project)))
        return self.opened[-1]

    def settle(self, now: datetime = NOW) -> None:
        self.kubelets.settle(now, lambda: caught_up(self.kube, self.opened))

    def submit(self, name: str, gpus: int, namespace: str = "vision", **where: object) -> None:
        body = stateful(name, namespace, gpus, **where)
        self.api.create(f"/apis/apps/v1/namespaces/{namespace}/statefulsets", body)
        self.settle()

    def node(self, name: str):
        return self.api.get(f"/api/v1/nodes/{name}")


@pytest.fixture
def place(kube):
    made = Place(kube)
    yield made
    for driver in made.opened:
        driver.close()


@pytest.fixture
def serving(place):
    """A driver of nodes a and b; a serves slice vision, whose pod runs there."""
    driver = place.open(spec("a", "b"))
    assert driver.ensure_slice(SliceTerms("vision", ("vision",)), STAMP, NOW) == Done()
    assert driver.ensure_fleet(STAMP, NOW) == Done()
    assert driver.add("a", LEASE, STAMP, NOW) == Done()
    place.submit("train", 8, **placed("vision"))
    return driver


def differences(driver):
    """By what they are of, and how."""
    return {(d.object, d.found) for d in driver.differences((SliceTerms("vision", ("vision",)),), NOW)}


def test_managed_nodes_bear_our_taint_also_when_free_and_others_bear_nothing(place, serving):
    """A12: a GPU pod without a slice lands on the node that is not ours."""
    assert [t for n in ("a", "b") for t in place.node(n)["spec"]["taints"]] == [
        {"key": SLICE, "value": "vision", "effect": "NoSchedule"},
        {"key": SLICE, "effect": "NoSchedule"},
    ]
    assert "taints" not in place.node("c")["spec"]
    place.submit("anybody", 1, namespace="default")
    assert place.api.get("/api/v1/namespaces/default/pods/anybody-0")["spec"]["nodeName"] == "c"


def test_what_others_wrote_on_a_node_stays_from_the_first_mark_to_the_last(place):
    """Taints are a list that is written whole; theirs must not be lost by that."""
    place.api.merge("/api/v1/nodes/a", {"spec": {"taints": [STRANGE]}, "metadata": {"labels": {"rack": "7"}}})
    driver = place.open(spec("a"))
    driver.ensure_fleet(STAMP, NOW)
    driver.add("a", LEASE, STAMP, NOW)
    assert STRANGE in place.node("a")["spec"]["taints"]
    driver.remove("a", LEASE.uid, STAMP, NOW)
    left = place.open(spec("b"))
    place.settle()
    assert ("Node a", "extra") in differences(left)
    left.ensure_fleet(STAMP, NOW)
    after = place.node("a")
    assert after["spec"]["taints"] == [STRANGE]
    assert after["metadata"]["labels"]["rack"] == "7"
    assert not [k for k in after["metadata"].get("annotations", {}) if k.startswith("egs.")]


def test_a_mark_that_somebody_took_away_is_a_difference_and_comes_back(place, serving):
    """H13: the lease's annotation says what the rest should be."""
    place.api.merge("/api/v1/nodes/a", {"metadata": {"labels": {SLICE: None}}, "spec": {"taints": [STRANGE]}})
    place.settle()
    assert differences(serving) == {("Node a", "changed")}
    assert serving.ensure_fleet(STAMP, NOW) == Done()
    found = place.node("a")
    assert found["metadata"]["labels"][SLICE] == "vision"
    assert [t["key"] for t in found["spec"]["taints"]] == [STRANGE["key"], SLICE]
    assert differences(serving) == set()


def test_a_pod_that_slipped_in_beside_our_taint_is_asked_to_leave(place, serving):
    """C6: with notice, and only when it stays; a pod of nobody's slice is left to people."""
    for namespace in ("vision", "default"):
        place.submit("sneaky", 1, namespace, nodeName="b", **placed("vision"))
    assert serving.observe(NOW).nodes["b"].foreign == ("default/sneaky-0", "vision/sneaky-0")
    assert differences(serving) == set()
    later = serving.differences((SliceTerms("vision", ("vision",)),), NOW + MINUTE)
    assert {(d.object, d.found) for d in later} == {("Pod vision/sneaky-0", "extra")}
    serving.ensure_fleet(STAMP, NOW + MINUTE)
    asked = place.api.get("/api/v1/namespaces/vision/pods/sneaky-0")["metadata"]
    assert asked["deletionGracePeriodSeconds"] == 60
    assert "deletionTimestamp" not in place.api.get("/api/v1/namespaces/default/pods/sneaky-0")["metadata"]


def test_a_job_survives_that_its_nodes_lease_was_taken_off(place, serving):
    """H13: the repair of drift must not do what the drift did not."""
    annotations = {"metadata": {"annotations": {LEASE_MARK: None}}}
    place.api.merge("/api/v1/nodes/a", annotations)
    place.settle()
    assert serving.observe(NOW).nodes["a"].lease is None
    serving.ensure_fleet(STAMP, NOW)
    assert serving.add("a", LEASE, STAMP, NOW) == Done()
    serving.ensure_fleet(STAMP, NOW + 2 * MINUTE)
    assert "deletionTimestamp" not in place.api.get("/api/v1/namespaces/vision/pods/train-0")["metadata"]


def test_pods_of_an_adopted_namespace_run_on(place):
    """A12: their node is occupied until they end by themselves."""
    place.api.create("/api/v1/namespaces", offered("vision"))
    place.submit("before", 8, nodeName="a")
    driver = place.open(spec("a"))
    assert driver.ensure_slice(SliceTerms("vision", ("vision",)), STAMP, NOW) == Done()
    for minutes in (0, 2, 4):
        driver.ensure_fleet(STAMP, NOW + minutes * MINUTE)
    assert driver.observe(NOW).nodes["a"].foreign == ("vision/before-0",)
    assert "deletionTimestamp" not in place.api.get("/api/v1/namespaces/vision/pods/before-0")["metadata"]


def test_a_node_in_use_by_others_is_not_handed_over(place, serving):
    """Brownfield: nodes with foreign GPU pods are not free."""
    place.submit("theirs", 1, "default", nodeName="b")
    answer = serving.add("b", LEASE, STAMP, NOW)
    assert isinstance(answer, Refused)
    assert (answer.reason, "default/theirs-0" in answer.message) == ("NodeInUse", True)


def test_a_budget_makes_a_notice_busy_and_is_asked_again(place, serving):
    """The pod is not told yet, so the node does not count as draining."""
    selector = {"matchLabels": {"app": "train"}}
    path = f"/apis/{serving._begun().features.disruption_budgets}/namespaces/vision/poddisruptionbudgets"
    place.api.create(path, {"metadata": {"name": "keep"}, "spec": {"minAvailable": 1, "selector": selector}})
    answer = serving.evict("a", LEASE.uid, NOW + MINUTE, STAMP, NOW)
    assert isinstance(answer, Busy)
    assert "vision/train-0" in answer.message
    assert not serving.observe(NOW).nodes["a"].draining
    place.api.delete(f"{path}/keep")
    place.settle()
    assert serving.evict("a", LEASE.uid, NOW + MINUTE, STAMP, NOW + 5 * SECOND) == Done()


def test_two_projects_share_a_cluster_by_pools(place):
    """B3: neither sees, marks or takes what is the other's."""
    ours, theirs = place.open(spec("a"), "ours"), place.open(spec("a", "b"), "theirs")
    assert ours.ensure_fleet(STAMP, NOW) == Done()
    place.settle()
    assert list(theirs.observe(NOW).nodes) == ["b"]
    assert theirs.ensure_fleet(STAMP, NOW) == Done()
    refused = theirs.add("a", LEASE, Stamp(9, 9), NOW)
    assert isinstance(refused, Refused)
    assert refused.reason == "NodeOfOtherProject"
    assert theirs.add("b", LEASE, STAMP, NOW) == Done()
    place.settle()
    assert (list(ours.observe(NOW).nodes), list(theirs.observe(NOW).nodes)) == (["a"], ["b"])


def test_a_cluster_that_is_only_looked_at_is_not_written(place):
    """Mode observe: looking, comparing and asking for what would be different change nothing."""
    driver = place.open(spec("a", "b"))
    place.settle()
    view = driver.observe(NOW)
    assert [u.name for u in view.unmanaged] == ["c"]
    found = driver.differences((SliceTerms("vision", ("vision",)),), NOW)
    assert {d.object for d in found} >= {"Node a", "Node b", "Namespace vision"}
    nodes = [place.node(n) for n in ("a", "b", "c")]
    assert [
        (n["spec"], [k for k in n["metadata"].get("labels", {}) if k.startswith("egs.")]) for n in nodes
    ] == [({}, [])] * 3
    assert place.api.find("/api/v1/namespaces/vision") is None


def test_an_upgraded_api_server_is_asked_again_what_it_can_do(place, serving):
    """Not at once: replicas of one that is being upgraded answer now so, now so."""
    serving.observe(NOW)
    known = serving._parts
    serving._parts = replace(known, features=replace(known.features, version="v1.2.3", eviction="policy/v0"))
    serving.observe(NOW + 9 * MINUTE)
    assert serving._parts.features.eviction == "policy/v0"
    serving.observe(NOW + 10 * MINUTE)
    assert serving._parts.features == known.features
    assert serving.observe(NOW + 11 * MINUTE).nodes["a"].lease == LEASE


def test_a_look_brings_the_clock_of_the_api_server(place):
    heard = place.open(spec("a")).observe(NOW).clock
    assert heard is not None
    assert abs(heard.at(steady_s()) - SystemClock().now()) < MINUTE
