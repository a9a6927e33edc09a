"""A real repository with a real controller that verifies, and people who try to get requests approved.

Every case of the corpus has a slice and a request of its own, `<case>/big`, that needs an admin. `Court.hold` lets all
of them act in turn, the controller looking between any two of their acts, and tells which requests were ever let in.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.cycle import Cycle
from reconciler.loop import Reconciler
from reconciler.model.cluster_port import ClusterDriver
from reconciler.model.evidence import GIT, Level
from reconciler.model.facts import Facts
from reconciler.ports import Ports
from reconciler.settings import Settings, Trust
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from reconciler.trust.sshsig import PrivateKey
from schemas.documents.approval import NAMESPACE, Approval, statement
from schemas.documents.cluster import ClusterSpec
from schemas.reading.reader import READER_VERSION
from schemas.reading.yaml_text import dump
from schemas.status.gpr_status import TERMINAL, GPRStatus
from tests.support import repos, world
from tests.support.forge import Forge
from tests.support.machinekeys import key as machine_key
from tests.support.realkeys import Key, ssh_sign

Signer = PrivateKey | Key
STAGE = timedelta(minutes=10)
LONG = "2026-12-20T00:00:00Z"
"""An end that no case lives to see."""

Acting = Generator[None, None, None]


@dataclass(frozen=True)
class Case:
    """Somebody's attempt. `act` may pause (`yield`) for the controller to look."""

    id: str  # a sentence
    act: Callable[[Bench], Acting | None]
    want: Literal["approved", "waiting", "rejected", "extended", "not extended"] = "waiting"
    spec: Mapping[str, object] = field(default_factory=dict)  # of its request
    by: str = "bo"  # who files it
    is_filed: bool = True  # before anybody acts


def sign(signer: Signer, namespace: str, message: bytes) -> str:
    """A signature by a key of this process or of `ssh-keygen`."""
    if isinstance(signer, PrivateKey):
        return signer.sign(namespace, message)
    return ssh_sign(signer, namespace, message)


class Court:
    """One repository, one project, one level."""

    def __init__(
        self,
        folder: Path,
        level: Level,
        cases: Sequence[Case],
        project: Mapping[str, object],
        keys: Mapping[str, str] | None = None,
        courier: str = "bo",
        forge: str = "",
    ) -> None:
        """`keys` are the files of the trust folder; None: there is no folder. `courier` pushes words of others,
        `forge` is the kind of forge that has the repository, if one has.
        """
        self.courier = courier
        self.repo = repos.bare(folder / "main.git", {"README.md": "A fleet.\n"})
        self.forge = Forge(self.repo, forge) if forge else None
        self.now, self.drivers = world.START, dict[str, EmbeddedCluster]()
        trust = None
        if keys is not None:
            trust = folder / "trust"
            trust.mkdir()
            for name, text in keys.items():
                (trust / name).write_text(text)
        self.trust = trust
        self.settings = Settings(
            repo=str(self.repo),
            state=folder / "state",
            pushes_per_minute=None,
            poll=STAGE,
            trust=Trust(level, trust),
        )
        self.benches = {f"c{i:03}": Bench(self, f"c{i:03}", case) for i, case in enumerate(cases)}
        self.facts: Facts | None = None
        self._begin(project)

    def _begin(self, project: Mapping[str, object]) -> None:
        files: dict[str, str | None] = {
            "project.yaml": world.project(**project),
            "clusters/east.yaml": world.cluster(nodes=700),
            "templates/two.yaml": world._document("GPRTemplate", "two", {"nodes": 2, "duration": "5m"}),
        }
        people = [self.person("bo"), self.person("mo")]
        for name in self.benches:
            files[f"slices/{name}/slice.yaml"] = world.slice_(
                name,
                members=people,
                owners=[self.person("olga")],
                quota={"gpus": 8},
                limits={"maxPriority": 200},
            )
        self.push(files, "ada")

    def person(self, name: str) -> dict[str, object]:
        """Somebody with a key, and an account where there is a forge."""
        if self.forge is None:
            return person(name)
        return person(name, forge={"login": name, "id": self.forge.user(name).id})

    # -- the controller --------------------------------------------------------------------------------------

    def start(self, make: Callable[[GitStore, Settings], Mapping[str, Any]]) -> None:
        """The controller; `make` gives the parts of it that know whom to believe."""
        store = GitStore(self.settings.repo, self.settings.state / "mirror.git")
        self.store = store
        self.controller = Reconciler(
            Ports(store, DocumentCache(None, READER_VERSION), self._open, **make(store, self.settings)),
            self.settings,
            "controller-1",
            adopt=True,
        )
        self.run(self.now)

    def _open(self, specs: Mapping[str, ClusterSpec]) -> Mapping[str, ClusterDriver]:
        for name, spec in specs.items():
            if name not in self.drivers:
                self.drivers[name] = EmbeddedCluster(name, spec, None)
        return {name: self.drivers[name] for name in specs}

    def run(self, until: datetime) -> None:
        """Cycle at every instant that matters until then."""
        for _ in range(500):
            cycle = self.controller.cycle(self.now)
            self._look(cycle)
            if cycle.wake > self.now and cycle.wake > until:
                self.now = until
                return
            self.now = max(self.now, cycle.wake)
        raise AssertionError(f"no rest at {self.now}")

    def _look(self, cycle: Cycle) -> None:
        self.facts = cycle.facts or self.facts
        for name, bench in self.benches.items():
            status = None if self.facts is None else self.facts.requests.get(f"{name}/big")
            if status is not None:
                bench.look(status)

    def hold(self) -> None:
        """Everybody files, then acts in turns until nobody has more to do."""
        for by in sorted({bench.case.by for bench in self.benches.values()}):
            filing = [b for b in self.benches.values() if b.case.by == by and b.case.is_filed]
            self.push({b.path: b.request() for b in filing}, by)
        self.run(self.now + STAGE)
        actors = [acting for b in self.benches.values() if (acting := b.case.act(b)) is not None]
        while actors:
            actors = [acting for acting in actors if next(acting, self) is not self]
            self.run(self.now + STAGE)
        self.run(self.now + STAGE)

    def wrong(self) -> dict[str, object]:
        """What of it came out otherwise than it should, by the case's sentence."""
        return {
            bench.case.id: (bench.verdict, bench.status)
            for bench in self.benches.values()
            if bench.verdict != bench.case.want
        }

    # -- commits ---------------------------------------------------------------------------------------------

    def tip(self) -> str:
        """Where main stands."""
        return repos.tip(self.repo)

    def tree(self, files: Mapping[str, repos.FileText], base: str) -> str:
        """A tree with these files on top of those of a commit."""
        repos.point(self.repo, "refs/heads/scratch", base)
        repos.commit(self.repo, files, "scratch")
        return repos.git(self.repo, "rev-parse", "refs/heads/scratch^{tree}")

    def commit(
        self, tree: str, parents: Sequence[str], by: str | Signer | None, author: str = "", text: str = ""
    ) -> str:
        """A commit object, signed by somebody or nobody; its author is whoever that says."""
        name = author or (by if isinstance(by, str) else "bo")
        who = f"{name} <{name}@example.com> {int(self.now.timestamp())} +0000"
        head = [f"tree {tree}", *(f"parent {oid}" for oid in parents), f"author {who}", f"committer {who}"]
        body = f"\n\n{text or 'Change'}\n"
        payload = ("\n".join(head) + body).encode()
        if by is not None:
            signer = machine_key(by) if isinstance(by, str) else by
            signature = sign(signer, GIT, payload).rstrip("\n").replace("\n", "\n ")
            payload = ("\n".join([*head, f"gpgsig {signature}"]) + body).encode()
        return repos.write_object(self.repo, "commit", payload)

    def move(self, oid: str) -> str:
        """Main stands there now."""
        repos.point(self.repo, "refs/heads/main", oid)
        return oid

    def push(
        self, files: Mapping[str, repos.FileText], by: str | Signer | None = "bo", author: str = ""
    ) -> str:
        """One commit on main."""
        return self.move(self.side(files, by, author=author))

    def side(
        self,
        files: Mapping[str, repos.FileText],
        by: str | Signer | None = "bo",
        base: str = "",
        author: str = "",
    ) -> str:
        """One commit beside main."""
        base = base or self.tip()
        return self.commit(self.tree(files, base), [base], by, author)

    def merge(
        self,
        sides: Iterable[str],
        by: str | Signer | None,
        files: Mapping[str, repos.FileText] = {},
        *,
        author: str = "",
        text: str = "Merge pull request #1",
    ) -> str:
        """A merge on main; `files` are what the merge makes up by itself."""
        sides, tip = list(sides), self.tip()
        tree = f"{tip}^{{tree}}"
        for side in sides:
            merged = repos.git(self.repo, "merge-tree", "--write-tree", f"{tip}", side).splitlines()[0]
            tip = self.commit(merged, [tip, side], None)
            tree = merged
        if files:
            tree = self.tree(files, tip)
        return self.move(self.commit(tree, [self.tip(), *sides], by, author, text))


@dataclass
class Bench:
    """One case before the court."""

    court: Court
    slice: str
    case: Case
    is_let_in: bool = False  # since `from_now`, a word let it in
    is_rejected: bool = False
    status: GPRStatus | None = None

    def look(self, status: GPRStatus) -> None:
        """What the controller made of it."""
        self.status = status
        approval = status.approval
        if status.phase not in TERMINAL and approval is not None and approval.decision == "approve":
            self.is_let_in = True
        self.is_rejected = self.is_rejected or str(status.phase) == "Rejected"

    @property
    def verdict(self) -> str:
        """What the case came to, in the words of `Case.want`."""
        if self.status is None:
            return "waiting"  # it is not even on record
        if "extended" in self.case.want:
            return "extended" if self.status.extended_by else "not extended"
        if self.is_rejected:
            return "rejected"
        return "approved" if self.is_let_in else "waiting"

    def from_now(self) -> None:
        """What was right so far is forgotten."""
        self.is_let_in = False

    # -- what people write -----------------------------------------------------------------------------------

    @property
    def key(self) -> str:
        """slice/name."""
        return f"{self.slice}/big"

    @property
    def path(self) -> str:
        """File of the request."""
        return world.gpr_path(self.key)

    def request(self, **changes: object) -> str:
        """The request's file: two nodes of eight GPUs, where eight GPUs are free."""
        spec: dict[str, object] = {"nodes": 2, "duration": "5m", **self.case.spec, **changes}
        content = {name: value for name, value in spec.items() if value is not None}
        return world._document("GPR", "big", {"slice": self.slice, **content})

    @property
    def digest(self) -> str:
        """Of the request as the controller has it."""
        assert self.status is not None
        return self.status.spec_digest

    def file(self, by: str = "ada") -> str:
        """File of somebody's word."""
        return f"approvals/{self.slice}/big/{by}.yaml"

    def content(self, by: str = "ada", **spec: object) -> dict[str, Any]:
        """An Approval that covers the request, unsigned."""
        base = {
            "slice": self.slice,
            "gpr": "big",
            "decision": "approve",
            "specDigest": spec.get("specDigest") or self.digest,
            "limit": {"gpus": 1000, "nodes": 100},
            "notAfter": LONG,
            **spec,
        }
        head = {"apiVersion": "egs.dev/v1alpha1", "kind": "Approval", "metadata": {"name": by}}
        return {**head, "spec": {name: value for name, value in base.items() if value is not None}}

    def word(
        self,
        by: str = "ada",
        signer: Signer | str | None = None,
        *,
        namespace: str = NAMESPACE,
        project: str = "default",
        after: Mapping[str, object] = {},
        **spec: object,
    ) -> str:
        """A signed Approval; `after` changes what it says after it was signed."""
        content = self.content(by, **spec)
        known = signer if isinstance(signer, PrivateKey | Key) else machine_key(signer or by)
        signed = sign_content(content, known, namespace, project)
        content["spec"] |= {"signature": signed, **after}
        content["spec"] = {name: value for name, value in content["spec"].items() if value is not None}
        return dump(content)

    def put(self, text: repos.FileText, by: str = "ada", pusher: str = "") -> None:
        """The word's file on main, pushed by whoever carries words in this court."""
        self.court.push({self.file(by): text}, pusher or self.court.courier)


def sign_content(content: Mapping[str, Any], signer: Signer, namespace: str, project: str) -> str:
    """The signature of what an Approval says."""
    approval = world.parsed(
        f"approvals/{content['spec']['slice']}/{content['spec']['gpr']}/{content['metadata']['name']}.yaml",
        dump(content),
    )
    assert isinstance(approval, Approval)
    return sign(signer, namespace, statement(project, approval))


def person(name: str, **more: object) -> dict[str, object]:
    """Somebody as manifests list them, with a key of their own."""
    return {"email": f"{name}@example.com", "keys": [machine_key(name).public], **more}
