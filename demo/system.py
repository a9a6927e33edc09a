"""One repository, its clusters, a controller and an agent for every node, all on this machine.

Everything is real except the hardware: a bare Git repository on disk, commits pushed to it, the reconciler and the
agents as they run anywhere; only the clusters are simulated, and the clock may be.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from agent.report import Identity, Reporter
from agent.simulated import SimulatedReader
from agent.watch import Manifest, Watch
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.loop import Reconciler
from reconciler.model.cluster_port import ClusterDriver
from reconciler.ports import Drivers, Ports
from reconciler.settings import Settings
from reconciler.status.event_files import age
from reconciler.status.parse import events_from, request_status
from reconciler.status.render import request_path
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_process import as_person
from reconciler.store.git.git_store import GitStore
from reconciler.store.store_port import Draft, Outcome, Person
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault, UserError
from schemas.reading.reader import READER_VERSION
from schemas.status.gpr_status import GPRStatus

log = logging.getLogger(__name__)

MANIFEST_EVERY = timedelta(hours=1)
"""How often agents look for new thresholds; the demo does not change them."""


def example_files() -> dict[str, bytes]:
    """The example repository that is installed with the project."""
    here = Path(__file__).parent
    for folder in (here / "example", here.parent / "examples" / "repo"):
        if (folder / "project.yaml").exists():
            return {
                path.relative_to(folder).as_posix(): path.read_bytes()
                for path in sorted(folder.rglob("*"))
                if path.is_file()
            }
    raise UserError("the example repository is missing from this installation", "NoExample")


@dataclass(slots=True)
class System:
    """All parts in one folder. They get the time from the caller."""

    root: Path
    settings: Settings
    clusters: dict[str, EmbeddedCluster] = field(default_factory=dict)
    agents: dict[tuple[str, str], Watch] = field(default_factory=dict)
    _lives: int = 0
    _stores: list[GitStore] = field(default_factory=list)
    _people: GitStore | None = None
    _agent_store: GitStore | None = None
    _readers: GitStore | None = None

    @property
    def repository(self) -> Path:
        """The bare repository shared by all parts."""
        return self.root / "fleet.git"

    @property
    def people(self) -> GitStore:
        """The clone from which people push."""
        if self._people is None:
            self._people = GitStore(str(self.repository), self.root / "people.git")
        return self._people

    @property
    def readers(self) -> GitStore:
        """The clone in which the API looks for agents' reports."""
        if self._readers is None:
            self._readers = GitStore(str(self.repository), self.root / "readers.git")
        return self._readers

    def create(self, now: datetime) -> None:
        """Make a repository with the example on main."""
        self.root.mkdir(parents=True, exist_ok=True)
        made = as_person(
            ["init", "--quiet", "--bare", "--initial-branch=main", self.repository.name], self.root
        )
        if made.code != 0:
            raise Fault(f"git init failed: {made.error}", "GitFailed")
        self.push(example_files(), "The department's fleet", Person("Ada", "ada@example.com"), now)

    def push(self, files: Mapping[str, bytes | None], message: str, author: Person, now: datetime) -> None:
        """A person's `git push`: one commit on main."""
        main = self.settings.main_branch
        tip = self.people.fetch([main]).get(main)
        draft = Draft(dict(files), message, author, now, base=tip, parent=tip)
        outcome = self.people.push(main, self.people.write(draft), tip)
        if outcome is not Outcome.COMMITTED:
            raise Fault(f"the push ended {outcome.value}; push again", "PushFailed")

    def read(self, path: str, branch: str) -> bytes | None:
        """A file on the remote now."""
        tip = self.people.fetch([branch]).get(branch)
        return None if tip is None else self.people.read_path(tip, path)

    def status(self, key: str) -> GPRStatus:
        """A request's committed status."""
        data = self.read(request_path(key), self.settings.status_branch)
        if data is None:
            raise UserError(f"{key} has no status yet", "NotFound")
        return request_status(data)

    def events(self) -> list[dict[str, str]]:
        """Every committed event, oldest first."""
        tip = self.people.fetch([self.settings.status_branch])[self.settings.status_branch]
        files = {e.path: e.oid for e in self.people.diff(None, tip) if e.path.startswith("events/") and e.oid}
        data = self.people.read(files.values())
        rows = [row for path in sorted(files, key=age) for row in events_from(data[files[path]])]
        return sorted(rows, key=lambda row: row["at"])

    def start_controller(self, drivers: Drivers | None = None) -> Reconciler:
        """A new controller process, with its own mirror."""
        self._lives += 1
        state = self.root / f"controller-{self._lives}"
        store = GitStore(str(self.repository), state / "mirror.git")
        self._stores.append(store)
        cache = DocumentCache(self.root / "documents.sqlite", READER_VERSION)
        opened, writer = drivers or self.drivers, f"demo-{self._lives}"
        return Reconciler(Ports(store, cache, opened), self.settings, writer, adopt=True)

    def drivers(self, specs: Mapping[str, ClusterSpec]) -> Mapping[str, ClusterDriver]:
        """The simulated clusters of the manifests."""
        for name, spec in specs.items():
            if name not in self.clusters:
                state = self.root / "clusters" / f"{name}.json"
                self.clusters[name] = EmbeddedCluster(name, spec, state)
            else:
                self.clusters[name].follow(spec)
        return {name: self.clusters[name] for name in specs}

    def watch_nodes(self, now: datetime) -> None:
        """Every agent reads, judges and reports once."""
        if self._agent_store is None:
            self._agent_store = GitStore(str(self.repository), self.root / "agents.git")
        for name, cluster in list(self.clusters.items()):
            try:
                nodes = cluster.observe(now).nodes
            except Fault:
                continue  # its agents cannot run now
            for node in nodes:
                self._agent(name, node).cycle(now)

    def _agent(self, cluster: str, node: str) -> Watch:
        key = (cluster, node)
        if key not in self.agents:
            assert self._agent_store is not None
            who = Identity(cluster, node, node, f"{node}@{cluster}/demo")
            reader = SimulatedReader(partial(self.clusters[cluster].gpu_readings, node))
            manifest = Manifest(self._agent_store, self.settings.main_branch, who, MANIFEST_EVERY)
            release = partial(self.clusters[cluster].release_asked, node)
            self.agents[key] = Watch(reader, Reporter(self._agent_store, who), manifest, who, release=release)
        return self.agents[key]

    def close(self) -> None:
        """End helper processes."""
        for store in (*self._stores, self._people, self._agent_store, self._readers):
            if store is not None:
                store.close()
