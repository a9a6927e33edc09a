"""A folder of manifests, or a repository's work tree: documents are its present files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from egs.commands.output import note
from reconciler.sources.bare_repository import Bare
from reconciler.sources.command_errors import NotAllowed, WrongUse
from reconciler.sources.here import cache_folder
from reconciler.sources.source import STATUS, Changes
from reconciler.sources.work_tree import WorkTree, person
from reconciler.status.tree import Loaded
from reconciler.store.document_cache import DocumentCache
from reconciler.store.memory_store import MemoryRemote, MemoryStore
from reconciler.store.store_port import REGULAR_MODE, Contents, Draft, Outcome, Person, Store
from schemas.errors import UserError
from schemas.reading.reader import PATHS, READER_VERSION, rule_of
from schemas.reading.strict_yaml import MAX_BYTES
from schemas.rules.check import File
from schemas.rules.view import PROJECT

TOP = tuple(sorted({rule.path.split("/")[0] for rule in PATHS}))
"""The entries of a folder's root that can contain documents; others are not even read."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Folder:
    """`source.Source` on files. They are all read, once."""

    is_folder = True

    def __init__(self, root: Path, tree: WorkTree | None, stack: contextlib.ExitStack) -> None:
        self.store: Store = MemoryStore(MemoryRemote())
        self.cache = _cache(root, tree)
        self.root = root
        self.is_worktree = tree is not None
        self._tree = tree
        self._stack = stack
        self._status: Bare | None = None
        self._has_status = True
        self._commits: dict[str | None, str] = {}

    @classmethod
    @contextlib.contextmanager
    def opened(cls, root: Path, tree: WorkTree | None) -> Iterator[Self]:
        """Opens nothing yet; what is opened later is closed at the end."""
        with contextlib.ExitStack() as stack:
            source = cls(root, tree, stack)
            stack.callback(source.cache.close)
            yield source

    def commit_of(self, ref: str | None) -> str:
        """In `store` every state of the files is a commit."""
        if ref is None and not os.path.lexists(self.root / PROJECT):
            raise NotAllowed(
                f"{self.root} is not a repository: it has no {PROJECT}; choose one with --repo, "
                "or create one with `egs init`"
            )
        key = self.shown(ref)
        if key not in self._commits:
            files = {
                path: data for path, mode, data in self.files(ref) if mode == REGULAR_MODE and rule_of(path)
            }
            draft = Draft(files, key or "files", Person("egs", "egs@egs.dev"), _EPOCH)
            self._commits[key] = self.store.write(draft)
        return self._commits[key]

    def contents(self, ref: str | None) -> tuple[Contents, str]:
        """A commit of the work tree is read from the repository's objects."""
        if ref is None or self._tree is None:
            return self.store, self.commit_of(ref)
        return self._tree.reader, self._tree.commit_of(ref)

    def note(self, notes: Mapping[str, str]) -> None:
        if self._status is not None:
            self._status.note(notes)

    def skim(self) -> None:
        remote = self._status_remote()
        if remote is not None:
            remote.skim()

    def shown(self, ref: str | None) -> str | None:
        return None if ref is None else self._history().commit_of(ref)

    def files(self, ref: str | None) -> list[File]:
        if ref is not None:
            return self._history().files(self._history().commit_of(ref), TOP)
        return sorted(_walk(self.root, has_modes=self._tree is not None))

    def status(self) -> tuple[Store, str] | None:
        remote = self._status_remote()
        return None if remote is None else remote.status()

    def go_offline(self) -> None:
        """From now on only the local files count: there is no status."""
        self._has_status = False

    def loaded(self, now: datetime) -> Loaded | None:
        remote = self._status_remote()
        return None if remote is None else remote.loaded(now)

    def author(self, given: str | None) -> Person:
        return person(given, self.root)

    def publish(self, changes: Changes, commit: str, base: str) -> Outcome:  # noqa: ARG002 - files have no history
        """Writes and deletes the files, never through a symlink."""
        for path, data in changes.items():
            file = self.root / path
            if not file.resolve().is_relative_to(self.root):
                raise WrongUse(f"{path} leads out of {self.root}; replace the symlink with a folder")
            if data is None:
                file.unlink(missing_ok=True)
                _remove_empty(file.parent, self.root)
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                _replace(file, data)
        return Outcome.COMMITTED

    def upstream(self) -> Bare | None:
        if self._tree is None or self._tree.origin() is None:
            return None
        return self._status_remote()

    def _history(self) -> WorkTree:
        if self._tree is None:
            raise WrongUse(f"{self.root} is a plain folder without versions; omit the ref")
        return self._tree

    def _status_remote(self) -> Bare | None:
        """The repository with the status branch: origin if there is one, else this one."""
        if self._tree is None or not self._has_status:
            return None
        if self._status is None:
            origin = self._tree.origin()
            if origin is None and not self._tree.has_branch(STATUS):
                return None
            try:
                self._status = self._stack.enter_context(Bare.opened(origin or str(self.root), self.root))
            except UserError as error:
                note(f"the status is at origin, which cannot be used: {error}")
                self._has_status = False
        return self._status


def _cache(root: Path, tree: WorkTree | None) -> DocumentCache:
    """Of parsed documents by content, kept for the next command; for a plain folder in memory only."""
    name = hashlib.sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    kept = None if tree is None else cache_folder() / "read" / f"tree-{name}.documents.sqlite"
    return DocumentCache(kept, READER_VERSION)


def _walk(root: Path, *, has_modes: bool) -> Iterator[File]:
    todo = [root / name for name in TOP if os.path.lexists(root / name)]
    while todo:
        path = todo.pop()
        about = path.lstat()
        if stat.S_ISDIR(about.st_mode):
            todo.extend(path.iterdir())
            continue
        name = path.relative_to(root).as_posix()
        if not stat.S_ISREG(about.st_mode):
            yield name, 0o120000, b""
            continue
        # The executable bit only matters where Git records it.
        mode = 0o100755 if has_modes and about.st_mode & stat.S_IXUSR else REGULAR_MODE
        with path.open("rb") as file:
            yield name, mode, file.read(MAX_BYTES + 1)


def _replace(file: Path, data: bytes) -> None:
    """Atomic: readers see the old file or the new one."""
    draft = file.with_name(f".{file.name}.egs")
    draft.write_bytes(data)
    draft.replace(file)


def _remove_empty(folder: Path, root: Path) -> None:
    """Git has no empty folders, so none is left; the top-level folders stay."""
    while folder.parent != root and folder != root and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
