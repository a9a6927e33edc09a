"""Main as the writer sees it: its documents, its files, and recent changes by path.

Documents are read once, then updated at the cost of what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from portal.writes import parsed_files
from portal.writes.idempotency import since
from portal.writes.write_request import Changes
from reconciler.changes.main_documents import MainDocuments
from reconciler.documents.in_force import Desired
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_objects import blob_oid
from reconciler.store.store_port import REGULAR_MODE, Entry, Store
from schemas.documents.project import ProjectSpec
from schemas.reading import reader
from schemas.reading.strict_yaml import MAX_BYTES
from schemas.rules.repository import Outcome

MOST_COMMITS = 500
"""Most commits of others that are read one by one; of more, all changes count as the last commit's."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The last change of a file since this process started."""

    turn: int
    commit: str
    email: str
    name: str = ""


@dataclass(slots=True)
class MainTree:
    """For one owner. Everything here reflects the commit `tip`, apart from changes being tried."""

    store: Store
    tip: str
    documents: MainDocuments
    oids: dict[str, str]
    """Blob ids of the plain files, by path, without changes being tried."""
    turn: int = 0
    """Grows with every followed commit."""
    last: dict[str, Changed] = field(default_factory=dict)
    """By path; only files that have changed since the start."""

    @classmethod
    def at(
        cls,
        store: Store,
        cache: DocumentCache,
        tip: str,
        is_recorded: Callable[[str], bool] = lambda _: False,
    ) -> MainTree:
        """Reads all of main; `is_recorded` says whether the controller accepted the request of a file."""
        desired = Desired(store, cache)
        desired.repository.is_recorded = is_recorded
        desired.update(tip)
        oids = {e.path: e.oid for e in store.diff(None, tip) if e.oid is not None and e.mode == REGULAR_MODE}
        return cls(store, tip, MainDocuments(desired.repository, parsed_files.read_document), oids)

    @property
    def project(self) -> ProjectSpec | None:
        """The project's rules, if project.yaml is valid."""
        found = self.documents.repository.project
        return None if found is None else found.spec

    def content(self, path: str) -> bytes | None:
        """A file of main; None: there is none, which costs no read."""
        oid = self.oids.get(path)
        return None if oid is None else self.store.read([oid])[oid]

    def follow(self, tip: str) -> None:
        """Read up to that commit of main."""
        if tip == self.tip:
            return
        commits = since(self.store, self.tip, tip, MOST_COMMITS)
        if commits and commits[-1].parents[:1] == (self.tip,):
            steps = [(commit, self.store.diff(commit.parents[0], commit.oid)) for commit in reversed(commits)]
        else:
            steps = [(self.store.commit(tip), self.store.diff(self.tip, tip))]
        for commit, entries in steps:
            self.turn += 1
            who = commit.author
            for entry in entries:
                self.last[entry.path] = Changed(self.turn, commit.oid, who.email, who.name)
        latest = {e.path: e for _, entries in steps for e in entries}
        self.documents.update(self._read(latest))
        for path, entry in latest.items():
            self._put(path, entry.oid if entry.mode == REGULAR_MODE else None)
        self.tip = tip

    def _put(self, path: str, oid: str | None) -> None:
        if oid is None:
            self.oids.pop(path, None)
        else:
            self.oids[path] = oid

    def _read(self, entries: Mapping[str, Entry]) -> dict[str, Outcome]:
        oids = {e.oid for e in entries.values() if e.oid is not None and e.mode == REGULAR_MODE}
        sizes = self.store.sizes(oids)
        blobs = self.store.read(oid for oid, size in sizes.items() if size <= MAX_BYTES)
        large = bytes(MAX_BYTES + 1)
        return {
            path: None if e.oid is None else reader.read_document(path, blobs.get(e.oid, large), e.mode)
            for path, e in entries.items()
        }

    def landed(self, tip: str, steps: Mapping[str, tuple[Changes, str, str]]) -> None:
        """The tried changes are on main now: commits with their changes and authors, oldest first."""
        for oid, (changes, email, name) in steps.items():
            self.turn += 1
            self.last |= {path: Changed(self.turn, oid, email, name) for path in changes}
            for path, data in changes.items():
                self._put(path, None if data is None else blob_oid(data))
        self.tip = tip
