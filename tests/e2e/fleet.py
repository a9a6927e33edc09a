"""Two real control planes as two clusters, a real repository, and any number of controllers over them.

Time is the story's own: between two cycles the clusters come to rest where they would be at that instant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.api.api_features import discover
from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.loop import Reconciler
from reconciler.model.cluster_port import ClusterDriver
from reconciler.model.events import Event
from reconciler.model.facts import Facts
from reconciler.ports import Ports
from reconciler.settings import Settings
from reconciler.status.branch import StatusBranch
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from schemas.documents.cluster import ClusterSpec
from schemas.reading.reader import READER_VERSION
from schemas.status.gpr_status import GPRStatus
from tests.reconciler.clusters.rig import caught_up, placed, stateful
from tests.support import repos
from tests.support.kube import Plane, await_new_nodes, cpu_node, eventually, gpu_node
from tests.support.kubelet import Kubelets
from tests.support.world import gpr, gpr_path

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
MOST_CYCLES = 200


class Site:
    """One cluster: its nodes and its kubelets."""

    def __init__(self, plane: Plane, nodes: tuple[str, ...]) -> None:
        self.plane, self.api, self.kubelets = plane, plane.api, Kubelets(plane)
        self.places = discover(plane.api).mutating_policies
        for node in nodes:
            self.api.create("/api/v1/nodes", gpu_node(node))
        self.api.create("/api/v1/nodes", cpu_node("cpu-1"))
        await_new_nodes(self.api)
        self.drivers: list[KubernetesCluster] = []

    def open(self, name: str, spec: ClusterSpec) -> KubernetesCluster:
        """One more driver of it, as another controller has."""
        self.drivers.append(KubernetesCluster(name, spec, self.plane.connect()))
        return self.drivers[-1]

    def settle(self, now: datetime) -> None:
        """Everything that happens by itself until `now` has happened."""
        self.kubelets.settle(now, lambda: caught_up(self.plane, self.drivers))

    def submit(self, namespace: str, name: str, gpus: int, replicas: int = 1) -> None:
        """A person of a slice starts a workload; where the server places pods they need not say a word of nodes."""
        eventually(
            lambda: self.api.find(f"/api/v1/namespaces/{namespace}/serviceaccounts/default"), "its account"
        )
        where = placed(namespace) if gpus and not self.places else {}
        body = stateful(name, namespace, gpus, replicas, **where)
        self.api.create(f"/apis/apps/v1/namespaces/{namespace}/statefulsets", body)

    def pods(self, namespace: str) -> dict[str, str | None]:
        """Where each pod runs; None: it waits."""
        items = self.api.items(f"/api/v1/namespaces/{namespace}/pods")
        return {i["metadata"]["name"]: i["spec"].get("nodeName") for i in items}

    def node(self, name: str) -> Json:
        """As the server has it."""
        return self.api.get(f"/api/v1/nodes/{name}")

    def close(self) -> None:
        """No thread of a test outlives it."""
        for driver in self.drivers:
            driver.close()


class Fleet:
    """Clusters by name, one repository, and the controller that leads."""

    def __init__(self, folder: Path, sites: Mapping[str, Site], files: Mapping[str, str]) -> None:
        self.folder, self.sites, self.now = folder, sites, START
        self.repo = repos.bare(folder / "fleet.git", files)
        self.events: list[Event] = []
        self._settings = Settings(repo=str(self.repo), state=folder / "reader")
        self._reader = GitStore(str(self.repo), folder / "reader" / "mirror.git")
        self._count = 0
        self.controller = self.start()

    def start(self) -> Reconciler:
        """A controller process of its own: its own mirror, its own drivers."""
        self._count += 1
        state = self.folder / f"controller-{self._count}"
        state.mkdir()
        settings = Settings(repo=str(self.repo), state=state, pushes_per_minute=None)
        opened: dict[str, tuple[ClusterSpec, ClusterDriver]] = {}

        def drivers(specs: Mapping[str, ClusterSpec]) -> Mapping[str, ClusterDriver]:
            for name, spec in specs.items():
                if name not in opened or opened[name][0] != spec:
                    opened[name] = (spec, self.sites[name].open(name, spec))
            return {name: opened[name][1] for name in specs}

        store = GitStore(str(self.repo), state / "mirror.git")
        return Reconciler(
            Ports(store, DocumentCache(None, READER_VERSION), drivers),
            settings,
            state.name,
            adopt=self._count == 1,
        )

    def file(self, key: str, **spec: object) -> None:
        """A request is merged."""
        slice_, _, name = key.partition("/")
        repos.commit(self.repo, {gpr_path(key): gpr(slice_, name, **spec)})  # type: ignore[arg-type]

    def run(self, minutes: float) -> None:
        """Cycle at every instant that matters, until so many minutes after the story began."""
        until = START + timedelta(minutes=minutes)
        for _ in range(MOST_CYCLES):
            for site in self.sites.values():
                site.settle(self.now)
            cycle = self.controller.cycle(self.now)
            self.events += cycle.events
            if cycle.wake > until and cycle.wake > self.now:
                break
            self.now = max(self.now, cycle.wake)
        else:
            raise AssertionError(f"no rest after {MOST_CYCLES} cycles, at {self.now}")
        self.now = max(self.now, until)
        for site in self.sites.values():
            site.settle(self.now)

    def told(self) -> list[str]:
        """Reasons of everything that was told so far."""
        return [str(event.reason) for event in self.events]

    def facts(self) -> Facts:
        """What is committed, read by a stranger."""
        self._reader.fetch([self._settings.status_branch])
        return StatusBranch(self._reader, self._settings, "reader").read(self.now).facts

    def status(self, key: str) -> GPRStatus:
        """One request's."""
        return self.facts().requests[key]


@contextmanager
def fleet(
    folder: Path, planes: Mapping[str, Plane], nodes: Mapping[str, tuple[str, ...]], files: Mapping[str, str]
) -> Iterator[Fleet]:
    """A fleet for one test."""
    sites = {name: Site(plane, nodes[name]) for name, plane in planes.items()}
    try:
        yield Fleet(folder, sites, files)
    finally:
        for site in sites.values():
            site.close()
