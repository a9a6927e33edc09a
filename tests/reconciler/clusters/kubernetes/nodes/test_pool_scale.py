"""An elastic pool made by Cluster API, with its real definitions: Machines that leave are marked first (F13)."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.clusters.kubernetes.nodes.pool_scale import DELETE, MACHINE, NAMESPACE, Scaling, path_of
from reconciler.model.cluster_port import Done, Refused, Stamp
from schemas.documents.cluster import Admission, ClusterSpec
from schemas.documents.elastic import ScaleTarget
from tests.reconciler.clusters.rig import FIRST, NOW
from tests.support.crds import CLUSTER_API, install_crds
from tests.support.kube import Plane, gpu_node

GROUP = "cluster.x-k8s.io"
HERE = f"/apis/{GROUP}/v1beta2/namespaces/default"
TARGET = {
    "apiVersion": f"{GROUP}/v1beta2",
    "resource": "machinedeployments",
    "namespace": "default",
    "name": "h100",
}


def spec(**target: str) -> ClusterSpec:
    elastic = {"max": 4, "target": {**TARGET, **target}}
    pool: dict[str, Any] = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80}
    pool |= {"selector": {"pool": "h100"}, "elastic": elastic}
    return ClusterSpec.model_validate({"driver": "kubernetes", "pools": [pool]}, strict=False)


REFERENCE = {"apiGroup": "infrastructure.example.com", "kind": "ExampleMachine", "name": "h100"}
MACHINE_SPEC = {"clusterName": "east", "bootstrap": {"dataSecretName": "x"}, "infrastructureRef": REFERENCE}


@pytest.fixture
def made(new_kube: Plane) -> Plane:
    """A MachineDeployment of three, their Machines and nodes."""
    api = new_kube.api
    install_crds(api, CLUSTER_API, "machinedeployments", "machines")
    head = {"apiVersion": f"{GROUP}/v1beta2"}
    template = {"metadata": {"labels": {"pool": "h100"}}, "spec": MACHINE_SPEC}
    wanted = {
        "clusterName": "east",
        "replicas": 3,
        "selector": {"matchLabels": {"pool": "h100"}},
        "template": template,
    }
    body = {**head, "kind": "MachineDeployment", "metadata": {"name": "h100"}, "spec": wanted}
    api.create(f"{HERE}/machinedeployments", body)
    for name in ("a", "b", "c"):
        machine = {**head, "kind": "Machine", "metadata": {"name": f"m-{name}"}, "spec": MACHINE_SPEC}
        api.create(f"{HERE}/machines", machine)
        node = gpu_node(name, 8, "NVIDIA-H100-80GB")
        node["metadata"]["annotations"] = {MACHINE: f"m-{name}", NAMESPACE: "default"}
        api.create("/api/v1/nodes", node)
    return new_kube


def marked(plane: Plane) -> list[str]:
    items = plane.api.items(f"{HERE}/machines")
    return [m["metadata"]["name"] for m in items if DELETE in (m["metadata"].get("annotations") or {})]


def test_exactly_the_machines_that_leave_are_marked(made: Plane) -> None:
    scaling = Scaling(made.connect(), spec())
    assert scaling.sizes() == {"h100": 3}
    assert scaling.scale("h100", 2, ("b",), FIRST) == Done()
    assert scaling.sizes() == {"h100": 2}
    assert marked(made) == ["m-b"]


def test_a_node_that_is_kept_after_all_is_marked_no_more(made: Plane) -> None:
    """Else the next time its pool shrinks it would go first, whomever it serves (F13)."""
    scaling = Scaling(made.connect(), spec())
    scaling.scale("h100", 2, ("b",), FIRST)
    assert scaling.keep("b", FIRST) == Done()
    assert marked(made) == []
    assert scaling.keep("a", FIRST) == Done()
    assert scaling.keep("gone", FIRST) == Done()


def test_what_somebody_else_marked_stays_marked(made: Plane) -> None:
    made.api.merge(f"{HERE}/machines/m-b", {"metadata": {"annotations": {DELETE: "true"}}})
    assert Scaling(made.connect(), spec()).keep("b", FIRST) == Done()
    assert marked(made) == ["m-b"]


def test_an_older_controller_takes_no_mark_back(made: Plane) -> None:
    scaling = Scaling(made.connect(), spec())
    scaling.scale("h100", 2, ("b",), Stamp(2, 1))
    answer = scaling.keep("b", FIRST)
    assert isinstance(answer, Refused)
    assert answer.reason == "StaleStamp"
    assert marked(made) == ["m-b"]


def test_a_driver_that_restores_a_node_keeps_it(made: Plane) -> None:
    home = spec().model_copy(update={"admission": Admission(mode="none")})
    driver = KubernetesCluster("east", home, made.connect())
    try:
        driver.isolate("b", "LetGo", FIRST, NOW)
        driver.scale("h100", 2, ("b",), FIRST, NOW)
        assert marked(made) == ["m-b"]
        assert driver.restore("b", FIRST, NOW) == Done()
    finally:
        driver.close()
    assert marked(made) == []
    assert not made.api.get("/api/v1/nodes/b")["spec"].get("unschedulable")


def test_nothing_is_marked_while_a_pool_grows(made: Plane) -> None:
    assert Scaling(made.connect(), spec()).scale("h100", 4, ("b",), FIRST) == Done()
    assert marked(made) == []


def test_a_target_that_is_not_there_says_so(made: Plane) -> None:
    scaling = Scaling(made.connect(), spec(name="h200"))
    assert scaling.sizes() == {}
    answer = scaling.scale("h100", 4, (), FIRST)
    assert isinstance(answer, Refused)
    assert answer.reason == "TargetMissing"


def test_a_core_target_has_a_path_of_its_own() -> None:
    target = ScaleTarget(api_version="v1", resource="replicationcontrollers", namespace="x", name="y")
    assert path_of(target) == "/api/v1/namespaces/x/replicationcontrollers/y"
