"""What every cluster driver must do with pools that grow and shrink (F13): simulated, and a Deployment's scale."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest

from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.model.cluster_port import ClusterDriver, Done, LeaseRef, Refused, SliceTerms, Stamp
from schemas.documents.cluster import Admission, ClusterSpec
from tests.reconciler.clusters.rig import FIRST, NOW
from tests.support.kube import ON_OLD, Plane

POOL: dict[str, Any] = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80}
ELASTIC = {"min": 1, "max": 4, "scaleUp": "10m"}
TARGET = {"apiVersion": "apps/v1", "resource": "deployments", "namespace": "default", "name": "gpu-nodes"}
LATER = NOW + timedelta(minutes=10)
VISION = LeaseRef("gpr-00000001-aaaa", "vision/train", "vision", NOW + timedelta(hours=1))


def spec(driver: str, **elastic: object) -> ClusterSpec:
    pool = {**POOL, "elastic": {**ELASTIC, **elastic}}
    return ClusterSpec.model_validate({"driver": driver, "pools": [pool]}, strict=False)


class Rig(Protocol):
    driver: ClusterDriver

    def told(self) -> int:
        """How many nodes the provider is to have."""


class EmbeddedRig:
    def __init__(self, folder: Path) -> None:
        self._state = folder / "east.json"
        self.driver: ClusterDriver = EmbeddedCluster("east", spec("embedded"), self._state)

    def told(self) -> int:
        """As another process sees it."""
        other = EmbeddedCluster("east", spec("embedded"), self._state)
        return other.observe(NOW).sizes["h100"]


class KubernetesRig:
    def __init__(self, plane: Plane) -> None:
        self._api = plane.api
        labels = {"app": "gpu-nodes"}
        pod = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "x", "image": "example.com/x"}]},
        }
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "gpu-nodes", "namespace": "default"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
        }
        plane.api.create("/apis/apps/v1/namespaces/default/deployments", body)
        made = spec("kubernetes", target=TARGET)
        pools = tuple(p.model_copy(update={"selector": {"egs.dev/pool": "h100"}}) for p in made.pools)
        made = made.model_copy(update={"pools": pools, "admission": Admission(mode="none")})
        self.driver: ClusterDriver = KubernetesCluster("east", made, plane.connect())

    def told(self) -> int:
        path = "/apis/apps/v1/namespaces/default/deployments/gpu-nodes"
        return int(self._api.get(path)["spec"]["replicas"])


@pytest.fixture(params=["embedded", pytest.param("kubernetes", marks=ON_OLD)])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    made: Rig = (
        EmbeddedRig(tmp_path)
        if request.param == "embedded"
        else KubernetesRig(request.getfixturevalue("kube"))
    )
    yield made
    made.driver.close()


def test_a_pool_shows_what_it_was_told(rig: Rig) -> None:
    assert rig.driver.observe(NOW).sizes == {"h100": 1}
    assert rig.driver.scale("h100", 3, (), FIRST, NOW) == Done()
    assert rig.driver.observe(NOW).sizes == {"h100": 3}
    assert rig.told() == 3


def test_scaling_may_be_repeated(rig: Rig) -> None:
    for _ in range(2):
        assert rig.driver.scale("h100", 2, (), FIRST, NOW) == Done()
    assert rig.told() == 2


def test_a_pool_may_go_down_to_nothing(rig: Rig) -> None:
    assert rig.driver.scale("h100", 0, ("h100-1",), FIRST, NOW) == Done()
    assert rig.told() == 0


def test_an_older_controller_scales_nothing(rig: Rig) -> None:
    rig.driver.scale("h100", 2, (), Stamp(2, 1), NOW)
    answer = rig.driver.scale("h100", 4, (), FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "StaleStamp"
    assert rig.told() == 2


def test_an_older_controller_is_refused_also_where_nothing_was_to_be_done(rig: Rig) -> None:
    """The newer one said one node, which it had already."""
    rig.driver.scale("h100", 1, (), Stamp(2, 1), NOW)
    assert isinstance(rig.driver.scale("h100", 4, (), FIRST, NOW), Refused)


def test_a_pool_that_does_not_grow_is_refused(rig: Rig) -> None:
    answer = rig.driver.scale("l4", 2, (), FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "NotElastic"


def test_simulated_nodes_come_in_their_time_and_go_at_once(tmp_path: Path) -> None:
    driver = EmbeddedRig(tmp_path).driver
    driver.scale("h100", 3, (), FIRST, NOW)
    assert sorted(driver.observe(LATER - timedelta(seconds=1)).nodes) == ["h100-1"]
    assert sorted(driver.observe(LATER).nodes) == ["h100-1", "h100-2", "h100-3"]
    driver.scale("h100", 2, ("h100-1",), FIRST, LATER)
    assert sorted(driver.observe(LATER).nodes) == ["h100-2", "h100-3"]
    driver.scale("h100", 3, (), FIRST, LATER)
    assert sorted(driver.observe(LATER + timedelta(minutes=10)).nodes) == ["h100-2", "h100-3", "h100-4"]


def test_a_simulated_node_that_serves_somebody_never_goes(tmp_path: Path) -> None:
    driver = EmbeddedRig(tmp_path).driver
    driver.ensure_slice(SliceTerms("vision", ("vision-train",)), FIRST, NOW)
    assert driver.add("h100-1", VISION, FIRST, NOW) == Done()
    driver.scale("h100", 0, ("h100-1",), FIRST, NOW)
    assert sorted(driver.observe(NOW).nodes) == ["h100-1"]
