"""A real repository in which people with keys bring changes to main in every way there is, and the gate that judges it.

People: ada is the admin; olga owns slice a, bo is its member, cy is a member of slice b; eve is nobody, and may push.
The operator's trust folder names ada's key and a service's; the others' keys stand in the manifests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from reconciler.forges.forge_port import Forge
from reconciler.model.evidence import GIT, Admitted, Level
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.local_store import LocalStore
from reconciler.trust.authorised_tree import InForce
from reconciler.trust.gate import Gate
from reconciler.trust.keyring import Keyring
from reconciler.trust.signature_check import SystemVerifier
from reconciler.trust.sshsig import PrivateKey
from reconciler.trust.step_evidence import Sources
from schemas.reading.reader import READER_VERSION
from schemas.status.judgements import TrustRecord
from tests.support import repos
from tests.support.machinekeys import key, keyring, line
from tests.support.world import START, _document, cluster, gpr, gpr_path, project, slice_

Files = Mapping[str, repos.FileText]

LINES = (
    line("ada@example.com", "ada"),
    line("service:door", "door"),
    line("service:api/all", "api"),
)
"""allowed_signers of the operator."""


def person(name: str, *, keys: Sequence[str] | None = None, account: int = 0) -> dict[str, Any]:
    """Somebody with the key of their name."""
    found: dict[str, Any] = {"email": f"{name}@example.com"}
    listed = [key(name).public] if keys is None else [key(each).public for each in keys]
    found |= {"keys": listed} if listed else {}
    return found | ({"forge": {"login": name, "id": account}} if account else {})


ACCOUNTS = {"ada": 11, "olga": 12, "bo": 13, "cy": 14}


def base_files(accounts: Mapping[str, int] = ACCOUNTS) -> dict[str, str]:
    """The repository at the beginning; `accounts` are people's numbers on the forge."""
    people = {name: person(name, account=number) for name, number in accounts.items()}
    ada = {"email": "ada@example.com", "forge": people["ada"]["forge"]}
    return {
        "README.md": "A fleet.\n",
        "project.yaml": project(admins=[ada]),
        "clusters/east.yaml": cluster(nodes=200),
        "templates/t.yaml": _document("GPRTemplate", "t", {"nodes": 1}),
        "slices/a/slice.yaml": slice_(
            "a", members=[people["bo"]], owners=[people["olga"]], quota={"gpus": 16}
        ),
        "slices/b/slice.yaml": slice_("b", members=[people["cy"]], quota={"gpus": 16}),
        "requests/team.yaml": _document(
            "WorkspaceRequest",
            "team",
            {"requester": people["olga"], "clusters": ["east"], "namespaces": ["team"]},
        ),
        gpr_path("a/old"): gpr("a", "old"),
        gpr_path("a/moved"): gpr("a", "moved", move=-3),
        gpr_path("b/old"): gpr("b", "old"),
        "approvals/b/good/ada.yaml": _document(
            "Approval",
            "ada",
            {
                "slice": "b",
                "gpr": "good",
                "decision": "approve",
                "limit": {"gpus": 64, "nodes": 8},
                "specDigest": "sha256:" + "0" * 64,
            },
        ),
        "approvals/b/one/ada.yaml": _document(
            "Approval",
            "ada",
            {"slice": "b", "gpr": "one", "decision": "reject", "specDigest": "sha256:" + "0" * 64},
        ),
        "approvals/b/old/ada.yaml": _document(
            "Approval",
            "ada",
            {"slice": "b", "gpr": "old", "decision": "reject", "specDigest": "sha256:" + "0" * 64},
        ),
    }


@dataclass
class Land:
    """One repository; `at` is where main stands."""

    repo: Path
    at: str = ""
    now: datetime = START
    lines: tuple[str, ...] = LINES
    revoked: tuple[str, ...] = ()
    forge: Forge | None = None
    _trees: dict[Any, str] = field(default_factory=dict)
    _store: LocalStore | None = None

    @classmethod
    def begun(cls, folder: Path, files: Files | None = None) -> Land:
        """With `base_files` (or others) on main."""
        repo = repos.bare(folder / "main.git", dict(files or base_files()))
        return cls(repo, repos.tip(repo))

    # -- commits ---------------------------------------------------------------------------------------------

    def tree(self, files: Files, base: str | None) -> str:
        """A tree with these files (None deletes) on top of those of a commit."""
        known = (frozenset(files.items()), base)
        if known not in self._trees:
            if base is None:
                repos.git(self.repo, "update-ref", "-d", "refs/heads/scratch")
            else:
                repos.point(self.repo, "refs/heads/scratch", base)
            oid = repos.commit(self.repo, files, "scratch")
            self._trees[known] = repos.git(self.repo, "rev-parse", f"{oid}^{{tree}}")
        return self._trees[known]

    def commit(
        self, files: Files, by: str | None, *parents: str, text: str = "Change", author: str = "bo"
    ) -> str:
        """A commit with these files on top of its first parent's, signed by somebody or nobody."""
        return self.of_tree(
            self.tree(files, parents[0] if parents else None), by, *parents, text=text, author=author
        )

    def of_tree(
        self, tree: str, by: str | None, *parents: str, text: str = "Change", author: str = "bo"
    ) -> str:
        """A commit of a tree that is there."""
        who = f"{author} <{author}@example.com> {int(self.now.timestamp())} +0000"
        head = [f"tree {tree}", *(f"parent {oid}" for oid in parents), f"author {who}", f"committer {who}"]
        body = f"\n\n{text}\n"
        payload = ("\n".join(head) + body).encode()
        if by is not None:
            signature = self.key(by).sign(GIT, payload).rstrip("\n").replace("\n", "\n ")
            payload = ("\n".join([*head, f"gpgsig {signature}"]) + body).encode()
        return repos.write_object(self.repo, "commit", payload)

    def key(self, name: str) -> PrivateKey:
        """The key of that name."""
        return key(name)

    def merge(
        self,
        side: str | Iterable[str],
        by: str | None,
        files: Files | None = None,
        text: str = "Merge pull request #1",
    ) -> str:
        """A merge of sides into main; `files` are what it makes up by itself."""
        sides = [side] if isinstance(side, str) else list(side)
        tip = self.at
        for each in sides:
            merged = repos.git(self.repo, "merge-tree", "--write-tree", tip, each).splitlines()[0]
            tip = self.of_tree(merged, None, tip, each)
        tree = self.tree(files, tip) if files else repos.git(self.repo, "rev-parse", f"{tip}^{{tree}}")
        return self.of_tree(tree, by, self.at, *sides, text=text)

    def pushed(self, oid: str) -> str:
        """Main stands there now."""
        repos.point(self.repo, "refs/heads/main", oid)
        self.at = oid
        return oid

    def push(self, files: Files, by: str | None, text: str = "Change") -> str:
        """One commit, straight onto main."""
        return self.pushed(self.commit(files, by, self.at, text=text))

    # -- judging ---------------------------------------------------------------------------------------------

    def keyring(self) -> Keyring:
        """What the operator's folder says now."""
        return keyring(*self.lines, revoked=self.revoked) if self.lines else Keyring()

    def gate(
        self, level: Level = "signature", *, adopt: bool = False, in_force: InForce = lambda _: None
    ) -> Gate:
        """A gate with nothing in its memory; `in_force` are documents that the status branch keeps."""
        self._store = self._store or LocalStore(self.repo)
        cache = DocumentCache(None, READER_VERSION)
        sources = Sources(level, self.keyring, SystemVerifier(), self.forge)
        return Gate(self._store, cache, sources, in_force, adopt=adopt)

    def admit(self, gate: Gate, record: TrustRecord | None = None, intent: str = "") -> Admitted:
        """Main judged to its end."""
        found = gate.admit(self.at, record, intent, self.now)
        while found.has_more:
            found = gate.admit(self.at, record, intent, self.now)
        return found


def rules(admitted: Admitted) -> dict[str, str]:
    """Held paths with the rule that holds each."""
    return {change.path: change.rule for change in admitted.held}
