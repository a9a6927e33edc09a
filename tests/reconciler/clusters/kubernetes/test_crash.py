"""The main loop on a real API server, killed at every write and started again (issue 3 §2; F1, F2).

A small story in simulated time on a real bare repository: a slice is made, a request starts, a node falls ill and gets
well, the request ends, the slice is removed. One run is left alone and counts the writes, to the API server and to Git;
each other is killed at one of them, before it or after it, and a new controller with nothing but the repository and the
cluster ends the story. The commit under test draws the kills; at night it is every one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.clusters.kubernetes.names import LEASE, MANAGED_BY, NODE_PREFIX, STAMP
from reconciler.loop import Reconciler
from reconciler.model.cluster_port import ClusterDriver
from reconciler.ports import Ports
from reconciler.settings import Settings
from reconciler.status.parse import request_status
from reconciler.status.render import request_path
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from reconciler.store.store_port import Draft, Outcome
from schemas.documents.cluster import ClusterSpec
from schemas.reading.reader import READER_VERSION
from schemas.status.gpr_status import GPRStatus
from tests.reconciler.clusters.kubernetes.living import JOBS, NODES, A, B, h100
from tests.reconciler.clusters.kubernetes.tenants import namespace
from tests.reconciler.clusters.rig import caught_up
from tests.support import repos
from tests.support.faulty import Wire
from tests.support.kube import Plane
from tests.support.kubelet import Kubelets
from tests.support.profile import drawn
from tests.support.world import at, cluster, gpr, gpr_path, project, slice_

T = TypeVar("T")
BRANCH, TRAIN = "egs/status", "a/train"
OVER = at(60)
FILES = {
    "project.yaml": project(),
    "clusters/east.yaml": cluster(
        driver="kubernetes",
        notice="0d0h1m",
        admission={"mode": "none"},
        exit={"force": False},
        shapes=[{"product": "NVIDIA-H100-80GB", "gpuShape": "H100-80GB", "memoryPerGpu": 80}],
    ),
    "slices/a/slice.yaml": slice_("a"),
    gpr_path(TRAIN): gpr("a", "train", nodes=1, duration="20m"),
}


class Killed(BaseException):
    """The process is gone; nothing that it could still do is done."""


@dataclass
class Points:
    """Every write passes here; at the one it is told the process dies, before it or after it."""

    number: int = -1
    when: str = ""
    count: int = 0

    def before(self) -> None:
        """A write is about to be sent."""
        self._perhaps(self.count, "before")

    def after(self) -> None:
        """It was done."""
        self.count += 1
        self._perhaps(self.count - 1, "after")

    def _perhaps(self, number: int, when: str) -> None:
        if (number, when) == (self.number, self.when):
            self.number = -1  # nobody dies twice
            raise Killed

    def around(self, call: Callable[[], T]) -> T:
        """One write."""
        self.before()
        found = call()
        self.after()
        return found


class WatchedStore:
    """A store whose writes are counted."""

    def __init__(self, store: GitStore, points: Points) -> None:
        self._store, self._points = store, points

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, draft: Draft) -> str:
        """See `port.Store.write`."""
        return self._points.around(lambda: self._store.write(draft))

    def push(self, branch: str, new: str, expected: str | None) -> Outcome:
        """See `port.Store.push`."""
        return self._points.around(lambda: self._store.push(branch, new, expected))


class Story:
    """One run of the story, by as many controllers as it takes."""

    def __init__(self, plane: Plane, folder: Path, points: Points) -> None:
        plane.wipe()
        namespace(plane, "egs-system")
        for name in (A, B):
            plane.api.create(NODES, h100(name))
        self.plane, self.folder, self.points = plane, folder, points
        self.repo = repos.bare(folder / "fleet.git", FILES)
        self.now, self.lives, self.told = at(0), 0, list[str]()
        self.over = OVER
        self.status: tuple[object, ...] = ()
        self.notes = Counter[str]()
        self.kubelets = Kubelets(plane)
        self.driver: KubernetesCluster | None = None
        self.acts: list[tuple[datetime, Callable[[], object]]] = [
            (at(5), lambda: self.report(False)),
            (at(9), lambda: self.report(True)),
            (at(40), self.leave),
        ]

    def play(self) -> Story:
        """To the end."""
        while self.now < self.over:
            self.lives += 1
            assert self.lives < 4
            try:
                self.live(self.born())
            except Killed:
                self.now += timedelta(seconds=1)
            finally:
                if self.driver is not None:
                    self.driver.close()
                    self.driver = None
        return self

    def born(self) -> Reconciler:
        """A new process: nothing is left of the one before."""
        store = GitStore(str(self.repo), self.folder / f"mirror-{self.lives}.git")
        settings = Settings(str(self.repo), self.folder, poll=timedelta(minutes=2), pushes_per_minute=None)
        cache = DocumentCache(None, READER_VERSION)
        writer = f"life-{self.lives}"
        watched = WatchedStore(store, self.points)
        return Reconciler(Ports(watched, cache, self.drivers), settings, writer, adopt=True)  # type: ignore[arg-type]

    def drivers(self, specs: Mapping[str, ClusterSpec]) -> Mapping[str, ClusterDriver]:
        """The one cluster."""
        if self.driver is None:
            api = self.plane.connect()
            self.wire = wire = Wire(api)
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                wire.rule(method, "", before=self.points.before, after=self.points.after)
            self.driver = KubernetesCluster("east", specs["east"], api)
        return {"east": self.driver}

    def live(self, controller: Reconciler) -> None:
        """Cycle after cycle."""
        while self.now < self.over:
            while self.acts and self.acts[0][0] <= self.now:
                self.acts.pop(0)[1]()
            cycle = controller.cycle(self.now)
            self.told += [f"{event.reason} {event.request}" for event in cycle.events]
            self.kubelets.settle(self.now, self.seen)
            self.look()
            self.now = max(self.now, min([cycle.wake, *(when for when, _ in self.acts[:1])]))

    def seen(self) -> bool:
        """The driver knows what there is."""
        return self.driver is None or caught_up(self.plane, [self.driver])

    def look(self) -> None:
        """One request for one node holds one, or for a moment its spare as well."""
        assert len([n for n in self.nodes().values() if LEASE in n]) <= 2

    def report(self, healthy: bool) -> None:
        """The agent of a node says how it is."""
        text = (
            f"apiVersion: egs.dev/v1alpha1\nkind: AgentReport\nmetadata: {{name: {B}}}\ncluster: east\n"
            f"node: {B}\nat: {self.now:%Y-%m-%dT%H:%M:%SZ}\nhealthy: {str(healthy).lower()}\n"
        )
        repos.commit(self.repo, {"report.yaml": text}, f"egs/agents/east/{B}")

    def leave(self) -> None:
        """The slice and its request go; how it had ended, and what its people were told, goes with them."""
        text = repos.git(self.repo, "show", f"{BRANCH}:{request_path(TRAIN)}")
        self.status = outcome(request_status(text.encode()))
        notes = self.plane.api.items("/apis/events.k8s.io/v1/namespaces/a/events")
        self.notes = Counter(note["reason"] for note in notes if note["metadata"]["name"].startswith("egs-"))
        repos.commit(self.repo, {"slices/a/slice.yaml": None, gpr_path(TRAIN): None})

    def nodes(self) -> dict[str, dict[str, str]]:
        """Our annotations and labels on every node, but for the stamp."""
        found = {}
        for node in self.plane.api.items(NODES):
            meta = node["metadata"]
            both = {**(meta.get("annotations") or {}), **meta["labels"]}
            marks = {k: v for k, v in both.items() if k.startswith(NODE_PREFIX) and k != STAMP}
            found[meta["name"]] = marks | {"taints": str(node["spec"].get("taints"))}
        return found

    def end(self) -> dict[str, object]:
        """What there is when it is over: the same after every run."""
        nodes = self.plane.api.items(NODES)
        return {
            "nodes": self.nodes(),
            "cordoned": [n["metadata"]["name"] for n in nodes if n["spec"].get("unschedulable")],
            "namespaces": self.ours("/api/v1/namespaces"),
            "jobs": self.ours(JOBS),
            "configmaps": self.ours("/api/v1/namespaces/egs-system/configmaps"),
            "status": self.status,
            "told twice": sorted(reason for reason, count in self.notes.items() if count > 1),
        }

    def ours(self, path: str) -> list[str]:
        """Names of all that we made there."""
        items = self.plane.api.items(path, labelSelector=f"{MANAGED_BY}=egs")
        return sorted(item["metadata"]["name"] for item in items)


def outcome(status: GPRStatus) -> tuple[object, ...]:
    """How it ended; a start may be seconds later after a kill."""
    assert status.start_time is not None
    assert status.end_time is not None
    lasted = status.end_time - status.start_time
    return status.phase, status.reason, lasted, status.retry_count, len(status.marks)


@pytest.fixture(scope="module")
def undisturbed(plane, tmp_path_factory) -> tuple[dict[str, object], int, list[str]]:
    """How it ends when nothing befalls it, how many writes it took, and what was told."""
    story = Story(plane, tmp_path_factory.mktemp("story"), Points()).play()
    return story.end(), story.points.count, story.told


def test_the_story_leaves_nothing_behind(undisturbed):
    end, writes, told = undisturbed
    assert (end["namespaces"], end["jobs"], end["cordoned"]) == ([], [], [])
    assert not any(LEASE in marks for marks in end["nodes"].values())
    assert writes > 25
    assert end["status"][:2] == ("Completed", "Ended")
    assert end["told twice"] == []
    assert told.count(f"GPRProvisioned {TRAIN}") == 1


def kills(writes: int) -> list[tuple[int, str]]:
    """Those drawn, and one always: the last write."""
    every = [(number, when) for number in range(writes) for when in ("before", "after")]
    return [kill for kill in every if drawn(f"{kill}", 24) or kill == every[-1]]


def test_a_kill_at_any_write_ends_as_if_nothing_had_befallen(plane, tmp_path, undisturbed):
    want, writes, _ = undisturbed
    found = {}
    for number, when in kills(writes):
        story = Story(plane, tmp_path / f"{number}-{when}", Points(number, when)).play()
        assert story.lives == 2, (number, when)
        found[number, when] = {key: (v, want[key]) for key, v in story.end().items() if v != want[key]}
    assert {kill: what for kill, what in found.items() if what} == {}


def test_an_api_server_that_is_away_for_an_hour(plane, tmp_path):
    """Leases stand, nothing new starts, and the strict end that fell into the hour happens when it is back."""
    story = Story(plane, tmp_path, Points())
    held: list[bool] = []

    def away() -> None:
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            story.wire.rule(method, "", instead=ConnectionRefusedError("away"), first=True)
        repos.commit(story.repo, {gpr_path("a/next"): gpr("a", "next", nodes=1, duration="5m")})

    def back() -> None:
        held.append(any(LEASE in marks for marks in story.nodes().values()))
        story.told.append("back")
        story.wire.clear()

    story.acts, story.over = [(at(10), away), (at(70), back)], at(100)
    story.play()
    assert held == [True]
    before, after = story.told[: story.told.index("back")], story.told[story.told.index("back") :]
    assert "GPRProvisioned a/next" not in before
    assert "GPRProvisioned a/next" in after
    assert not any(LEASE in marks for marks in story.nodes().values())
