"""Clusters for the contract suite: one class for each driver, so that no test knows which one it runs on.

A driver joins with a class that has the methods of `Rig` and its name in `RIGS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, cast

import pytest

from reconciler.clusters.kubernetes.api.api_client import Api, Json
from reconciler.clusters.kubernetes.api.informer import key_of
from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.clusters.kubernetes.names import DRIVER_STATE, NAMESPACE_SLICE, SLICE
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.scripted_faults import (
    ApiFails,
    DrainHangs,
    DriverUpgrade,
    NodeCordoned,
    NodeDies,
)
from reconciler.clusters.simulated.simulated_world import Job
from reconciler.model.cluster_port import ClusterDriver, Stamp
from schemas.documents.cluster import Admission, ClusterSpec, Exit, ProductShape
from tests.support.kube import ON_OLD, Plane, await_new_nodes, cpu_node, gpu_node
from tests.support.kubelet import Kubelets

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
FIRST = Stamp(1, 1)
"""Of the controller that every contract begins with."""
SPEC = ClusterSpec.model_validate_json(
    """{"driver": "embedded", "pools": [
    {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 3, "rdma": true},
    {"name": "l4", "gpuShape": "L4-24GB", "gpusPerNode": 1, "memoryPerGpu": 24, "nodes": ["small"]}]}"""
)
KUBERNETES_SPEC = SPEC.model_copy(
    update={
        "driver": "kubernetes",
        "exit": Exit(force=False),
        "admission": Admission(mode="none"),
        "shapes": tuple(
            ProductShape(
                product=f"NVIDIA-{p.gpu_shape}", gpu_shape=p.gpu_shape, memory_per_gpu=p.memory_per_gpu
            )
            for p in SPEC.pools
        ),
    }
)
"""The same, as it looks in a real cluster. Pods that hang are waited for: the suite wants to see them do so."""


class Rig(Protocol):
    """A cluster of `SPEC` under test, and what people and chance do to it."""

    driver: ClusterDriver

    def restart(self) -> None:
        """The process ends and another one begins; `driver` is a new object."""

    def submit(self, namespace: str, name: str, gpus: int, now: datetime) -> None:
        """A person starts a workload that never ends by itself."""

    def withdraw(self, namespace: str, name: str, now: datetime) -> None:
        """A person deletes a Job."""

    def cordon(self, node: str, at: datetime) -> None:
        """A person takes the node out."""

    def upgrade(self, node: str, state: str, at: datetime) -> None:
        """The GPU operator says how far the upgrade of the node's driver is."""

    def kill(self, node: str, at: datetime) -> None:
        """The node falls silent."""

    def cut(self, at: datetime, until: datetime, acted: bool) -> None:
        """The API does not answer; with `acted` it does what it was told all the same."""

    def hang(self, node: str, at: datetime, until: datetime) -> None:
        """Workloads of the node do not stop before `until`."""

    def close(self) -> None:
        """The test is over."""


class EmbeddedRig:
    """The simulated cluster, its state in a file."""

    def __init__(self, folder: Path) -> None:
        self._state = folder / "east.json"
        self.restart()

    def restart(self) -> None:
        self.driver = self._cluster = EmbeddedCluster("east", SPEC, self._state)

    def submit(self, namespace: str, name: str, gpus: int, now: datetime) -> None:
        self._cluster.submit(Job(name, namespace, gpus), now)

    def withdraw(self, namespace: str, name: str, now: datetime) -> None:
        self._cluster.withdraw(namespace, f"{name}-0", now)

    def cordon(self, node: str, at: datetime) -> None:
        self._cluster.inject(NodeCordoned(node=node, at=at))

    def upgrade(self, node: str, state: str, at: datetime) -> None:
        self._cluster.inject(DriverUpgrade(node=node, state=state, at=at))

    def kill(self, node: str, at: datetime) -> None:
        self._cluster.inject(NodeDies(node=node, at=at))

    def cut(self, at: datetime, until: datetime, acted: bool) -> None:
        self._cluster.inject(ApiFails(at=at, until=until, acted=acted))

    def hang(self, node: str, at: datetime, until: datetime) -> None:
        self._cluster.inject(DrainHangs(node=node, at=at, until=until))

    def close(self) -> None:
        """Nothing is open."""


class KubernetesRig:
    """A real control plane; its kubelets move when the suite's time does."""

    def __init__(self, plane: Plane) -> None:
        self._plane, self._kubelets = plane, Kubelets(plane)
        self._now = datetime.min.replace(tzinfo=UTC)
        self._cuts: list[tuple[datetime, datetime, bool]] = []
        self._opened: list[KubernetesCluster] = []
        self._labels: dict[str, str] = {}
        for pool in KUBERNETES_SPEC.pools:
            for name in pool.node_names():
                labels = {"nvidia.com__gpu.memory": str(pool.memory_per_gpu * 1024)}
                product = "NVIDIA-" + pool.gpu_shape
                plane.api.create("/api/v1/nodes", gpu_node(name, pool.gpus_per_node, product, **labels))
        plane.api.create("/api/v1/nodes", cpu_node("cpu-1"))
        await_new_nodes(plane.api)
        self.restart()

    def restart(self) -> None:
        api = self._plane.connect()
        self._intercept(api)
        cluster = KubernetesCluster("east", KUBERNETES_SPEC, api)
        self._opened.append(cluster)
        self.driver = cast(ClusterDriver, Settled(cluster, self._settle))

    def close(self) -> None:
        """No thread of a test outlives it."""
        for cluster in self._opened:
            cluster.close()

    def submit(self, namespace: str, name: str, gpus: int, now: datetime) -> None:
        found = self._plane.api.get(f"/api/v1/namespaces/{namespace}")
        where = placed(found["metadata"]["labels"][NAMESPACE_SLICE]) if gpus else {}
        body = stateful(name, namespace, gpus, **where)
        self._plane.api.create(f"/apis/apps/v1/namespaces/{namespace}/statefulsets", body)

    def withdraw(self, namespace: str, name: str, now: datetime) -> None:
        self._plane.api.delete(f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}")

    def cordon(self, node: str, at: datetime) -> None:
        self._plane.api.merge(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})

    def upgrade(self, node: str, state: str, at: datetime) -> None:
        self._plane.api.merge(f"/api/v1/nodes/{node}", {"metadata": {"labels": {DRIVER_STATE: state}}})

    def kill(self, node: str, at: datetime) -> None:
        self._kubelets.kill(node, at)

    def cut(self, at: datetime, until: datetime, acted: bool) -> None:
        self._cuts.append((at, until, acted))

    def hang(self, node: str, at: datetime, until: datetime) -> None:
        self._kubelets.hang(node, at, until)

    def _settle(self, now: datetime) -> None:
        self._now = now
        self._kubelets.settle(now, self._caught_up)

    def _caught_up(self) -> bool:
        return caught_up(self._plane, self._opened)

    def _intercept(self, api: Api) -> None:
        """Calls fail in the suite's time: before they are sent, or after the server acted."""
        client = api._client
        through = client.call_api

        def call(*args: Any, **kwargs: Any) -> Any:
            cut = next((c for c in self._cuts if c[0] <= self._now < c[1]), None)
            if cut is None:
                return through(*args, **kwargs)
            if cut[2]:
                through(*args, **kwargs)
            raise ConnectionResetError("cut by the test")

        client.call_api = call  # type: ignore[method-assign]


class Settled:
    """A driver whose every call finds the cluster at rest at the call's own instant."""

    def __init__(self, driver: KubernetesCluster, settle: Callable[[datetime], None]) -> None:
        self._driver, self._settle = driver, settle

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._driver, name)

        def settled(*args: Any) -> Any:
            self._settle(args[-1])
            return call(*args)

        return settled


def caught_up(plane: Plane, drivers: Iterable[KubernetesCluster]) -> bool:
    """Every driver has seen what there is; a watch is always a moment behind."""
    for path, attribute in (("/api/v1/nodes", "_nodes"), ("/api/v1/pods", "_pods")):
        there = {key_of(item): int(item["metadata"]["resourceVersion"]) for item in plane.items(path)}
        for driver in drivers:
            if driver._parts is not None and getattr(driver, attribute)._versions != there:
                return False
    return True


def placed(slice_: str) -> Json:
    """What admission gives to a GPU pod of a slice."""
    return {
        "nodeSelector": {SLICE: slice_},
        "tolerations": [{"key": SLICE, "operator": "Equal", "value": slice_, "effect": "NoSchedule"}],
    }


def stateful(name: str, namespace: str, gpus: int, replicas: int = 1, **spec: object) -> Json:
    """A workload whose pods come back under their names."""
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container = {"name": "main", "image": "example.com/train", "resources": {"limits": limits}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"automountServiceAccountToken": False, "containers": [container], **spec},
            },
        },
    }


RIGS = ("embedded", pytest.param("kubernetes", marks=ON_OLD))


def open_rig(name: str, folder: Path, plane: Callable[[], Plane]) -> Rig:
    """The rig of that name; `plane` gives an empty control plane, or skips the test."""
    return EmbeddedRig(folder) if name == "embedded" else KubernetesRig(plane())
