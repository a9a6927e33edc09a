"""The store in memory: the counterpart of `reconciler.store.git.git_store` for tests and simulations.

Blobs have git's ids; commits have ids derived from their content. Each commit costs O(files): for thousands,
not millions.

Held by tests/contract/test_store_contract.py, like the Git driver.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from reconciler.store.git import git_names
from reconciler.store.git.git_objects import blob_oid
from reconciler.store.store_port import (
    REGULAR_MODE,
    Commit,
    Draft,
    Entry,
    Outcome,
    Sign,
    first_parents,
    heads,
)
from reconciler.store.trailers import parse_trailers
from schemas.errors import Fault


@dataclass(frozen=True, slots=True)
class _Stored:
    commit: Commit
    files: Mapping[str, tuple[int, str]]


@dataclass(slots=True)
class MemoryRemote:
    """The shared remote: branches and objects."""

    tips: dict[str, str] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    commits: dict[str, _Stored] = field(default_factory=dict)

    def commit(self, oid: str) -> Commit:
        return self.commits[oid].commit

    def fetch(self, patterns: Sequence[str]) -> dict[str, str]:
        return git_names.matching(patterns, self.tips)

    def push(self, branch: str, new: str, expected: str | None) -> Outcome:
        """The compare-and-swap on the server."""
        tip = self.tips.get(branch)
        if tip == new:
            return Outcome.COMMITTED
        if tip != expected:
            return Outcome.CONFLICT
        if tip is None and git_names.in_the_way(branch, self.tips):
            return Outcome.REFUSED
        self.tips[branch] = new
        return Outcome.COMMITTED

    def history(self, oid: str, known: AbstractSet[str] = frozenset()) -> set[str]:
        """A commit and all its ancestors, down to known ones."""
        todo, seen = [oid], set[str]()
        while todo:
            step = todo.pop()
            if step not in seen and step not in known:
                seen.add(step)
                todo.extend(self.commits[step].commit.parents)
        return seen


class MemoryStore:
    """`Store` on a `MemoryRemote`; several stores share one remote, each with its own key if any."""

    def __init__(self, remote: MemoryRemote, sign: Sign | None = None) -> None:
        self._remote = remote
        self._sign = sign
        self._tips: dict[str, str] = {}
        self._known: set[str] = set()
        self._remembered: dict[str, str] = {}

    def fetch(self, patterns: Sequence[str]) -> Mapping[str, str]:
        wanted = [git_names.branch_pattern(pattern) for pattern in patterns]
        if not wanted:
            return {}
        found = self._remote.fetch(wanted)
        for name in git_names.matching(wanted, self._tips):
            del self._tips[name]
        self._tips.update(found)
        for oid in found.values():
            self._known |= self._remote.history(oid, self._known)
        return found

    def tips(self) -> Mapping[str, str]:
        return dict(self._tips)

    def alarms(self) -> Sequence[str]:
        return []

    def commit(self, oid: str) -> Commit:
        self._stored(oid)
        return self._remote.commit(oid)

    def _stored(self, oid: str) -> _Stored:
        if git_names.full_oid(oid) not in self._known:
            raise Fault(f"the store has no commit {oid}; fetch the branch that contains it", "CorruptObjects")
        return self._remote.commits[oid]

    def log(self, oid: str, limit: int) -> Sequence[Commit]:
        return first_parents(self.commit, oid, limit)

    def parent(self, oid: str) -> str | None:
        return next(iter(self._stored(oid).commit.parents), None)

    def is_ancestor(self, old: str, new: str) -> bool:
        self._stored(old)
        self._stored(new)
        return old in self._remote.history(new)

    def last_change(self, commit: str, path: str) -> str | None:
        wanted, oid = git_names.tree_path(path), commit
        while True:
            parents = self.commit(oid).parents
            changed = self.diff(parents[0] if parents else None, oid)
            if any(entry.path == wanted or entry.path.startswith(f"{wanted}/") for entry in changed):
                return oid
            if not parents:
                return None
            oid = parents[0]

    def merge_bases(self, one: str, other: str) -> Sequence[str]:
        common = self._remote.history(self._stored(one).commit.oid)
        common &= self._remote.history(self._stored(other).commit.oid)
        below = [self._remote.history(oid) - {oid} for oid in common]
        return sorted(common.difference(*below))

    def keep(self, oid: str) -> bool:
        """Nothing is ever dropped here."""
        if git_names.full_oid(oid) not in self._remote.commits:
            return False
        self._known |= self._remote.history(oid, self._known)
        return True

    def remember(self, branch: str, oid: str) -> None:
        """Nothing outlives the store here."""
        self._remembered[git_names.branch_name(branch)] = git_names.full_oid(oid)

    def remembered(self, branch: str) -> str | None:
        return self._remembered.get(branch)

    def mended(self) -> Sequence[str]:
        return ()

    def diff(self, old: str | None, new: str) -> Sequence[Entry]:
        before = {} if old is None else self._stored(old).files
        after = self._stored(new).files
        return [
            _entry(path, after) for path in sorted({**before, **after}) if before.get(path) != after.get(path)
        ]

    def sizes(self, oids: Iterable[str]) -> Mapping[str, int]:
        return {oid: len(self._blob(oid)) for oid in oids}

    def read(self, oids: Iterable[str]) -> Mapping[str, bytes]:
        return {oid: self._blob(oid) for oid in oids}

    def _blob(self, oid: str) -> bytes:
        if git_names.full_oid(oid) not in self._remote.blobs:
            raise Fault(f"the store has no blob {oid}; fetch the branch that contains it", "CorruptObjects")
        return self._remote.blobs[oid]

    def read_path(self, commit: str, path: str) -> bytes | None:
        found = self._stored(commit).files.get(git_names.tree_path(path))
        return None if found is None else self._blob(found[1])

    def write(self, draft: Draft) -> str:
        files = {} if draft.base is None else dict(self._stored(draft.base).files)
        parents = () if draft.parent is None else (self._stored(draft.parent).commit.oid,)
        _make_room(files, draft.changes)
        for path, content in draft.changes.items():
            if content is not None:
                files[git_names.tree_path(path)] = (REGULAR_MODE, blob_oid(content))
                self._remote.blobs[blob_oid(content)] = content
        payload = _payload(draft)
        signature = "" if self._sign is None else self._sign(payload)
        oid = hashlib.sha1(payload + signature.encode(), usedforsecurity=False).hexdigest()
        text = draft.message.rstrip("\n") + "\n"
        at = draft.at.replace(microsecond=0)
        trailers = parse_trailers(text)
        signed = payload if signature else b""
        committer = draft.committer or draft.author
        commit = Commit(oid, parents, draft.author, at, text, trailers, signature, signed, committer)
        self._remote.commits[oid] = _Stored(commit, files)
        self._known.add(oid)
        return oid

    def write_all(self, drafts: Sequence[Draft]) -> list[str]:
        heads(drafts)
        for path in (path for draft in drafts for path in draft.changes):
            git_names.tree_path(path)
        found: list[str] = []
        for draft in drafts:
            placed = replace(draft, base=found[-1], parent=found[-1]) if draft.follows else draft
            found.append(self.write(placed))
        return found

    def push(self, branch: str, new: str, expected: str | None) -> Outcome:
        self._stored(new)
        git_names.branch_name(branch)
        outcome = self._remote.push(branch, new, expected)
        if outcome is Outcome.COMMITTED:
            self._tips[branch] = new
        return outcome

    def in_the_way(self, branch: str) -> Sequence[str]:
        return git_names.in_the_way(branch, self._remote.tips)

    def close(self) -> None:
        """Does nothing."""


def _entry(path: str, files: Mapping[str, tuple[int, str]]) -> Entry:
    if path not in files:
        return Entry(path, None)
    mode, oid = files[path]
    return Entry(path, oid, mode)


def _make_room(files: dict[str, tuple[int, str]], changes: Mapping[str, bytes | None]) -> None:
    """Removes deleted paths, and files and folders replaced by a new one of the same name, as git does."""
    for path, content in changes.items():
        if path in files and content is None:
            del files[path]
        elif path not in files:
            parents = [path[:end] for end, letter in enumerate(path) if letter == "/" and content is not None]
            for name in [*parents, *(name for name in files if name.startswith(path + "/"))]:
                files.pop(name, None)


def _payload(draft: Draft) -> bytes:
    """The whole content of a commit, in place of a commit object."""
    changes = sorted((path, None if text is None else blob_oid(text)) for path, text in draft.changes.items())
    people = (draft.author, draft.committer or draft.author)
    said = (draft.base, draft.parent, draft.message, people, int(draft.at.timestamp()), changes)
    return repr(said).encode("utf-8", "surrogateescape")
