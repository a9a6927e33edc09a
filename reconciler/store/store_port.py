"""What the rest of the project needs of Git, and nothing else.

Two drivers hold this port: `reconciler.store.git.git_store.GitStore` (a bare mirror of a remote) and
`reconciler.store.memory_store.MemoryStore` (its twin for tests); one contract suite runs on both. No driver ever
makes a work tree: files are read from the object store and commits are written straight into it.

Words: an `oid` is a full hexadecimal object id; a `branch` is a name below `refs/heads/`; a `path` is a
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
"""In a draft's `base` and `parent`: the draft before it in the same `Store.write_all`. No object has this id."""


class Outcome(Enum):
    """How a push ended, told by reading the branch again and never by an error's text."""

    COMMITTED = "Committed"
    CONFLICT = "Conflict"  # somebody else's commit is the tip now
    REFUSED = "Refused"  # the tip is as expected, the server said no
    UNKNOWN = "Unknown"  # the server did not answer: the next read decides


@dataclass(frozen=True, slots=True)
class Entry:
    """One path that differs between two commits; `oid` None: it is gone.

    Modes other than 100644 (executables, symlinks, submodules) are handed out as they are, never followed;
    it is the reader's case to refuse them.
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
    """A commit's own facts; `trailers` are the `Key: value` lines that end its message."""

    oid: str
    parents: tuple[str, ...]
    author: Person
    at: datetime
    message: str
    trailers: Mapping[str, str]
    signature: str = ""  # as it stands in the commit, armoured; empty: unsigned
    payload: bytes = b""  # what was signed: the commit without its signature; empty for an unsigned one
    committer: Person = Person("", "")


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit to be written: `changes` on top of the tree of `base` (None: an empty tree).

    A value of None deletes that path. `parent` None makes a root commit, which with `base` set is a re-root:
    the same tree without its history. Where both are `BEFORE` it is built on the draft before it (`chain`).
    `committer` None: the author is.
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
        """Whether it is built on the draft before it. ValueError when it is half of each."""
        if (self.base == BEFORE) != (self.parent == BEFORE):
            raise ValueError("base and parent are both the draft before, or neither is")
        return self.parent == BEFORE


def chain(tip: str | None, drafts: Iterable[Draft]) -> list[Draft]:
    """The drafts one after the other, the first on `tip` (None: it is a root), for `Store.write_all`."""
    return [
        replace(draft, base=BEFORE if number else tip, parent=BEFORE if number else tip)
        for number, draft in enumerate(drafts)
    ]


def heads(drafts: Sequence[Draft]) -> list[int]:
    """For each draft the number of the one that its chain begins with. ValueError when the first follows one."""
    found: list[int] = []
    for number, draft in enumerate(drafts):
        if draft.follows and not found:
            raise ValueError("there is no draft before the first")
        found.append(found[-1] if draft.follows else number)
    return found


Sign = Callable[[bytes], str]
"""Gives the armoured signature of a commit's bytes, as git's own header has it."""


class Contents(Protocol):
    """What reading documents needs of a store; see `Store` for each."""

    def diff(self, old: str | None, new: str) -> Sequence[Entry]:
        """Paths that differ, sorted."""

    def sizes(self, oids: Iterable[str]) -> Mapping[str, int]:
        """Sizes in bytes."""

    def read(self, oids: Iterable[str]) -> Mapping[str, bytes]:
        """Contents of blobs."""


class Store(Protocol):
    """Reads are of what was fetched last; only `fetch` and `push` talk to the remote.

    Any method may raise `schemas.errors.Fault` (reasons `RemoteUnreachable`, `CorruptObjects`,
    `GitFailed`); none of their texts holds a credential.
    """

    def fetch(self, patterns: Sequence[str]) -> Mapping[str, str]:
        """Bring every remote branch that matches a pattern (`main`, `egs/agents/*/*`) and give their tips.

        A branch that is gone at the remote is absent. A branch whose new objects fail Git's own check keeps
        its last good tip and is named by `alarms()`; the other branches still arrive.
        """

    def tips(self) -> Mapping[str, str]:
        """Tips as of the last fetch or push, without talking to the remote."""

    def alarms(self) -> Sequence[str]:
        """One sentence for each branch that the last fetch refused."""

    def commit(self, oid: str) -> Commit:
        """The facts of one commit."""

    def log(self, oid: str, limit: int) -> Sequence[Commit]:
        """At most `limit` commits from `oid` back along first parents, newest first."""

    def parent(self, oid: str) -> str | None:
        """A commit's first parent, also where the commit itself is too large to be read; None: it has none."""

    def is_ancestor(self, old: str, new: str) -> bool:
        """True when `new` was built on `old` (or is `old`)."""

    def last_change(self, commit: str, path: str) -> str | None:
        """The last of a commit's first parents (or itself) that changed a path against its own; None: none ever did.

        What happened to a folder of that name counts too. Costs the commits back to it.
        """

    def merge_bases(self, one: str, other: str) -> Sequence[str]:
        """Every commit that both were built on and that no other such commit was built on, sorted.

        None without a common history; several after merges criss-cross, of which none is the true one.
        """

    def keep(self, oid: str) -> bool:
        """Keep a commit readable that no branch may lead to any more; brought if the remote still has it.

        False: nobody has it. The commit that was kept before is let go.
        """

    def remember(self, branch: str, oid: str) -> None:
        """Keep that commit as the newest that counted of a branch, also when the branch goes; for the next process too.

        One commit of each branch; what was remembered before is let go. Costs no git process.
        """

    def remembered(self, branch: str) -> str | None:
        """What this process, or one before it with the same mirror, remembered of that branch; it may be gone."""

    def mended(self) -> Sequence[str]:
        """A sentence for each thing of its own that the store made anew since this was asked last."""

    def diff(self, old: str | None, new: str) -> Sequence[Entry]:
        """Paths that differ, sorted; from nothing when `old` is None. Costs what changed, not what exists."""

    def sizes(self, oids: Iterable[str]) -> Mapping[str, int]:
        """Sizes in bytes, without reading the blobs."""

    def read(self, oids: Iterable[str]) -> Mapping[str, bytes]:
        """Contents of blobs; one round for all of them."""

    def read_path(self, commit: str, path: str) -> bytes | None:
        """One file's content at a commit, or None."""

    def write(self, draft: Draft) -> str:
        """Write a commit locally and give its oid; nothing is visible to others before `push`."""

    def write_all(self, drafts: Sequence[Draft]) -> list[str]:
        """Write commits locally in one go and give their oids in the same order; none is written when one is refused.

        Drafts that are built on the one before (`chain`) cost no process each. Of what is not pushed yet the store
        keeps the 64 newest chains readable.
        """

    def push(self, branch: str, new: str, expected: str | None) -> Outcome:
        """Compare-and-swap: move `branch` to `new` only if its tip is `expected` (None: it must not exist).

        Moves that are no fast-forward (re-roots) go the same way.
        """

    def in_the_way(self, branch: str) -> Sequence[str]:
        """Branches of the remote beside whose names none of this name can be made (`a` beside `a/b`)."""

    def close(self) -> None:
        """End helper processes; the store is not used afterwards."""
