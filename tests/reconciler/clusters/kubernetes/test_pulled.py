"""An applier in a real cluster: what the centre commits is done there, and comes back as a report (A2, A14)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from reconciler.clusters.kubernetes.api.connection import Keys
from reconciler.clusters.open_cluster import DriverOptions, open_cluster
from reconciler.clusters.pulled_cluster import ReportBranches
from reconciler.loop import Reconciler
from reconciler.model.cluster_port import ClusterDriver
from reconciler.ports import Ports
from reconciler.processes.applier import Applier
from reconciler.store.document_cache import DocumentCache
from reconciler.store.memory_store import MemoryStore
from schemas.documents.cluster import Access, ClusterSpec
from schemas.reading.reader import READER_VERSION
from tests.support.kube import eventually, gpu_node
from tests.support.pulled import pulled_drivers
from tests.support.world import World, cluster

POOL = {
    "name": "h100",
    "gpuShape": "H100-80GB",
    "gpusPerNode": 8,
    "memoryPerGpu": 80,
    "nodes": ["gpu-1", "gpu-2"],
}
MANIFEST = cluster(driver="kubernetes", access={"pull": True}, pools=[POOL], admission={"mode": "none"})


@pytest.fixture
def inside(kube, tmp_path):
    """Opens the cluster as its applier has it; everything is closed at the end."""
    (tmp_path / "east").write_text(kube.kubeconfig.read_text())
    opened: list[ClusterDriver] = []

    def driver_of(spec: ClusterSpec) -> ClusterDriver:
        near = spec.model_copy(update={"access": Access(kubeconfig="east")})
        opened.append(open_cluster("east", near, DriverOptions(keys=Keys(tmp_path))))
        return opened[-1]

    yield driver_of
    for driver in opened:
        driver.close()


def test_the_centre_sees_and_moves_a_cluster_that_it_cannot_reach(
    kube, inside: Callable[[ClusterSpec], ClusterDriver]
):
    for name in ("gpu-1", "gpu-2"):
        kube.api.create("/api/v1/nodes", gpu_node(name))
    world = World({"clusters/east.yaml": MANIFEST})
    store = MemoryStore(world.remote)
    reports = ReportBranches(store)
    cache = DocumentCache(None, READER_VERSION)
    centre = Reconciler(
        Ports(store, cache, pulled_drivers(reports), settled=reports.settled),
        world.settings,
        "centre",
        adopt=True,
    )
    applier = Applier(MemoryStore(world.remote), cache, "east", inside, world.settings, "applier")

    def turn() -> None:
        world.now += timedelta(seconds=1)
        centre.cycle(world.now)
        applier.cycle(world.now)

    def seen() -> bool:
        turn()
        report = reports.read("east")
        nodes = {} if report is None or report.view is None else report.view.nodes
        return sorted(nodes) == ["gpu-1", "gpu-2"] and "a" in report.view.slices  # type: ignore[union-attr]

    eventually(seen, "its nodes and its slices in the report")
    assert kube.api.find("/api/v1/namespaces/a") is not None
    turn()
    assert world.facts().clusters["east"].reachable
