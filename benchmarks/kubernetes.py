"""How fast nodes change hands in a real cluster: `python -m benchmarks.kubernetes [--quick]`.

Needs `EGS_TEST_KUBE`, a script that starts a control plane, as the tests do. Three parts: 100 nodes go to 20 slices and
come back, beside the bare API calls that the same work needs; 5,000 nodes and 20,000 pods are seen for the first time,
in a process of its own so that its memory can be told; and a change in that cluster is seen.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reconciler.clusters.kubernetes.api.api_client import Api
from reconciler.clusters.kubernetes.api.api_features import discover
from reconciler.clusters.kubernetes.api.connection import from_text
from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.clusters.kubernetes.names import SLICE
from reconciler.model.cluster_port import Busy, LeaseRef, SliceTerms, Stamp
from schemas.documents.cluster import ClusterSpec
from tests.support.kube import FAST, Plane, control_plane, gpu_node

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
STAMP = Stamp(1, 1)
HANDED, SLICES = 100, 20
NODES, PODS = 5_000, 20_000
CHANGES = 20
NODE = "gpu-{:04d}"


def main() -> None:
    """Prints machine and figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kubernetes", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--observe", type=Path, metavar="KUBECONFIG", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.observe is not None:
        observed(given.observe)
        return
    share = 10 if given.quick else 1
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}", flush=True)
    with control_plane() as plane:
        fill(plane.api, "/api/v1/nodes", (gpu_node(NODE.format(i)) for i in range(HANDED // share)))
        handed_over(plane, HANDED // share)
    with control_plane() as plane:
        fill(plane.api, "/api/v1/nodes", (gpu_node(NODE.format(i)) for i in range(NODES // share)))
        pods = (running(f"pod-{i:05d}", NODE.format(i % (NODES // share))) for i in range(PODS // share))
        fill(plane.api, "/api/v1/namespaces/default/pods", pods)
        print(f"{NODES // share:,} nodes and {PODS // share:,} pods, in a process of its own:", flush=True)
        command = [sys.executable, "-m", "benchmarks.kubernetes", "--observe", str(plane.kubeconfig)]
        subprocess.run(command, check=True)


def spec(nodes: int) -> ClusterSpec:
    """One pool of that many H100 nodes."""
    pool = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80}
    names = [NODE.format(i) for i in range(nodes)]
    return ClusterSpec.model_validate(
        {"driver": "kubernetes", "mode": "manage", "pools": [pool | {"nodes": names}]}, strict=False
    )


def handed_over(plane: Plane, nodes: int) -> None:
    """Our driver's calls one after the other, as the loop makes them; beside it the bare calls on the same objects."""
    driver = KubernetesCluster("east", spec(nodes), plane.connect())
    names = [NODE.format(i) for i in range(nodes)]
    slices = [f"team-{i:02d}" for i in range(SLICES)]
    for slice_ in slices:
        driver.ensure_slice(SliceTerms(slice_, (slice_,), gpus=64), STAMP, NOW)
    for slice_ in slices:  # no pod is let in before its namespace's controller has made this one
        waited(lambda: plane.api.find(f"/api/v1/namespaces/{slice_}/serviceaccounts/default") is not None)  # noqa: B023
    taken("every node marked as ours", lambda: driver.ensure_fleet(STAMP, NOW))
    leases = {
        n: LeaseRef(f"gpr-{i}", f"{s}/r", s, NOW) for i, n in enumerate(names) for s in [slices[i % SLICES]]
    }
    taken(
        f"{nodes} nodes to {SLICES} slices",
        lambda: [driver.add(name, lease, STAMP, NOW) for name, lease in leases.items()],
    )
    fill(plane.api, "", (running(f"train-{n}", n, lease.slice) for n, lease in leases.items()))
    waited(lambda: len(driver.observe(NOW).workloads) == nodes)
    asked = taken(
        "their pods told to stop",
        lambda: [
            driver.evict(n, lease.uid, NOW + timedelta(minutes=1), STAMP, NOW) for n, lease in leases.items()
        ],
    )
    gone(plane.api, leases)
    waited(lambda: not driver.observe(NOW).workloads)
    back = taken(
        "the nodes taken back",
        lambda: [driver.remove(name, lease.uid, STAMP, NOW) for name, lease in leases.items()],
    )
    assert not any(isinstance(answer, Busy) for answer in asked[1] + back[1])
    print(f"  {'taken back, both together':<44} {asked[0] + back[0]:8.2f} s")
    driver.close()
    bare(plane, names)


def bare(plane: Plane, names: list[str]) -> None:
    """The minimum for a hand-over: one conditional patch per node each way, and one eviction."""
    fill(plane.api, "", (running(f"bare-{name}", name, "default") for name in names))

    version = discover(plane.api).eviction

    def patch(value: str) -> None:
        for name in names:
            taints = [{"key": SLICE, "value": value, "effect": "NoSchedule"}]
            found = plane.api.get(f"/api/v1/nodes/{name}")
            plane.api.patch(
                f"/api/v1/nodes/{name}",
                [
                    {
                        "op": "test",
                        "path": "/metadata/resourceVersion",
                        "value": found["metadata"]["resourceVersion"],
                    },
                    {"op": "add", "path": "/spec/taints", "value": taints},
                ],
            )

    def evict() -> None:
        for name in names:
            path = f"/api/v1/namespaces/default/pods/bare-{name}/eviction"
            plane.api.create(
                path, {"apiVersion": version, "kind": "Eviction", "metadata": {"name": f"bare-{name}"}}
            )

    taken("bare calls: read and patch each node", lambda: patch("team"))
    taken("bare calls: evict, read and patch each node", lambda: (evict(), patch("free")))


def observed(kubeconfig: Path) -> None:
    """The time that one process needs to see everything, and then a change."""
    api = from_text("east", kubeconfig.read_text(), None, FAST)
    nodes = sum(1 for _ in api.items("/api/v1/nodes"))
    driver = KubernetesCluster("east", spec(nodes), api)
    taken("first look", lambda: driver.observe(NOW))
    taken("a look when nothing changed", lambda: driver.observe(NOW))
    times = []
    for i in range(CHANGES):
        name, begun = NODE.format(i), time.perf_counter()
        api.merge(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
        waited(lambda name=name: driver.observe(NOW).nodes[name].cordoned, pause_s=0.001)
        times.append(time.perf_counter() - begun)
    print(f"  {'a change, until it is in a view: median':<44} {statistics.median(times):8.2f} s")
    print(f"  {'a change, until it is in a view: longest':<44} {max(times):8.2f} s")
    driver.close()
    print(
        f"  {'largest memory of the process':<44} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:8.0f} MiB"
    )


def taken(what: str, act: Callable[[], object]) -> tuple[float, list]:
    """Run, print and return time and result."""
    begun = time.perf_counter()
    answer = act()
    took = time.perf_counter() - begun
    print(f"  {what:<44} {took:8.2f} s", flush=True)
    return took, answer if isinstance(answer, list) else []


def waited(look: Callable[[], bool], pause_s: float = 0.05) -> None:
    """Wait until it is true."""
    while not look():
        time.sleep(pause_s)


def fill(api: Api, path: str, bodies: Iterable[dict]) -> None:
    """Create all of them, several at a time; an empty path means pods in their own namespaces."""
    with ThreadPoolExecutor(8) as pool:

        def create(body: dict) -> None:
            api.create(path or f"/api/v1/namespaces/{body['metadata']['namespace']}/pods", body)

        list(pool.map(create, bodies))


def gone(api: Api, leases: dict[str, LeaseRef]) -> None:
    """The kubelets' part: evicted pods have stopped."""
    for name, lease in leases.items():
        api.delete(f"/api/v1/namespaces/{lease.slice}/pods/train-{name}", grace_s=0)


def running(name: str, node: str, namespace: str = "default") -> dict:
    """A GPU pod that is bound."""
    container = {
        "name": "main",
        "image": "example.com/train",
        "resources": {"limits": {"nvidia.com/gpu": "2"}},
    }
    environment = [
        {"name": f"SETTING_{i}", "value": "x" * 40} for i in range(20)
    ]  # as large as real ones are
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "train"}},
        "spec": {
            "nodeName": node,
            "automountServiceAccountToken": False,
            "containers": [container | {"env": environment}],
        },
    }


if __name__ == "__main__":
    main()
