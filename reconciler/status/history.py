"""Keeps states of the status branch before its history is left behind: one push a week's branch, usually one a day.

A crash at any instant loses nothing: the branch is re-rooted only after the push, and a state that is kept already is
not kept again. A server that refuses these branches loses only this history.

Held by tests/reconciler/status/test_history.py.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from reconciler.status.kept_states import (
    Bounds,
    Kept,
    by_week,
    candidates,
    is_newer,
    is_worth,
    kept,
    kept_message,
)
from reconciler.store.believed_commit import Believes
from reconciler.store.store_port import REGULAR_MODE, Commit, Draft, Outcome, Person, Store
from schemas.errors import Fault

log = logging.getLogger(__name__)

MOST_WALKED = 4000
"""Commits of the status branch that are looked through; it is re-rooted after a quarter of them."""


MOST_FOREIGN = 50
"""Commits of others on a history branch that are looked through."""


class History:
    """Writes the history branches of one status branch. One owner."""

    def __init__(
        self, store: Store, prefix: str, author: Person, bounds: Bounds, believes: Believes | None = None
    ) -> None:
        """`believes` recognises our own commits; None: all are believed."""
        self._store, self._prefix, self._author, self._bounds = store, prefix, author, bounds
        self._believes = believes
        self._warned = False

    def keep(self, tip: str, now: datetime) -> int | None:
        """Keeps states of the history that ends in `tip`; the number of pushes. None: try again later."""
        if not self._bounds.kept_for:
            return 0
        oldest = now - self._bounds.kept_for
        try:
            found = by_week(c for c in candidates(self._store.log(tip, MOST_WALKED)) if c.at >= oldest)
            outcomes = [self._keep_week(week, commits) for week, commits in found.items()]
        except Fault as fault:
            log.warning("history not kept reason=%s message=%s; trying again later", fault.reason, fault)
            return None
        if any(outcome in (Outcome.CONFLICT, Outcome.UNKNOWN) for outcome in outcomes):
            return None
        self._told(outcomes)
        return sum(outcome is not None for outcome in outcomes)

    def _keep_week(self, week: int, commits: Sequence[Commit]) -> Outcome | None:
        """The outcome of the push; None: nothing is new."""
        branch = self._bounds.branch(self._prefix, week)
        tip = self._store.fetch([branch]).get(branch)
        last = None if tip is None else self._last(tip, week)
        found = self._chain(week, commits, last, tip if last is not None else None)
        if found is None:
            return None
        outcome = self._store.push(branch, found, tip)
        if outcome is Outcome.REFUSED and tip is not None and last is None:
            # The server may forbid replacing the oldest week: then this week follows it.
            found = self._chain(week, commits, None, tip)
            assert found is not None
            return self._store.push(branch, found, tip)
        return outcome

    def _last(self, tip: str, week: int) -> Kept | None:
        """The week's newest state; commits of others on top of it are left behind."""
        for commit in self._store.log(tip, MOST_FOREIGN):
            found = kept(commit)
            if found is not None and (self._believes is None or self._believes(commit)):
                return found if found.week == week else None
        return None

    def _chain(self, week: int, commits: Sequence[Commit], last: Kept | None, tip: str | None) -> str | None:
        """The newest of the week's commits with these states on top of `tip`; None: nothing is new."""
        begun = last
        for commit in commits:
            if not is_newer(commit, last):
                continue
            size = 0 if last is None else self._added(last.oid, commit.oid)
            if last is not None and not is_worth(commit.at, size, last, self._bounds):
                continue
            written = size if last is None else last.written + size
            text = kept_message(commit, week, written)
            parent = tip if last is None else last.oid
            oid = self._store.write(Draft({}, text, self._author, commit.at, commit.oid, parent))
            last = Kept(oid, commit.oid, commit.at, week, written)
        return None if last is begun or last is None else last.oid

    def _added(self, old: str, new: str) -> int:
        """Bytes of the files that differ."""
        oids = {e.oid for e in self._store.diff(old, new) if e.oid is not None and e.mode == REGULAR_MODE}
        return sum(self._store.sizes(oids).values())

    def _told(self, outcomes: Sequence[Outcome | None]) -> None:
        refused = Outcome.REFUSED in outcomes
        if refused and not self._warned:
            log.warning(
                "history not kept branch=%s/*; the server refuses these branches, its admin should allow them",
                self._prefix,
            )
        self._warned = refused
