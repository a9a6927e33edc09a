"""The authorised tree: for every governed file the content that counts, what is held instead, and the people
in it.

An authorised but unreadable document leaves the people unchanged: the last readable version is in force, as
everywhere. One owner; `reconciler.trust.gate` changes it step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from reconciler.model.evidence import Denial
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import REGULAR_MODE, Contents, Entry
from reconciler.trust.authority import Authority, Team, slices_in, team_of, with_project
from reconciler.trust.keyring import Keyring
from reconciler.trust.policy import is_governed
from reconciler.trust.vouchers import File, file_of
from schemas.documents.base import Document
from schemas.documents.slice import Slice
from schemas.reading.reader import from_json, read_with_text, rule_of
from schemas.reading.strict_yaml import MAX_BYTES
from schemas.rules.view import PROJECT
from schemas.status.judgements import HeldChange

PEOPLE = frozenset({"Project", "Slice", "WorkspaceRequest"})
"""Kinds of documents that define people."""

InForce = Callable[[str], Document | None]
"""The document in force for a path whose content is unreadable."""


class Documents:
    """Reads documents by content, through the cache shared with the rest of the controller."""

    def __init__(self, store: Contents, cache: DocumentCache) -> None:
        self._store, self._cache = store, cache

    def read(self, files: Mapping[str, File | None]) -> dict[str, Document]:
        """The readable documents among the files, read in one round."""
        wanted = {path: file.oid for path, file in files.items() if file and file.mode == REGULAR_MODE}
        known = self._cache.get_many(wanted.values())
        sizes = self._store.sizes({oid for oid in wanted.values() if oid not in known})
        blobs = self._store.read(oid for oid, size in sizes.items() if size <= MAX_BYTES)
        fresh: dict[str, bytes] = {}
        found: dict[str, Document] = {}
        for path, oid in wanted.items():
            if oid in known:
                outcome = from_json(path, known[oid])
            elif oid in blobs:
                outcome, text = read_with_text(path, blobs[oid])
                fresh |= {} if text is None else {oid: text}
            else:
                continue
            if isinstance(outcome, Document):
                found[path] = outcome
        self._cache.put_many(fresh)
        return found


class Authorised:
    """The tree that counts at one commit of main."""

    def __init__(self, documents: Documents, in_force: InForce) -> None:
        self._documents = documents
        self._in_force = in_force
        self._files: dict[str, File] = {}
        self._people: dict[str, Document] = {}
        self._authority: Authority | None = None
        self._teams: dict[str, tuple[Slice, Team]] = {}
        self.held: dict[str, HeldChange] = {}

    def begin(self, entries: Iterable[Entry], held: Iterable[HeldChange]) -> None:
        """All files of a commit, and the changes held in it."""
        self.held = {change.path: change for change in held}
        self._files = {
            e.path: File(e.oid, e.mode) for e in entries if e.oid is not None and is_governed(e.path)
        }
        for path, change in self.held.items():
            self._put(path, file_of(change.authorised, change.mode))
        people = [path for path in self._files if _is_of_people(path)]
        self._people, self._authority = {}, None
        self._enrol({path: self._files[path] for path in people})
        if PROJECT not in self._people and (kept := self._in_force(PROJECT)) is not None:
            self._people[PROJECT] = kept

    def file(self, path: str) -> File | None:
        """The content that counts at that path."""
        return self._files.get(path)

    def authority(self, keyring: Keyring) -> Authority:
        """The people of this tree."""
        if self._authority is None or self._authority.keyring is not keyring:
            self._authority = with_project(self._people.get(PROJECT), self._current_teams(), keyring)
        return self._authority

    def _current_teams(self) -> dict[str, Team]:
        """Computed again only for slices whose documents changed."""
        known, self._teams = self._teams, {}
        for slice_ in slices_in(self._people):
            name = slice_.metadata.name
            old = known.get(name)
            self._teams[name] = old if old is not None and old[0] == slice_ else (slice_, team_of(slice_))
        return {name: team for name, (_, team) in self._teams.items()}

    def project_name(self) -> str:
        """The name used in approval statements."""
        project = self._people.get(PROJECT)
        return "" if project is None else project.metadata.name

    def accept(self, files: Mapping[str, File | None]) -> None:
        """From now on these contents count."""
        self._enrol({path: file for path, file in files.items() if _is_of_people(path)})
        for path, file in files.items():
            self.held.pop(path, None)
            self._put(path, file)

    def hold(self, denial: Denial, found: File | None, commit: str, now: datetime) -> None:
        """A commit's content of this file does not count; the previous one still does."""
        counts = self._files.get(denial.path)
        self.held[denial.path] = HeldChange(
            path=denial.path,
            authorised=None if counts is None else counts.oid,
            mode=REGULAR_MODE if counts is None else counts.mode,
            found=None if found is None else found.oid,
            commit=commit,
            rule=denial.rule,
            message=denial.message,
            since=now.replace(microsecond=0),
        )

    def _put(self, path: str, file: File | None) -> None:
        if file is None:
            self._files.pop(path, None)
        else:
            self._files[path] = file

    def _enrol(self, files: Mapping[str, File | None]) -> None:
        """Updates the people from these files; an unreadable file leaves them unchanged."""
        if not files:
            return
        read = self._documents.read(files)
        for path, file in files.items():
            if path in read:
                self._people[path] = read[path]
            elif file is None and path != PROJECT:  # without a project nobody could change anything again
                self._people.pop(path, None)
            elif path not in self._people and (kept := self._in_force(path)) is not None:
                self._people[path] = kept
        self._authority = None


def _is_of_people(path: str) -> bool:
    found = rule_of(path)
    return found is not None and found[0].kind in PEOPLE
