"""Which commit of a machine's branch counts: the newest that is believed, and never one older than what was known.

Who may push may put a commit on a branch, set the branch back, replace it or remove it. Where signatures tell whose
commits they are, none of that changes what the branch says: what counts is the last commit of its own writer, found
below whatever lies on top, or remembered. What cannot be seen is a branch that was set back before a process without
a memory first looks; a mirror that outlives the process remembers.

Held by tests/store/test_believing.py.
"""

from __future__ import annotations

from collections.abc import Callable

from reconciler.store.port import Commit, Store
from reconciler.store.trailers import Stamp, parse_stamp
from schemas.errors import Fault

Believes = Callable[[Commit], bool]
"""Tells whether a commit is of the branch's own writer."""
SEARCHED = 1000
"""Commits below a tip that are searched; the writer's own histories are re-rooted before they are longer."""


class Belief:
    """What one process life takes for true of a branch. `believes` None: every tip counts, as there is no telling."""

    def __init__(self, store: Store, believes: Believes | None, before: str | None = None) -> None:
        """`before` is where the branch stood when this process's predecessor, or this one, fetched last."""
        self._store, self._believes, self._before = store, believes, before
        self._known: str | None = None  # the newest commit that counted

    def newest(self, tip: str | None) -> str | None:
        """The commit that counts while the branch stands at `tip`; None: no commit that was ever seen does."""
        if self._believes is None:
            return tip
        self._remember()
        found = None if tip is None else self._below(tip)
        if found is None or self._is_older(found):
            return self._known
        self._known = found
        return found

    def complaint(self, tip: str | None) -> str | None:
        """What is wrong with the branch when it stands at `tip`; None: nothing."""
        counts = self.newest(tip)
        if self._believes is None or tip == counts:
            return None
        if tip is None:
            return "the branch is gone"
        if self.counts(self._store.commit(tip)):
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
        self._known = oid

    def adopt(self, tip: str | None) -> None:
        """A person says that the branch counts as it is, with nothing believed in it."""
        if self._believes is not None and (tip is None or self._below(tip) is None):
            self._known, self._before = tip, None

    def _remember(self) -> None:
        if self._known is None and self._before is not None:
            before, self._before = self._before, None
            try:
                self._known = self._below(before)
            except Fault:
                self._known = None  # it is not in the mirror any more

    def _below(self, tip: str) -> str | None:
        """The newest commit that counts, down the first parents from the tip."""
        step: str | None = tip
        for _ in range(SEARCHED):
            if step is None or step == self._known:
                return step
            commit = self._store.commit(step)
            if self.counts(commit):
                return step
            step = commit.parents[0] if commit.parents else None
        return None

    def _is_older(self, found: str) -> bool:
        if self._known is None or found == self._known:
            return False
        new, old = self.stamp_of(found), self.stamp_of(self._known)
        return new is not None and old is not None and (new.term, new.seq) < (old.term, old.seq)
