"""Clusters for the contract suite: one class for each driver, so that no test knows which one it runs on.

A driver joins with a class that has the methods of `Rig` and its name in `RIGS`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Protocol

from reconciler.clusters.embedded import EmbeddedCluster
from reconciler.clusters.faults import ApiFails, DrainHangs, NodeCordoned, NodeDies
from reconciler.clusters.port import ClusterDriver
from reconciler.clusters.world import Job
from schemas.cluster import ClusterSpec

SPEC = ClusterSpec.model_validate_json(
    """{"driver": "embedded", "pools": [
    {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 3, "rdma": true},
    {"name": "l4", "gpuShape": "L4-24GB", "gpusPerNode": 1, "memoryPerGpu": 24, "nodes": ["small"]}]}"""
)


class Rig(Protocol):
    """A cluster of `SPEC` under test, and what people and chance do to it."""

    driver: ClusterDriver

    def restart(self) -> None:
        """The process ends and another one begins; `driver` is a new object."""

    def submit(self, namespace: str, name: str, gpus: int, now: datetime) -> None:
        """A person starts a workload that never ends by itself."""

    def cordon(self, node: str, at: datetime) -> None:
        """A person takes the node out."""

    def kill(self, node: str, at: datetime) -> None:
        """The node falls silent."""

    def cut(self, at: datetime, until: datetime, acted: bool) -> None:
        """The API does not answer; with `acted` it does what it was told all the same."""

    def hang(self, node: str, at: datetime, until: datetime) -> None:
        """Workloads of the node do not stop before `until`."""


class EmbeddedRig:
    """The simulated cluster, its state in a file."""

    def __init__(self, folder: Path) -> None:
        self._state = folder / "east.json"
        self.restart()

    def restart(self) -> None:
        self.driver = self._cluster = EmbeddedCluster("east", SPEC, self._state)

    def submit(self, namespace: str, name: str, gpus: int, now: datetime) -> None:
        self._cluster.submit(Job(name, namespace, gpus), now)

    def cordon(self, node: str, at: datetime) -> None:
        self._cluster.inject(NodeCordoned(node=node, at=at))

    def kill(self, node: str, at: datetime) -> None:
        self._cluster.inject(NodeDies(node=node, at=at))

    def cut(self, at: datetime, until: datetime, acted: bool) -> None:
        self._cluster.inject(ApiFails(at=at, until=until, acted=acted))

    def hang(self, node: str, at: datetime, until: datetime) -> None:
        self._cluster.inject(DrainHangs(node=node, at=at, until=until))


RIGS: list[Callable[[Path], Rig]] = [EmbeddedRig]
