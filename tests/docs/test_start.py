"""The pages of docs/start run as they stand and print what they say; only times, ids and addresses differ."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from demo.api import Served, served
from demo.system import System
from reconciler.clock import ManualClock, SystemClock
from reconciler.clusters.kubernetes.api.api_client import Rejected
from reconciler.clusters.kubernetes.names import SLICE
from reconciler.settings import Settings
from tests.support.kube import Plane, await_new_nodes, gpu_node
from tests.support.kubelet import Kubelets
from tests.support.walk import ROOT, walked
from tests.support.world import START

PAGES = ROOT / "docs" / "start"
STEP = timedelta(seconds=15)
"""Time goes on with each cycle, so that a slow machine is late for nothing."""
PAUSE_S = 0.1


@pytest.mark.slow
def test_the_tour_runs_as_it_stands(tmp_path: Path) -> None:
    """A1, B1, D2: a repository, a promise, an urgent request."""
    walked(PAGES / "tour.md", tmp_path / "home", {"$PWD/.venv/bin:": ""}, at=ROOT)


@pytest.mark.slow
def test_a_pipeline_files_is_checked_approved_and_waits(tmp_path: Path) -> None:
    """B2, D2, E5, G3: by Git alone."""
    walked(PAGES / "pipelines.md", tmp_path / "home", {}, is_live=True)


@pytest.mark.slow
def test_a_data_scientist_gets_nodes_and_gives_them_back(tmp_path: Path) -> None:
    """A7, D2, D11, J1: on the demo's server, from logging in to the release."""
    with living_demo(tmp_path / "demo") as demo:
        changed = {"http://127.0.0.1:8080": demo.url, "egs_…": demo.key}
        walked(PAGES / "data-scientist.md", tmp_path / "home", changed, is_live=True)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="the page uses kubectl")
def test_an_admin_tries_a_real_cluster_and_leaves_it_as_it_was(tmp_path: Path, new_kube: Plane) -> None:
    """B1, B3, C1, F2: from `egs init --from-cluster` to `egs uninstall`."""
    for name in ("gpu-1", "gpu-2"):
        new_kube.api.create("/api/v1/nodes", gpu_node(name))
    await_new_nodes(new_kube.api)
    with running_kubelets(new_kube):
        walked(PAGES / "admin.md", tmp_path / "home", {}, is_live=True, KUBECONFIG=str(new_kube.kubeconfig))
    for node in new_kube.api.items("/api/v1/nodes"):
        assert not node["spec"].get("taints")
        assert SLICE not in node["metadata"]["labels"]


@contextmanager
def running_kubelets(plane: Plane) -> Iterator[None]:
    """Pods that are bound run, and pods that are told to stop do."""
    kubelets, ended = Kubelets(plane), threading.Event()

    def live() -> None:
        while not ended.wait(PAUSE_S):
            with suppress(Rejected):  # what is gone in between is looked at again
                kubelets.step(SystemClock().now())
                for pod in plane.items("/api/v1/pods"):
                    meta = pod["metadata"]
                    if meta.get("deletionTimestamp") and meta.get("finalizers"):
                        # The Job's controller lets go of a pod that has ended.
                        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
                        plane.api.merge(path, {"status": {"phase": "Failed"}}, "strategic-merge-patch")

    lives = threading.Thread(target=live, daemon=True)
    lives.start()
    try:
        yield
    finally:
        ended.set()
        lives.join()


@contextmanager
def living_demo(folder: Path) -> Iterator[Served]:
    """The demo's fleet, whose time flies, with its server."""
    system = System(folder, Settings(repo=str(folder / "fleet.git"), state=folder, pushes_per_minute=None))
    clock, ended = ManualClock(START), threading.Event()
    system.create(clock.now())
    controller = system.start_controller()

    def live() -> None:
        while not ended.wait(PAUSE_S):
            clock.set(clock.now() + STEP)
            controller.cycle(clock.now())

    lives = threading.Thread(target=live, daemon=True)
    with served(system, clock, 0) as door:
        lives.start()
        try:
            yield door
        finally:
            ended.set()
            lives.join()
    system.close()
