"""What the project needs of Git, and nothing else.

Two drivers implement this port: `reconciler.store.git.git_store.GitStore` (a bare mirror of a remote) and
`reconciler.store.memory_store.MemoryStore` (for tests); one contract suite runs on both. No driver uses a
work tree: files are read from the object store and commits are written straight into it.

Terms: an `oid` is a full hexadecimal object id; a `branch` is a name below `refs/heads/`; a `path` is a
slash-separated name inside a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Protocol

REGULAR_MODE = 0o100644
BEFORE = "before"
"""In a draft's `base` and `parent`: the previous draft in the same `Store.write_all`. No object has this id."""


class Outcome(Enum):
    """A push's outcome, found by reading the branch again and never from an error's text."""

    COMMITTED = "Committed"
    CONFLICT = "Conflict"  # another commit is the head now
    REFUSED = "Refused"  # the head is as expected, the server refused
    UNKNOWN = "Unknown"  # the server did not answer: the next read decides


@dataclass(frozen=True, slots=True)
class Entry:
    """One path that differs between two commits; `oid` None: deleted.

    Modes other than 100644 (executables, symlinks, submodules) are returned as they are, never followed; the
    reader refuses them.
    """

    path: str
    oid: str | None
    mode: int = REGULAR_MODE


@dataclass(frozen=True, slots=True)
class Person:
    """Author or committer of a commit."""

    name: str
    email: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit's metadata; `trailers` are the `Key: value` lines at the end of its message."""

    oid: str
    parents: tuple[str, ...]
    author: Person
    at: datetime
    message: str
    trailers: Mapping[str, str]
    signature: str = ""  # armoured, as in the commit; empty: unsigned
    payload: bytes = b""  # the signed bytes: the commit without its signature; empty for an unsigned one
    committer: Person = Person("", "")


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit to write: `changes` on top of the tree of `base` (None: an empty tree).

    A value of None deletes that path. `parent` None makes a root commit; with `base` set this is a re-root:
    the same tree without its history. If both are `BEFORE` it builds on the previous draft (`chain`).
    `committer` None: the author.
    """

    changes: Mapping[str, bytes | None]
    message: str
    author: Person
    at: datetime
    base: str | None = None
    parent: str | None = None
    committer: Person | None = None

    @property
    def follows(self) -> bool:
        """True if it builds on the previous draft. ValueError if only one of `base` and `parent` says so."""
        if (self.base == BEFORE) != (self.parent == BEFORE):
            raise ValueError("base and parent must both be BEFORE, or neither")
        return self.parent == BEFORE


def chain(tip: str | None, drafts: Iterable[Draft]) -> list[Draft]:
    """The drafts in sequence, the first on `tip` (None: as a root), for `Store.write_all`."""
    return [
        replace(draft, base=BEFORE if number else tip, parent=BEFORE if number else tip)
        for number, draft in enumerate(drafts)
    ]


def heads(drafts: Sequence[Draft]) -> list[int]:
    """For each draft the index of its chain's first draft. ValueError if the first draft follows another."""
    found: list[int] = []
    for number, draft in enumerate(drafts):
        if draft.follows and not found:
            raise ValueError("there is no draft before the first")
        found.append(found[-1] if draft.follows else number)
    return found


def first_parents(commit: Callable[[str], Commit], oid: str, limit: int) -> list[Commit]:
    """The result of `Store.log`, by reading one commit after the other."""
    commits: list[Commit] = []
    step: str | None = oid
    while step is not None and len(commits) < limit:
        commits.append(commit(step))
        step = commits[-1].parents[0] if commits[-1].parents else None
    return commits


Sign = Callable[[bytes], str]
"""Returns the armoured signature of a commit's bytes, as in git's header."""


class Contents(Protocol):
    """The part of a store needed to read documents; see `Store`."""

    def diff(self, old: str | None, new: str) -> Sequence[Entry]:
        """Paths that differ, sorted."""

    def sizes(self, oids: Iterable[str]) -> Mapping[str, int]:
        """Sizes in bytes."""

    def read(self, oids: Iterable[str]) -> Mapping[str, bytes]:
        """Contents of blobs."""


class History(Contents, Protocol):
    """With commits; see `Store`."""

    def commit(self, oid: str) -> Commit:
        """The metadata of one commit."""


class Store(Protocol):
    """Reads use what was last fetched; only `fetch` and `push` talk to the remote.

    Any method may raise `schemas.errors.Fault` (reasons `RemoteUnreachable`, `CorruptObjects`, `GitFailed`),
    never with a credential in its text.
    """

    def fetch(self, patterns: Sequence[str]) -> Mapping[str, str]:
        """Fetches every remote branch that matches a pattern (`main`, `egs/agents/*/*`) and returns their
        heads.

        A branch deleted at the remote is absent. A branch whose new objects fail Git's own check keeps its
        last good head and is listed by `alarms()`; the other branches still arrive.
        """

    def tips(self) -> Mapping[str, str]:
        """Heads as of the last fetch or push, without the remote."""

    def alarms(self) -> Sequence[str]:
        """One sentence per branch that the last fetch refused."""

    def commit(self, oid: str) -> Commit:
        """The metadata of one commit."""

    def log(self, oid: str, limit: int) -> Sequence[Commit]:
        """At most `limit` commits from `oid` back along first parents, newest first."""

    def parent(self, oid: str) -> str | None:
        """A commit's first parent, even if the commit is too large to read; None: it has none."""

    def is_ancestor(self, old: str, new: str) -> bool:
        """True if `old` is `new` or an ancestor of it."""

    def last_change(self, commit: str, path: str) -> str | None:
        """The last commit along first parents that changed a path; None: none did.

        Changes of a folder of that name count too. Reads the commits back to it.
        """

    def merge_bases(self, one: str, other: str) -> Sequence[str]:
        """The best common ancestors (none an ancestor of another), sorted.

        Empty without a common history; several after criss-cross merges.
        """

    def keep(self, oid: str) -> bool:
        """Keeps a commit readable even if no branch contains it; fetched if the remote still has it.

        False: unavailable. The commit kept before is released.
        """

    def remember(self, branch: str, oid: str) -> None:
        """Remembers that commit as the newest that counted of a branch, even if the branch goes; for later
        processes too.

        One commit per branch, replacing the previous one. Costs no git process.
        """

    def remembered(self, branch: str) -> str | None:
        """The commit remembered for that branch by this or an earlier process with the same mirror; it may be gone."""

    def mended(self) -> Sequence[str]:
        """A sentence for each repair that the store made to itself since the last call."""

    def diff(self, old: str | None, new: str) -> Sequence[Entry]:
        """Paths that differ, sorted; all paths if `old` is None. O(differences), not O(files)."""

    def sizes(self, oids: Iterable[str]) -> Mapping[str, int]:
        """Sizes in bytes, without reading the blobs."""

    def read(self, oids: Iterable[str]) -> Mapping[str, bytes]:
        """Contents of blobs, in one round."""

    def read_path(self, commit: str, path: str) -> bytes | None:
        """One file's content at a commit, or None."""

    def write(self, draft: Draft) -> str:
        """Writes a commit locally and returns its oid; others see nothing before `push`."""

    def write_all(self, drafts: Sequence[Draft]) -> list[str]:
        """Writes commits locally and returns their oids in order; none is written if one is refused.

        Drafts that build on the previous one (`chain`) cost no process each. The store keeps the 64 newest
        unpushed chains readable.
        """

    def push(self, branch: str, new: str, expected: str | None) -> Outcome:
        """Compare-and-swap: moves `branch` to `new` only if its head is `expected` (None: it must not exist).

        Also for moves that are not fast-forward (re-roots).
        """

    def in_the_way(self, branch: str) -> Sequence[str]:
        """Branches of the remote that prevent a branch of this name (`a` beside `a/b`)."""

    def close(self) -> None:
        """Ends helper processes; the store is not used afterwards."""
