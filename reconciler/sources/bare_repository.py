"""A bare repository or URL, read through a mirror in the user's cache folder and written by compare-and-swap."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Self

from egs.commands.output import note, working
from reconciler.credentials import from_environment
from reconciler.settings import DEFAULTS
from reconciler.sources.believed_keys import believed
from reconciler.sources.command_errors import NotAllowed, WrongUse
from reconciler.sources.commit_signing import must_sign, person_signs
from reconciler.sources.here import cache_folder
from reconciler.sources.source import MAIN, STATUS, Changes, no_main
from reconciler.sources.work_tree import person
from reconciler.status.branch import StatusBranch
from reconciler.status.status_cache import RECORDS_VERSION
from reconciler.status.tree import Loaded
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_names import is_branch
from reconciler.store.git.git_store import GitStore
from reconciler.store.git.remote_address import parse
from reconciler.store.store_port import Contents, Outcome, Person
from schemas.errors import Fault, UserError
from schemas.reading.reader import READER_VERSION
from schemas.reading.strict_yaml import MAX_BYTES
from schemas.rules.check import File

_OID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_FILES = (0o100644, 0o100755)
_REMOTE = re.compile(r"(?:^|\s)remote: (.*?)(?=\s+remote: |\s+To \S+ ! \[|\s+error: |$)")


class Bare:
    """`source.Source` on a remote; branches are fetched once, and again after a lost push race."""

    is_folder = False
    is_worktree = False

    def __init__(
        self, store: GitStore, caches: tuple[DocumentCache, DocumentCache], folder: Path, address: str
    ) -> None:
        """`caches` are those of documents and of records; `folder` is where git's user configuration is read."""
        self.store = store
        self.cache = caches[0]
        self.address = address
        self._folder = folder
        self._tips: Mapping[str, str] | None = None
        settings = replace(DEFAULTS, status_branch=STATUS)
        self._status = StatusBranch(store, settings, "reader", believed().controllers(), caches[1])
        self._told = ""

    @classmethod
    @contextlib.contextmanager
    def opened(cls, remote: str, tree: Path | None = None) -> Iterator[Self]:
        """Opens the mirror, a temporary one if it is in use; `tree` is the work tree whose origin this is, if any."""
        address = parse(remote)
        home = cache_folder()
        name = hashlib.sha256(address.url.encode()).hexdigest()[:16]
        with contextlib.ExitStack() as stack:
            store = _mirrored(remote, home / "mirrors" / name, stack)
            stack.callback(store.close)
            caches = kept_of(name)
            for cache in caches:
                stack.callback(cache.close)
            local = address.protocol == "file" and "://" not in address.url
            folder = tree or (Path(address.url) if local else Path.cwd())
            yield cls(store, caches, folder, remote)

    def commit_of(self, ref: str | None) -> str:
        """A branch, or the full id of a commit on a branch."""
        name = MAIN if ref is None else ref.removeprefix("refs/heads/")
        tips = self._fetched()
        if name in tips:
            return tips[name]
        if ref is None:
            raise no_main()
        return self._fetch_other(name)

    def contents(self, ref: str | None) -> tuple[Contents, str]:
        return self.store, self.commit_of(ref)

    def note(self, notes: Mapping[str, str]) -> None:
        self._status.note(notes)

    def skim(self) -> None:
        self._status.skim()

    def shown(self, ref: str | None) -> str | None:
        return self.commit_of(ref)

    def files(self, ref: str | None) -> list[File]:
        """An oversized blob is represented by its size. NotAllowed for a main that git itself refuses."""
        self._fetched()
        for alarm in self.store.alarms() if ref is None else ():
            if alarm.startswith(f"branch {MAIN} "):
                raise NotAllowed(alarm, "BranchRefused")
        entries = [e for e in self.store.diff(None, self.commit_of(ref)) if e.oid is not None]
        oids = {e.oid for e in entries if e.mode in _FILES and e.oid is not None}
        sizes = self.store.sizes(oids)
        blobs = self.store.read(oid for oid in oids if sizes[oid] <= MAX_BYTES)
        large = bytes(MAX_BYTES + 1)
        return [(e.path, e.mode, blobs.get(e.oid or "", large) if e.mode in _FILES else b"") for e in entries]

    def status(self) -> tuple[GitStore, str] | None:
        self._fetched()
        counts = self._status.counting()
        complaint = self._status.complaint() or ""
        if complaint and complaint != self._told:
            what = "the last signed version is shown" if counts is not None else "it does not count"
            note(f"branch {STATUS}: {complaint}; {what}")
        self._told = complaint
        return None if counts is None else (self.store, counts)

    def loaded(self, now: datetime) -> Loaded | None:
        return None if self.status() is None else self._status.read(now)

    def author(self, given: str | None) -> Person:
        return person(given, self._folder)

    def publish(self, changes: Changes, commit: str, base: str) -> Outcome:  # noqa: ARG002 - `commit` holds them
        """Afterwards the branch is always read again before the next use."""
        outcome = self.store.push(MAIN, commit, base)
        self._tips = None
        return outcome

    def upstream(self) -> Self:
        return self

    def signed(self, commit: str) -> str:
        """Unsigned if git itself would not sign."""
        sign = person_signs(self._folder)
        if sign is None:
            return commit
        try:
            return self.store.signed(commit, sign)
        except UserError as error:
            if must_sign(self._folder):
                raise NotAllowed(str(error), error.reason) from error
            note(f"{error}; the commit is not signed")
            return commit

    def refusal(self) -> str:
        """The lines sent by the server."""
        return " ".join(" ".join(_REMOTE.findall(self.store.refusal)).split()).rstrip(".")

    def push_new(self, branch: str, commit: str) -> Outcome:
        self.store.fetch([branch])
        if branch in self.store.tips():
            return Outcome.CONFLICT
        return self.store.push(branch, commit, None)

    def _fetched(self) -> Mapping[str, str]:
        if self._tips is None:
            with working("Fetching"):
                self._tips = self.store.fetch([MAIN, STATUS])
        return self._tips

    def _fetch_other(self, name: str) -> str:
        if is_branch(name):
            found = self.store.fetch([name]).get(name)
            if found is not None:
                return found
        if _OID.fullmatch(name):
            self.store.fetch(["*", "*/*"])
            with contextlib.suppress(Fault):
                return self.store.commit(name).oid
        raise WrongUse(f"the repository has no {name}; give one of its branches, or a commit's full id")


def kept_of(name: str) -> tuple[DocumentCache, DocumentCache]:
    """The commands' caches of one repository's documents and records, under its own name."""
    home = cache_folder() / "read"
    return (
        DocumentCache(home / f"{name}.documents.sqlite", READER_VERSION),
        DocumentCache(home / f"{name}.records.sqlite", RECORDS_VERSION),
    )


def _mirrored(remote: str, mirror: Path, stack: contextlib.ExitStack) -> GitStore:
    credentials = from_environment(os.environ)
    try:
        return GitStore(remote, mirror, credentials=credentials)
    except (UserError, OSError) as error:
        # In use by another command, or not writable: reading works anyway.
        if isinstance(error, UserError) and error.reason != "MirrorInUse":
            raise
    private = tempfile.mkdtemp(prefix="egs-")
    stack.callback(shutil.rmtree, private, ignore_errors=True)
    return GitStore(remote, Path(private), credentials=credentials)
