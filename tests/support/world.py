"""A whole system in memory and simulated time: one remote, simulated clusters, any number of controllers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.cycle import Cycle
from reconciler.loop import Reconciler
from reconciler.model.cluster_port import ClusterDriver
from reconciler.model.facts import Facts
from reconciler.ports import Ports
from reconciler.settings import Settings
from reconciler.status.branch import StatusBranch
from reconciler.status.status_cache import RECORDS_VERSION
from reconciler.store.document_cache import DocumentCache
from reconciler.store.memory_store import MemoryStore
from reconciler.store.store_port import Draft, Outcome, Person
from reconciler.telling.mailroom import Mailroom
from schemas.documents.base import Document
from schemas.documents.cluster import ClusterSpec
from schemas.reading.reader import READER_VERSION, read_document
from schemas.status.gpr_status import GPRStatus
from schemas.status.node_status import AgentReport, NodeMetadata
from tests.support.memory_remote import MemoryRemote

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
BO = Person("Bo", "bo@example.com")
ADMIN = "ada"


def at(minutes: float) -> datetime:
    """An instant so many minutes after the world began."""
    return START + timedelta(minutes=minutes)


def project(**spec: object) -> str:
    """project.yaml with one admin, `ada`."""
    return _document("Project", "default", {"admins": [{"email": f"{ADMIN}@example.com"}], **spec})


def cluster(name: str = "east", nodes: int = 2, **spec: object) -> str:
    """A managed simulated cluster with one pool `h100` of 8-GPU nodes; checks take no time of their own."""
    pool = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": nodes}
    spec = {
        "driver": "embedded",
        "mode": "manage",
        "prepare": "0d0h2m",
        "drain": "0d0h5m",
        "pools": [pool],
    } | spec
    return _document("Cluster", name, spec)


def slice_(name: str, clusters: tuple[str, ...] = ("east",), **spec: object) -> str:
    """A slice with one member and one namespace of its name."""
    base = {"members": [{"email": "bo@example.com"}], "clusters": list(clusters), "namespaces": [name]}
    return _document("Slice", name, base | spec)


def gpr(slice_name: str, name: str, nodes: int = 1, duration: str = "1h", **spec: object) -> str:
    """A request for whole H100 nodes."""
    return _document("GPR", name, {"slice": slice_name, "nodes": nodes, "duration": duration, **spec})


def approval(
    slice_name: str, name: str, digest: str, decision: str = "approve", by: str = ADMIN, **spec: object
) -> str:
    """The word of an admin, or of somebody who is none."""
    base: dict[str, object] = {"slice": slice_name, "gpr": name, "decision": decision, "specDigest": digest}
    if decision == "approve":
        base["limit"] = {"gpus": 1000, "nodes": 100}
    return _document("Approval", by, base | spec)


def _document(kind: str, name: str, spec: Mapping[str, object]) -> str:
    from schemas.reading.yaml_text import dump

    return dump(
        {"apiVersion": "egs.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}
    )


def gpr_path(key: str) -> str:
    """Where `slice/name` is filed on main."""
    slice_name, _, name = key.partition("/")
    return f"slices/{slice_name}/gprs/{name}.yaml"


class World:
    """Two slices `a` and `b` on one cluster `east`, unless told otherwise."""

    def __init__(
        self,
        files: Mapping[str, str | None] | None = None,
        state: Path | None = None,
        *,
        adopt: bool = True,
        mailroom: Callable[[], Mailroom] = Mailroom,
        **settings: object,
    ) -> None:
        self.remote = MemoryRemote()
        self.people = MemoryStore(self.remote)
        self.now = START
        # What outlives a controller, as its state folder does.
        self.documents = DocumentCache(None, READER_VERSION)
        self.records = DocumentCache(None, RECORDS_VERSION)
        self.drivers: dict[str, EmbeddedCluster] = {}
        self.fleets: dict[
            str, ClusterSpec
        ] = {}  # what a cluster really has, where its manifest only looks for it
        self.state = state
        self.adopt = adopt
        self.mailroom = mailroom
        given: dict[str, object] = {"pushes_per_minute": None} | settings
        self.settings = Settings(repo="memory", state=Path("unused"), **given)  # type: ignore[arg-type]
        self.watchers: list[Callable[[Cycle], None]] = []
        self.log: list[Cycle] = []
        self._count = 0
        base = {"project.yaml": project(), "clusters/east.yaml": cluster()}
        base |= {f"slices/{name}/slice.yaml": slice_(name) for name in ("a", "b")}
        self.commit({**base, **(files or {})})
        self.controller = self.start()

    def commit(self, files: Mapping[str, str | None], branch: str = "main") -> str:
        """People push files (None deletes) to a branch."""
        tip = self.people.fetch([branch]).get(branch)
        changes = {path: None if text is None else text.encode() for path, text in files.items()}
        draft = Draft(changes, "a change", BO, self.now, base=tip, parent=tip)
        oid = self.people.write(draft)
        assert self.people.push(branch, oid, tip) is Outcome.COMMITTED
        return oid

    def file(self, key: str, **spec: object) -> None:
        """File or edit a request."""
        slice_name, _, name = key.partition("/")
        self.commit({gpr_path(key): gpr(slice_name, name, **spec)})  # type: ignore[arg-type]

    def report(self, node: str, healthy: bool, cluster_name: str = "east", **more: object) -> None:
        """An agent says how its node is."""
        from reconciler.status.yaml_rows import document as rendered

        document = AgentReport(
            metadata=NodeMetadata(name=node),
            cluster=cluster_name,
            node=node,
            at=self.now,
            healthy=healthy,
            **more,  # type: ignore[arg-type]
        )
        self.commit({"report.yaml": rendered(document).decode()}, f"egs/agents/{cluster_name}/{node}")

    def start(self, may_lead: Callable[[], bool] | None = None, **more: object) -> Reconciler:
        """A new controller process on the same repository and clusters, elected or not.

        Where it has a `clock`, time may pass within its cycles.
        """
        self._count += 1
        return Reconciler(
            Ports(
                MemoryStore(self.remote),
                self.documents,
                self._open,
                may_lead=may_lead,
                records=self.records,
                mailroom=self.mailroom(),
                **more,
            ),
            self.settings,
            f"controller-{self._count}",
            adopt=self.adopt,
        )

    def _open(self, specs: Mapping[str, ClusterSpec]) -> Mapping[str, ClusterDriver]:
        for name, manifest in specs.items():
            spec = self.fleets.get(name, manifest)
            if name not in self.drivers:
                path = None if self.state is None else self.state / f"{name}.json"
                self.drivers[name] = EmbeddedCluster(name, spec, path)
            else:
                self.drivers[name].follow(spec)
        return {name: self.drivers[name] for name in specs}

    def run(self, until: datetime, limit: int = 2000) -> list[Cycle]:
        """Cycle at every instant that matters until then."""
        done: list[Cycle] = []
        while len(done) < limit:
            cycle = self.controller.cycle(self.now)
            done.append(cycle)
            for watch in self.watchers:
                watch(cycle)
            if cycle.wake > self.now and cycle.wake > until:
                break
            self.now = max(self.now, cycle.wake)
        else:
            raise AssertionError(f"no rest after {limit} cycles at {self.now}")
        self.now = max(self.now, until)
        self.log += done
        return done

    def facts(self) -> Facts:
        """What the status branch says, read by a stranger."""
        self.people.fetch([self.settings.status_branch])
        return StatusBranch(self.people, self.settings, "reader").read(self.now).facts

    def status(self, key: str) -> GPRStatus:
        """One request's status on the branch."""
        return self.facts().requests[key]

    def text(self, path: str) -> str | None:
        """One file of the status branch."""
        tip = self.people.fetch([self.settings.status_branch]).get(self.settings.status_branch)
        data = None if tip is None else self.people.read_path(tip, path)
        return None if data is None else data.decode()

    def told(self) -> list[str]:
        """Reasons of all events so far, in order."""
        return [str(event.reason) for cycle in self.log for event in cycle.events]


def parsed(path: str, text: str) -> Document:
    """A document that must be valid."""
    outcome = read_document(path, text.encode())
    assert isinstance(outcome, Document), outcome
    return outcome
