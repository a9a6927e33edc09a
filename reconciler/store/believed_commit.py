"""Which commit of a machine's branch counts: the newest authentic one, never an older one than is known.

With push access one can add a commit to a branch, or reset, replace or delete it. If signatures identify the
writer, none of that changes the branch's content: the last commit of its own writer counts, found below
foreign commits, or remembered. An unreadable commit (too large, or broken) counts as foreign, even without
signatures. A commit whose key was revoked since no longer counts. Without signatures, a branch that is
remembered by name still never counts as older than known: if it was reset or deleted, the known state counts.
A reset before the first look of a process without a memory cannot be detected; a mirror that outlives the
process remembers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from reconciler.store.store_port import Commit, Store
from reconciler.store.trailers import Stamp, parse_stamp
from schemas.errors import Fault

Found = TypeVar("Found")
Believes = Callable[[Commit], bool]
"""True if a commit is by the branch's own writer."""
UNREADABLE = frozenset({"TooLarge", "TooManyFiles", "CorruptObjects"})
"""Reasons of faults caused by a branch's own content: they recur when repeated."""
SEARCHED = 1000
"""Commits below a head that are searched; our writers re-root their history before it is longer."""


class Belief:
    """What one process believes about a branch. `believes` None: every readable head counts."""

    def __init__(
        self, store: Store, believes: Believes | None, before: str | None = None, branch: str = ""
    ) -> None:
        """`before` is the branch's head at the last fetch of this or an earlier process.

        `branch` names a branch that must not get lost: the commit that counts is remembered, for later
        processes too, and still counts if the branch is deleted, or reset without signatures.
        """
        self._store, self._believes, self._before, self._branch = store, believes, before, branch
        self._asked = False  # what was known before this process
        self._known: str | None = None  # the newest commit that counted
        self._proof: Commit | None = None  # the same, if it counts for its signature and not as our own

    def newest(self, tip: str | None) -> str | None:
        """The commit that counts while `tip` is the branch's head; None: none that was ever seen."""
        if self._believes is None and (not self._branch if tip is None else tip == self._known):
            return tip
        self._remember()
        self._judge_anew()
        found = None if tip is None else self._below(tip)
        # Without signatures and memory, any readable head counts.
        keeps = self._believes is not None or bool(self._branch) or found != tip
        if found is None or (self._is_older(found) and keeps):
            return self._known
        if found != self._known:
            self._known, self._proof = found, None if self._believes is None else self._commit(found)
            self._note()
        return found

    def lacks(self, tip: str | None) -> bool:
        """True if the branch with head `tip` has lost what counts: it was deleted or reset."""
        counts = self.newest(tip)
        if counts is None or tip == counts:
            return False
        found = None if tip is None else self._below(tip)
        return tip is None or (found is not None and self._is_older(found))

    def forget(self) -> None:
        """A person decided that the remembered commit does not count."""
        self._known, self._proof, self._asked = None, None, True

    def complaint(self, tip: str | None) -> str | None:
        """What is wrong with the branch with head `tip`; None: nothing."""
        counts = self.newest(tip)
        if tip == counts:
            return None
        if tip is None:
            return "the branch is gone"
        commit = self._commit(tip)
        if commit is None or not self._is_whole(tip):
            return f"its head {tip[:12]} cannot be read, so it counts as foreign"
        if self.counts(commit):
            return f"it was reset to {tip[:12]}"
        return f"its head {tip[:12]} is a foreign commit: it has no valid signature"

    def stamp_of(self, oid: str) -> Stamp | None:
        """The writer of a commit, according to its trailers."""
        return parse_stamp(self._store.commit(oid).trailers)

    def counts(self, commit: Commit) -> bool:
        """True if the commit is by the branch's own writer, as far as known."""
        if self._believes is None or commit.oid == self._known:
            return True
        return parse_stamp(commit.trailers) is not None and self._believes(commit)

    def wrote(self, oid: str) -> None:
        """Our own commit is the head."""
        self._known, self._proof = oid, None
        self._note()

    def history(self, oid: str, limit: int) -> list[Commit]:
        """At most `limit` commits from `oid` back along first parents, newest first, without unreadable ones."""
        found: list[Commit] = []
        step: str | None = oid
        for _ in range(limit):
            if step is None:
                break
            commit = self._commit(step)
            found += [] if commit is None else [commit]
            step = self._parent(step, commit)
        return found

    def adopt(self, tip: str | None) -> None:
        """A person accepts the branch as it is, without authentic commits."""
        if self._believes is not None and (tip is None or self._below(tip) is None):
            readable = [] if tip is None else self.history(tip, SEARCHED)
            self._known, self._proof, self._asked = readable[0].oid if readable else None, None, True

    def _remember(self) -> None:
        if self._known is not None or self._asked:
            return
        self._asked = True
        noted = self._store.remembered(self._branch) if self._branch else None
        # The branch may have been reset before the last fetch: the newer one of both counts.
        for oid in (self._before, noted):
            found = None if oid is None else self._below(oid)  # None if the mirror no longer has it
            if found is not None and not self._is_older(found):
                self._known = found
        self._proof = None if self._known is None or self._believes is None else self._commit(self._known)

    def _note(self) -> None:
        if self._branch and self._known is not None:
            self._store.remember(self._branch, self._known)

    def _judge_anew(self) -> None:
        """Keys may be revoked at run time."""
        if self._proof is not None and self._believes is not None and not self._believes(self._proof):
            self._known, self._proof = None, None

    def _below(self, tip: str) -> str | None:
        """The newest commit that counts, along first parents from the head."""
        step: str | None = tip
        for _ in range(SEARCHED):
            if step is None or step == self._known:
                return step
            commit = self._commit(step)
            if commit is not None and self.counts(commit) and self._is_whole(step):
                return step
            step = self._parent(step, commit)
        return None

    def _commit(self, oid: str) -> Commit | None:
        return _readable(lambda: self._store.commit(oid))

    def _parent(self, oid: str, commit: Commit | None) -> str | None:
        if commit is not None:
            return commit.parents[0] if commit.parents else None
        return _readable(lambda: self._store.parent(oid))

    def _is_whole(self, oid: str) -> bool:
        """True if its files can be listed; known for commits signed by our own writers."""
        return self._believes is not None or _readable(lambda: self._store.diff(None, oid)) is not None

    def _is_older(self, found: str) -> bool:
        if self._known is None or found == self._known:
            return False
        new, old = self.stamp_of(found), self.stamp_of(self._known)
        return new is not None and old is not None and (new.term, new.seq) < (old.term, old.seq)


def _readable(read: Callable[[], Found]) -> Found | None:
    """None: unreadable."""
    try:
        return read()
    except Fault as fault:
        if fault.reason not in UNREADABLE:
            raise
        return None
