"""Pods of slices get their nodes and no others, on a real API server with the real scheduler (C3, C6, F6, F7, J1).

Here the API server of 1.20 asks our webhook; but what the webhook gives a pod is given by the test itself. Debian's
build of 1.20 (json-iterator of 2020 with Go 1.19) falls, whole, when any mutating webhook answers with a patch: it
encodes the patch for its audit log by a map iteration that newer Go does not have.

On the newer control plane (`EGS_TEST_KUBE_NEW`) the same pods are judged by the API server's own policies, and our
webhook's patches are taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.clusters.kubernetes.admission.webhook import PATHS, mutated
from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.api.api_features import discover
from reconciler.clusters.kubernetes.names import SLICE
from reconciler.clusters.kubernetes.nodes.node_inventory import read_pod
from reconciler.model.cluster_port import Done, Stamp
from schemas.documents.cluster import Admission
from tests.reconciler.clusters.kubernetes.judged import (
    CASES,
    CHANGES,
    OURS,
    Case,
    Change,
    gpu_pod,
    pod,
)
from tests.reconciler.clusters.kubernetes.judging import (
    NOW,
    PODS,
    STAMP,
    Judged,
    create,
    given_nodes,
    judged,
    verdict,
    without_patches,
)
from tests.support.kube import ON_NEW, ON_OLD, eventually, gpu_node


@pytest.fixture(scope="module")
def no_patches() -> Iterator[None]:
    """A webhook that changes nothing."""
    with without_patches():
        yield


@pytest.fixture
def webhook_patches(monkeypatch) -> None:
    """A webhook as it is, whatever the tests on 1.20 made of it."""
    monkeypatch.setitem(PATHS, "/mutate", mutated)


@pytest.fixture(scope="module")
def module_plane(plane, no_patches) -> Iterator[Judged]:
    """1.20, for all tests of this page that only ask."""
    plane.wipe()
    with judged(plane.api, discover(plane.api), Admission()) as found:
        eventually(lambda: not verdict(plane.api, pod()), "a service account for pods")
        yield found


@pytest.fixture(scope="module")
def module_new(new_plane) -> Iterator[Judged]:
    """1.36, likewise."""
    new_plane.wipe()
    api = new_plane.api
    with judged(api, discover(api), Admission(), patches=True) as found:
        yield found


LATER = [
    change
    for change in CHANGES
    if "nodeName" not in change.values[0].before["spec"]
    and "ephemeralContainers" not in change.values[0].before["spec"]
    and "serviceAccountName" not in change.values[0].before["spec"]
]
"""Without pods that only were there before the namespace became a slice's: a server would not make them."""
SERVERS = [
    pytest.param("module_plane", id="1.20", marks=ON_OLD),
    pytest.param("module_new", id="1.36", marks=ON_NEW),
]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("case", CASES)
def test_a_new_pod(case: Case, server: str, request: pytest.FixtureRequest) -> None:
    """The server says what the rules say; what they miss in a GPU pod, it has been given."""
    told = request.getfixturevalue(server).verdict(case.pod)
    refused = [reason for reason in case.refused if reason != "NotPlaced"]
    # Policies tell the first rule that is broken, our webhook every one.
    told_at_least = refused if server == "module_plane" else refused[:1]
    assert bool(told) == bool(refused), told
    assert all(f"{reason}: " in told for reason in told_at_least), told


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("case", LATER)
def test_a_changed_pod(case: Change, server: str, request: pytest.FixtureRequest) -> None:
    """Only what a server lets people change: tolerations that are added, and containers for debugging."""
    api = request.getfixturevalue(server).api
    debugging = case.after["spec"].get("ephemeralContainers")
    if debugging and not discover(api).ephemeral_containers:
        pytest.skip("this server has no containers for debugging")
    made = api.create(PODS, given_nodes(case.before))
    try:
        more = case.after["spec"].get("tolerations", [])
        if debugging:
            path, patch = (
                f"{PODS}/p/ephemeralcontainers",
                {"op": "add", "path": "/spec/ephemeralContainers", "value": debugging},
            )
        else:
            given = [*made["spec"]["tolerations"], *more]
            path, patch = f"{PODS}/p", {"op": "add", "path": "/spec/tolerations", "value": given}
        told = ""
        try:
            api.patch(path, [patch])
        except Rejected as no:
            told = str(no)
        assert bool(told) == bool(case.refused), told
        assert all(f"{reason}: " in told for reason in case.refused), told
    finally:
        api.delete(f"{PODS}/p", grace_s=0)


@pytest.mark.parametrize("server", SERVERS)
def test_what_the_user_wrote_stays(server: str, request: pytest.FixtureRequest) -> None:
    """F6: ours comes beside it."""
    other = {"key": "spot", "operator": "Exists"}
    item = gpu_pod(nodeSelector={"zone": "a"}, tolerations=[other])
    spec = request.getfixturevalue(server).trial(item)["spec"]
    assert spec["nodeSelector"] == {"zone": "a", SLICE: "vision"}
    assert [t for t in spec["tolerations"] if not t["key"].startswith("node.kubernetes.io")] == [other, OURS]


@pytest.mark.parametrize("server", SERVERS)
def test_a_cpu_pod_is_never_touched(server: str, request: pytest.FixtureRequest) -> None:
    """C3."""
    spec = request.getfixturevalue(server).trial(pod())["spec"]
    assert "nodeSelector" not in spec
    assert SLICE not in {t.get("key") for t in spec.get("tolerations", [])}


def test_a_pod_that_claims_devices_is_given_its_slices_nodes(module_new: Judged) -> None:
    """Dynamic resource allocation: 1.20 has none."""
    made = module_new.trial(pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]))
    assert made["spec"]["nodeSelector"] == {SLICE: "vision"}
    assert OURS in made["spec"]["tolerations"]


@pytest.mark.parametrize("server", SERVERS)
def test_what_is_as_it_should_be_is_not_written(server: str, request: pytest.FixtureRequest) -> None:
    """No server's defaults look like a difference."""
    found = request.getfixturevalue(server)
    calls = found.api.calls
    assert found.placement.differences(NOW) == ()
    assert found.placement.ensure(STAMP, NOW) == Done()
    assert found.placement.ensure(Stamp(3, 8), NOW) == Done()
    assert found.api.calls == calls


# --- with the real scheduler ---


def managed(name: str, slice_: str = "") -> Json:
    """A GPU node of ours, free or serving a slice."""
    node = gpu_node(name)
    node["spec"] = {"taints": [{"key": SLICE, "value": slice_, "effect": "NoSchedule"}]}
    if slice_:
        node["metadata"]["labels"][SLICE] = slice_
    return node


def cpu_node(name: str) -> Json:
    """One without GPUs."""
    node = gpu_node(name)
    node["metadata"]["labels"] = {}
    for side in ("capacity", "allocatable"):
        node["status"][side].pop("nvidia.com/gpu")
    return node


def node_of(api: Api, name: str) -> str | None:
    """Where a pod is bound."""
    found: str | None = api.get(f"{PODS}/{name}")["spec"].get("nodeName")
    return found


def waits(api: Api, name: str) -> bool:
    """The scheduler looked at it and found no node."""
    conditions = api.get(f"{PODS}/{name}")["status"].get("conditions") or ()
    return any(c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions)


def hand_over(api: Api, name: str, slice_: str) -> None:
    """As the driver does it at a start."""
    taints = api.get(f"/api/v1/nodes/{name}")["spec"]["taints"]
    index = next(i for i, taint in enumerate(taints) if taint["key"] == SLICE)
    api.patch(
        f"/api/v1/nodes/{name}",
        [
            {"op": "test", "path": f"/spec/taints/{index}", "value": taints[index]},
            {"op": "add", "path": f"/spec/taints/{index}/value", "value": slice_},
            {"op": "add", "path": f"/metadata/labels/{SLICE.replace('/', '~1')}", "value": slice_},
        ],
    )


@pytest.fixture
def fresh(kube, no_patches) -> Iterator[Judged]:
    """1.20, for one test, with nodes of all kinds."""
    with judged(kube.api, discover(kube.api), Admission()) as found:
        for node in (
            managed("free-1"),
            managed("audio-1", "audio"),
            gpu_node("unmanaged-1"),
            cpu_node("cpu-1"),
        ):
            kube.api.create("/api/v1/nodes", node)
        eventually(lambda: not verdict(kube.api, pod()), "a service account for pods")
        yield found


def test_a_gpu_pod_waits_for_its_slices_nodes_and_runs_by_itself_when_there_are(fresh: Judged) -> None:
    """F7, J1: neither a free node, nor another slice's, nor one that nobody manages takes it."""
    api = fresh.api
    api.create(PODS, given_nodes(gpu_pod("train")))
    api.create(PODS, pod(name="web"))
    assert eventually(lambda: node_of(api, "web"), "a node for the CPU pod") in {"cpu-1", "unmanaged-1"}
    eventually(lambda: waits(api, "train"), "the GPU pod waits")
    hand_over(api, "free-1", "vision")
    assert eventually(lambda: node_of(api, "train"), "a node for the GPU pod") == "free-1"


def test_while_the_webhook_is_down_slices_pods_are_refused(fresh: Judged) -> None:
    """The default: what nobody judged does not get in."""
    fresh.service.stop()
    assert "failed calling webhook" in verdict(fresh.api, gpu_pod())
    eventually(
        lambda: create(fresh.api, "/api/v1/namespaces", {"metadata": {"name": "elsewhere"}}), "a namespace"
    )
    base = "/api/v1/namespaces/elsewhere/pods"
    eventually(lambda: create(fresh.api, base, pod()), "a pod of no slice, which is nobody's business")


def test_a_pod_that_was_let_in_unjudged_is_repaired(kube, no_patches) -> None:
    """The other choice: it comes in, waits, and is given its toleration as soon as somebody looks."""
    lenient = Admission.model_validate({"failurePolicy": "Ignore"})
    with judged(kube.api, discover(kube.api), lenient) as found:
        found.service.stop()
        kube.api.create("/api/v1/nodes", managed("vision-1", "vision"))
        eventually(lambda: create(kube.api, PODS, gpu_pod("train")), "a pod")
        eventually(lambda: waits(kube.api, "train"), "it waits")
        read = {"p": read_pod(kube.api.get(f"{PODS}/train"))}
        found.placement.repair(read, {"vision": ("vision-train",)})
        assert eventually(lambda: node_of(kube.api, "train"), "a node") == "vision-1"
        found.placement.repair(read, {"vision": ("vision-train",)})  # what has changed since is left alone


def test_a_cpu_pod_does_not_depend_on_the_webhook_where_the_server_can_tell(
    new_kube, webhook_patches
) -> None:
    """C3: webhooks with conditions, 1.30 on."""
    api = new_kube.api
    with judged(api, discover(api), Admission(mode="webhook"), patches=True) as found:
        found.service.stop()
        for item in (pod(hostPID=True), gpu_pod()):
            # Policies of an earlier test may still hold for a moment.
            eventually(
                lambda item=item: "failed calling webhook" in verdict(api, item), "that nobody can judge it"
            )
        assert verdict(api, pod()) == ""
