"""Which commit of a machine's branch counts: the newest that is believed, and never one older than what was known.

Who may push may put a commit on a branch, set the branch back, replace it or remove it. Where signatures tell whose
commits they are, none of that changes what the branch says: what counts is the last commit of its own writer, found
below whatever lies on top, or remembered. What cannot be read (it is too large, or broken) is a stranger's, also where
nobody signs. A commit whose key was revoked since counts no more. Where nobody signs, a branch that is remembered by
name is still never older than what was known: set back or removed, it says what it said. What cannot be seen is a
branch that was set back before a process without a memory first looks; a mirror that outlives the process remembers.

Held by tests/reconciler/store/test_believed_commit.py.
"""

from __future__ import annotations

from collections.abc import Callable

from reconciler.store.store_port import Commit, Store
from reconciler.store.trailers import Stamp, parse_stamp
from schemas.errors import Fault

Believes = Callable[[Commit], bool]
"""Tells whether a commit is of the branch's own writer."""
UNREADABLE = frozenset({"TooLarge", "TooManyFiles", "CorruptObjects"})
"""Reasons of faults that a branch's own contents cause: asked again they come again."""
SEARCHED = 1000
"""Commits below a tip that are searched; the writer's own histories are re-rooted before they are longer."""


class Belief:
    """What one process life takes for true of a branch. `believes` None: every tip that can be read counts."""

    def __init__(
        self, store: Store, believes: Believes | None, before: str | None = None, branch: str = ""
    ) -> None:
        """`before` is where the branch stood when this process's predecessor, or this one, fetched last.

        `branch` names a branch that must not get lost: what counts of it is remembered, also for the next process, and
        counts on where the branch is gone or was set back and nobody signs.
        """
        self._store, self._believes, self._before, self._branch = store, believes, before, branch
        self._asked = False  # what was known before this life
        self._known: str | None = None  # the newest commit that counted
        self._proof: Commit | None = None  # the same, when it counts for its signature and not as our own

    def newest(self, tip: str | None) -> str | None:
        """The commit that counts while the branch stands at `tip`; None: no commit that was ever seen does."""
        if self._believes is None and (not self._branch if tip is None else tip == self._known):
            return tip
        self._remember()
        self._judge_anew()
        found = None if tip is None else self._below(tip)
        # Where nobody signs and nothing is remembered, a tip that can be read counts, whatever it says.
        keeps = self._believes is not None or bool(self._branch) or found != tip
        if found is None or (self._is_older(found) and keeps):
            return self._known
        if found != self._known:
            self._known, self._proof = found, None if self._believes is None else self._commit(found)
            self._note()
        return found

    def lacks(self, tip: str | None) -> bool:
        """Whether the branch, when it stands at `tip`, has lost what counts: it is gone, or was set back."""
        counts = self.newest(tip)
        if counts is None or tip == counts:
            return False
        found = None if tip is None else self._below(tip)
        return tip is None or (found is not None and self._is_older(found))

    def forget(self) -> None:
        """What was remembered does not count: a person says so."""
        self._known, self._proof, self._asked = None, None, True

    def complaint(self, tip: str | None) -> str | None:
        """What is wrong with the branch when it stands at `tip`; None: nothing."""
        counts = self.newest(tip)
        if tip == counts:
            return None
        if tip is None:
            return "the branch is gone"
        commit = self._commit(tip)
        if commit is None or not self._is_whole(tip):
            return f"its tip {tip[:12]} cannot be read, so it is a stranger's"
        if self.counts(commit):
            return f"it was set back to {tip[:12]}"
        return f"its tip {tip[:12]} is a stranger's: it bears no signature that counts"

    def stamp_of(self, oid: str) -> Stamp | None:
        """Who wrote a commit, as its own trailers have it."""
        return parse_stamp(self._store.commit(oid).trailers)

    def counts(self, commit: Commit) -> bool:
        """Whether that very commit is of the branch's own writer, as far as can be told."""
        if self._believes is None or commit.oid == self._known:
            return True
        return parse_stamp(commit.trailers) is not None and self._believes(commit)

    def wrote(self, oid: str) -> None:
        """A commit of our own is the tip."""
        self._known, self._proof = oid, None
        self._note()

    def history(self, oid: str, limit: int) -> list[Commit]:
        """At most `limit` commits from `oid` back along first parents, newest first, without what cannot be read."""
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
        """A person says that the branch counts as it is, with nothing believed in it."""
        if self._believes is not None and (tip is None or self._below(tip) is None):
            readable = [] if tip is None else self.history(tip, SEARCHED)
            self._known, self._proof, self._asked = readable[0].oid if readable else None, None, True

    def _remember(self) -> None:
        if self._known is not None or self._asked:
            return
        self._asked = True
        noted = self._store.remembered(self._branch) if self._branch else None
        # The branch may have been set back already when it was fetched last: of the two the newer one counts.
        for oid in (self._before, noted):
            found = None if oid is None else self._below(oid)  # None when the mirror has it no more
            if found is not None and not self._is_older(found):
                self._known = found
        self._proof = None if self._known is None or self._believes is None else self._commit(self._known)

    def _note(self) -> None:
        if self._branch and self._known is not None:
            self._store.remember(self._branch, self._known)

    def _judge_anew(self) -> None:
        """Keys are revoked while we run."""
        if self._proof is not None and self._believes is not None and not self._believes(self._proof):
            self._known, self._proof = None, None

    def _below(self, tip: str) -> str | None:
        """The newest commit that counts, down the first parents from the tip."""
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
        """None: it cannot be read."""
        try:
            return self._store.commit(oid)
        except Fault as fault:
            if fault.reason not in UNREADABLE:
                raise
            return None

    def _parent(self, oid: str, commit: Commit | None) -> str | None:
        if commit is not None:
            return commit.parents[0] if commit.parents else None
        try:
            return self._store.parent(oid)
        except Fault as fault:
            if fault.reason not in UNREADABLE:
                raise
            return None

    def _is_whole(self, oid: str) -> bool:
        """Whether its files can be listed; of what our own writers signed that is known."""
        if self._believes is not None:
            return True
        try:
            self._store.diff(None, oid)
        except Fault as fault:
            if fault.reason not in UNREADABLE:
                raise
            return False
        return True

    def _is_older(self, found: str) -> bool:
        if self._known is None or found == self._known:
            return False
        new, old = self.stamp_of(found), self.stamp_of(self._known)
        return new is not None and old is not None and (new.term, new.seq) < (old.term, old.seq)
