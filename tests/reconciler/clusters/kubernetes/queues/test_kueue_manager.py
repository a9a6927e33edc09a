"""Kueue's real manager admits, holds and suspends by the objects that we keep (A9, J1, J4, C3).

Skipped where the manager was not built: `tests/support/kueue/build` takes minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.model.cluster_port import Done, LeaseRef, QueueTerms, SliceTerms
from tests.reconciler.clusters.kubernetes.living import MINUTE, OBSERVED
from tests.reconciler.clusters.rig import FIRST, NOW
from tests.support.kube import Plane, eventually, gpu_node
from tests.support.kueue import GROUP
from tests.support.kueue.running import running

EXAMPLES = Path(__file__).parents[5] / "examples" / "queues"
JOBS = "/apis/batch/v1/namespaces/vision/jobs"
DEFAULT = f"{GROUP}/v1beta2/namespaces/vision/localqueues/default"
RACK = "example.com/rack"
LEASE = LeaseRef("gpr-00000001-aaaa", "vision/train", "vision", NOW + 60 * MINUTE)
QUEUE = QueueTerms(16, topology=(RACK,))
TERMS = SliceTerms("vision", ("vision",), queue=QUEUE)


@pytest.fixture
def driver(new_kube: Plane, tmp_path: Path) -> Iterator[KubernetesCluster]:
    """Of two leased nodes in one rack, with the manager beside it."""
    with running(new_kube, tmp_path):
        for name in ("h100-1", "h100-2"):
            labels = {"nvidia.com__gpu.memory": "81920", RACK.replace("/", "__"): "r1"}
            new_kube.api.create("/api/v1/nodes", gpu_node(name, 8, "NVIDIA-H100-80GB", **labels))
        found = KubernetesCluster("east", OBSERVED, new_kube.connect())
        try:
            assert found.ensure_fleet(FIRST, NOW) == Done()
            yield found
        finally:
            found.close()


def job(name: str, gpus: int) -> Json:
    """It names no queue, so that it gets the one named `default`, and Kueue suspends it."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": str(gpus)}}
    container = {"name": "main", "image": "example.com/train", "resources": resources}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": False,
                    "containers": [container],
                }
            },
        },
    }


def runs(plane: Plane, name: str) -> bool:
    """Kueue lets it run."""
    return plane.api.get(f"{JOBS}/{name}")["spec"]["suspend"] is False


def why_not(plane: Plane, name: str) -> str:
    """What Kueue says of its workload."""
    for found in plane.api.items(f"{GROUP}/v1beta2/namespaces/vision/workloads"):
        if found["metadata"]["ownerReferences"][0]["name"] == name:
            told = (found.get("status") or {}).get("conditions") or ()
            return "; ".join(c["message"] for c in told if c["type"] == "QuotaReserved")
    return ""


def placed_pods(plane: Plane) -> list[str]:
    """Pods of `train` that the scheduler gave a node."""
    pods = plane.api.items("/api/v1/namespaces/vision/pods")
    names = (p["metadata"]["name"] for p in pods if p["spec"].get("nodeName"))
    return [name for name in names if name.startswith("train-")]


def keep(driver: KubernetesCluster, **queue: object) -> None:
    terms = replace(TERMS, queue=replace(QUEUE, **queue))  # type: ignore[arg-type]
    assert driver.ensure_slice(terms, FIRST, NOW) == Done()
    assert driver.differences((terms,), NOW) == ()


def test_jobs_run_within_the_lease_and_are_suspended_before_its_end(
    new_kube: Plane, driver: KubernetesCluster
) -> None:
    api = new_kube.api
    keep(driver, gpus=0, stop="HoldAndDrain")
    eventually(lambda: api.find("/api/v1/namespaces/vision/serviceaccounts/default"), "an account")
    eventually(lambda: (api.get(DEFAULT).get("status") or {}).get("conditions"), "Kueue knows the queue")
    for name in ("train", "prepare"):
        api.create(JOBS, yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text()))
    eventually(lambda: runs(new_kube, "prepare"), "work without GPUs runs without a lease")
    assert not runs(new_kube, "train")
    for name in ("h100-1", "h100-2"):
        assert driver.add(name, LEASE, FIRST, NOW) == Done()
    keep(driver)
    eventually(lambda: runs(new_kube, "train"), "the lease has begun")
    spec = api.get(f"{JOBS}/train")["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"egs.node-restriction.kubernetes.io/slice": "vision"}
    assert spec["tolerations"][0]["value"] == "vision"
    eventually(lambda: placed_pods(new_kube), "its pod has a node")
    # Only now: of two Jobs that were made in one second Kueue may admit either first.
    api.create(JOBS, job("unnamed", 8))
    assert api.get(f"{JOBS}/unnamed")["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
    eventually(lambda: "insufficient" in why_not(new_kube, "unnamed"), "beyond what is left")
    keep(driver, stop="Hold")
    api.create(JOBS, job("late", 8))
    eventually(lambda: why_not(new_kube, "late"), "it waits")
    assert (runs(new_kube, "train"), runs(new_kube, "late")) == (True, False)
    keep(driver, stop="HoldAndDrain")
    eventually(lambda: not runs(new_kube, "train"), "it is suspended")
    assert not api.get(f"{JOBS}/train")["status"].get("failed")
    assert runs(new_kube, "prepare")
    keep(driver, gpus=0, stop="HoldAndDrain")
    keep(driver)
    eventually(lambda: runs(new_kube, "train") or runs(new_kube, "unnamed"), "the next lease")
    gone = replace(TERMS, queue=None)
    assert driver.ensure_slice(gone, FIRST, NOW) == Done()
    assert driver.differences((gone,), NOW) == ()
