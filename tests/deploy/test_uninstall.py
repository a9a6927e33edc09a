"""`egs uninstall` on a real API server: after it every object is as it was before `egs install`. A13."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.cli.answers.installation import Own, take_out
from reconciler.clock import SystemClock
from reconciler.clusters.kubernetes.admission import webhook_certificates
from reconciler.clusters.kubernetes.admission.object_authors import author_webhooks
from reconciler.clusters.kubernetes.api.api_client import Api
from reconciler.clusters.kubernetes.api.api_features import ADMISSION
from reconciler.clusters.kubernetes.driver import Home, KubernetesCluster
from reconciler.clusters.kubernetes.names import MIG_BEFORE, MIG_CONFIG
from reconciler.deploying import uninstall as uninstalling
from reconciler.deploying.install import budgets_of, install
from reconciler.deploying.install_values import read
from reconciler.deploying.part_names import Place
from reconciler.deploying.uninstall import look, uninstall
from reconciler.model.cluster_port import Done, LeaseRef, SliceTerms, Stamp
from reconciler.sources.command_errors import WrongUse
from schemas.documents.cluster import Admission, ClusterSpec
from schemas.errors import UserError
from tests.deploy.cases import CASES, Json
from tests.deploy.helm import CHART, NAMESPACE, Helm
from tests.deploy.snapshot import everything
from tests.support.kube import Plane, await_new_nodes, cpu_node, eventually, gpu_node

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
STAMP = Stamp(3, 7)
LEASE = LeaseRef("uid-1", "vision/train", "vision", NOW + timedelta(hours=1))
NOWHERE = {"nodeSelector": {"pool": "system"}}
"""No kubelet is here to end pods that are on a node."""
GIVEN = {
    **CASES["a controller with all that can be said"],
    **{part: {"enabled": True, **NOWHERE} for part in ("door", "admission", "agents")},
}
FULL = read(GIVEN)


def spec(*nodes: str) -> ClusterSpec:
    pool = {
        "name": "h100",
        "gpuShape": "H100-80GB",
        "gpusPerNode": 8,
        "memoryPerGpu": 80,
        "nodes": list(nodes),
    }
    shapes = [{"product": "NVIDIA-H100-80GB-HBM3", "gpuShape": "H100-80GB", "memoryPerGpu": 80}]
    return ClusterSpec.model_validate_json(
        json.dumps({"driver": "kubernetes", "mode": "manage", "pools": [pool], "shapes": shapes})
    ).model_copy(update={"admission": Admission(mode="webhook")})


def has_all_pods(api: Api) -> bool:
    """The controllers have made what an installation asks for; no kubelet runs it."""
    found = list(api.items(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"))
    return all(d["status"].get("replicas", 0) == d["spec"]["replicas"] for d in found)


@dataclass
class World:
    """A cluster in use before we come, and what we then do in it."""

    kube: Plane
    place: Place

    def run(self, project: str, slice_: str, *nodes: str) -> None:
        """A controller of that project has made its marks, its slice, and its webhooks."""
        cluster = KubernetesCluster("east", spec(*nodes), self.kube.connect(), Home(project))
        terms = SliceTerms(slice_, (f"{slice_}-new", f"{slice_}-old"), ("bo@example.com",), 16)
        try:
            webhook_certificates.shared(
                self.kube.api, self.place.namespace, ["egs-admission"], SystemClock().now()
            )
            eventually(lambda: cluster.ensure_fleet(STAMP, NOW) == Done(), "the fleet to be ready")
            eventually(lambda: cluster.ensure_slice(terms, STAMP, NOW) == Done(), "the slice to be made")
        finally:
            cluster.close()

    def offer(self, namespace: str, project: str) -> None:
        """The cluster's admin lets that project's slices have it."""
        notes = {"egs.dev/adopt": project}
        self.kube.api.merge(f"/api/v1/namespaces/{namespace}", {"metadata": {"annotations": notes}})

    def lend(self, project: str, node: str) -> None:
        """A request has a node, and another node is taken out for its health."""
        cluster = KubernetesCluster("east", spec("gpu-1", "gpu-2"), self.kube.connect(), Home(project))
        try:
            assert cluster.add(node, LEASE, STAMP, NOW) == Done()
            assert cluster.isolate("gpu-2", "XidCritical", STAMP, NOW) == Done()
        finally:
            cluster.close()

    def uninstall(self, *projects: str, force: bool = False) -> list[str]:
        return list(uninstall(self.kube.api, self.place, projects, SystemClock(), force=force))


@pytest.fixture
def world(kube: Plane, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two GPU nodes that bear other people's marks, and namespaces in which people work."""
    monkeypatch.setattr(uninstalling, "QUIET_S", 0.5)  # nobody else drives this cluster
    theirs = gpu_node("gpu-1")
    theirs["spec"] = {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]}
    theirs["metadata"]["annotations"] = {"example.com/rack": "r7"}
    theirs["metadata"]["labels"][MIG_CONFIG] = "all-disabled"
    cordoned = gpu_node("gpu-3")
    cordoned["spec"] = {"unschedulable": True}
    for node in (theirs, gpu_node("gpu-2"), cordoned, cpu_node("cpu-1")):
        kube.api.create("/api/v1/nodes", node)
    for name, project in (("vision-old", "default"), ("nlp-old", "two")):
        meta = {"name": name, "annotations": {"egs.dev/adopt": project}}
        kube.api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        work = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "work"}}
        kube.api.create(f"/api/v1/namespaces/{name}/configmaps", work)
        eventually(
            lambda name=name: kube.api.find(f"/api/v1/namespaces/{name}/serviceaccounts/default"), name
        )  # type: ignore[misc]
    await_new_nodes(kube.api)
    return World(kube, Place("0.1.0", budgets=budgets_of(kube.api)))


def as_before(kube: Plane, before: dict[str, Json]) -> None:
    def moved() -> list[str]:
        return sorted(everything(kube.api).keys() ^ before.keys())

    eventually(lambda: not moved(), f"everything to be as before; {moved()}")
    now = everything(kube.api)
    assert {path: now[path] for path in now if now[path] != before[path]} == {}


def test_nothing_is_left_and_what_others_had_is_as_it_was(world: World) -> None:
    before = everything(world.kube.api)
    list(install(world.kube.api, FULL, world.place))
    world.kube.api.create(
        f"{ADMISSION}/mutatingwebhookconfigurations", author_webhooks({"url": "https://127.0.0.1:1"})
    )
    world.run("default", "vision", "gpu-1", "gpu-2", "gpu-3")
    assert look(world.kube.api).projects == ("default",)
    done = world.uninstall("default")
    assert {
        "removed slice vision",
        "removed our marks from node gpu-3",
        "removed namespace egs-system",
    } <= set(done)
    as_before(world.kube, before)
    assert world.uninstall("default") == []


def test_while_requests_hold_nodes_it_is_refused_and_nothing_is_touched(world: World) -> None:
    list(install(world.kube.api, FULL, world.place))
    world.run("default", "vision", "gpu-1", "gpu-2")
    world.lend("default", "gpu-1")
    before = everything(world.kube.api)
    with pytest.raises(UserError, match="vision/train holds nodes") as refused:
        world.uninstall("default")
    assert refused.value.reason == "NodesHeld"
    assert everything(world.kube.api) == before


def test_by_force_nodes_come_back_as_they_were(world: World) -> None:
    before = everything(world.kube.api)
    list(install(world.kube.api, FULL, world.place))
    world.run("default", "vision", "gpu-1", "gpu-2")
    world.lend("default", "gpu-1")
    cut = {"annotations": {MIG_BEFORE: "all-disabled"}, "labels": {MIG_CONFIG: "all-1g.10gb"}}
    world.kube.api.merge("/api/v1/nodes/gpu-1", {"metadata": cut})
    world.uninstall("default", force=True)
    as_before(world.kube, before)


def test_no_namespace_goes_while_a_controller_still_drives_the_cluster(world: World, monkeypatch) -> None:
    """It would put back what can be put back, and people's work cannot."""
    list(install(world.kube.api, FULL, world.place))
    world.run("default", "vision", "gpu-1")
    monkeypatch.setattr(uninstalling, "QUIET_S", 30.0)  # ended by what it meets
    elsewhere = KubernetesCluster("east", spec("gpu-1"), world.kube.connect(), Home("default"))
    monkeypatch.setattr(
        uninstalling.time, "sleep", lambda _: elsewhere.ensure_fleet(Stamp(2, 1), SystemClock().now())
    )
    with pytest.raises(UserError) as caught:
        list(uninstall(world.kube.api, world.place, ["default"], SystemClock()))
    elsewhere.close()
    assert caught.value.reason == "StillManaged"
    assert "deletionTimestamp" not in world.kube.api.get("/api/v1/namespaces/vision-new")["metadata"]


def test_another_project_keeps_all_that_is_its_own(world: World) -> None:
    list(install(world.kube.api, FULL, world.place))
    world.offer("vision-old", "one")
    world.run("one", "vision", "gpu-1")
    eventually(lambda: has_all_pods(world.kube.api), "the pods of all that was installed")
    between = everything(world.kube.api)
    world.run("two", "nlp", "gpu-2")
    world.uninstall("two")
    as_before(world.kube, between)


def test_which_project_is_meant_must_be_said_where_there_are_several(world: World) -> None:
    list(install(world.kube.api, FULL, world.place))
    world.offer("vision-old", "one")
    world.run("one", "vision", "gpu-1")
    world.run("two", "nlp", "gpu-2")
    with pytest.raises(WrongUse, match="one, two"):
        take_out((), "egs", Own(str(world.kube.kubeconfig)), is_sure=True, force=False)


def test_it_may_be_cut_off_anywhere_and_begun_again(world: World) -> None:
    before = everything(world.kube.api)
    list(install(world.kube.api, FULL, world.place))
    world.run("default", "vision", "gpu-1", "gpu-2")
    steps = 0
    while True:
        going = uninstall(world.kube.api, world.place, ("default",), SystemClock())
        if next(going, None) is None:
            break
        going.close()
        steps += 1
        assert steps < 100
    as_before(world.kube, before)


def test_helm_s_objects_are_stopped_and_left_for_helm(
    world: World, helm: Helm, capsys: pytest.CaptureFixture[str]
) -> None:
    api = world.kube.api
    api.create(
        "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    )
    eventually(lambda: api.find(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"), "the namespace")
    before = everything(api)
    where = ("-n", NAMESPACE, "--kubeconfig", str(world.kube.kubeconfig))
    helm.run("install", "egs", str(CHART), *where, "-f", helm.values(GIVEN))
    world.run("default", "vision", "gpu-1", "gpu-2")
    take_out((), "egs", Own(str(world.kube.kubeconfig)), is_sure=True, force=False)
    assert "helm uninstall -n egs-system egs" in capsys.readouterr().err
    stopped = api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/egs-controller")
    assert stopped["spec"]["replicas"] == 0
    helm.run("uninstall", "egs", *where)
    as_before(world.kube, before)
