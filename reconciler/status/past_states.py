"""Finds past states of the status branch: of its own history, and of the history branches that keep some of the older.

Held by tests/reconciler/status/test_history.py.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.settings import Settings
from reconciler.status.history import MOST_WALKED
from reconciler.status.kept_states import kept
from reconciler.store.believed_commit import Believes
from reconciler.store.store_port import Commit, Store
from reconciler.store.trailers import parse_stamp
from schemas.errors import UserError

ASKED_AGAIN = timedelta(minutes=5)
"""Between two fetches of the history branches, at least."""
_PREFIX = re.compile(r"[0-9a-f]{7,64}")


def is_commit(text: str) -> bool:
    """True if it may name a commit."""
    return _PREFIX.fullmatch(text) is not None


class Gone(UserError):  # noqa: N818 - a refusal, as all of them
    """The state is not kept."""

    reason = "StateGone"


@dataclass(frozen=True, slots=True)
class PastState:
    """One state: its commit of the status branch, and the commit that has the same tree here."""

    status: str
    commit: str
    at: datetime


class PastStates:
    """What is known of past states, as last fetched. Safe to use from any thread."""

    def __init__(
        self, store: Store, settings: Settings, believes: Believes | None, monotonic: Callable[[], float]
    ) -> None:
        """`believes` recognises controllers' commits; None: every commit counts."""
        self._store, self._settings, self._believes = store, settings, believes
        self._monotonic = monotonic
        self._asked_s: float | None = None
        self._known: dict[str, tuple[PastState, ...]] = {}  # by head
        self._lock = threading.Lock()

    def find(self, text: str, when: datetime | None) -> PastState:
        """The state of a status commit (its name or at least 7 of its first characters), or the newest at `when`.

        `when` None: `text` names a commit. Raises Gone: it is not kept, or never was.
        """
        with self._lock:
            found = self._in(self._recent(), text, when)
            if found is not None:
                return found
            self._fetch()
            states = self._all()
        found = self._in(states, text, when)
        if found is None:
            raise Gone(_gone(text, when, states))
        return found

    def states(self) -> tuple[PastState, ...]:
        """All known states, oldest first."""
        with self._lock:
            self._fetch()
            return self._all()

    def _in(self, states: tuple[PastState, ...], text: str, when: datetime | None) -> PastState | None:
        if when is not None:
            place = bisect_right(states, when, key=lambda state: state.at)
            return states[place - 1] if place else None
        return next((state for state in reversed(states) if state.status.startswith(text)), None)

    def _recent(self) -> tuple[PastState, ...]:
        return self._of(self._store.tips().get(self._settings.status_branch), _of_branch)

    def _all(self) -> tuple[PastState, ...]:
        prefix = f"{self._settings.history_branch}/"
        tips = self._store.tips()
        found = {
            s.status: s
            for name in sorted(tips)
            if name.startswith(prefix)
            for s in self._of(tips[name], _of_kept)
        }
        found |= {state.status: state for state in self._recent()}
        heads = {tips.get(self._settings.status_branch), *(tips[n] for n in tips if n.startswith(prefix))}
        self._known = {head: states for head, states in self._known.items() if head in heads}
        return tuple(sorted(found.values(), key=lambda state: state.at))

    def _of(self, tip: str | None, state_of: Callable[[Commit], PastState | None]) -> tuple[PastState, ...]:
        """The states of one branch, oldest first."""
        if tip is None:
            return ()
        if tip not in self._known:
            self._known[tip] = tuple(self._read(tip, state_of))[::-1]
        return self._known[tip]

    def _read(self, tip: str, state_of: Callable[[Commit], PastState | None]) -> Iterator[PastState]:
        for commit in self._store.log(tip, MOST_WALKED):
            state = state_of(commit)
            if state is not None and (self._believes is None or self._believes(commit)):
                yield state

    def _fetch(self) -> None:
        now_s = self._monotonic()
        if self._asked_s is None or now_s - self._asked_s >= ASKED_AGAIN.total_seconds():
            self._asked_s = now_s
            self._store.fetch([f"{self._settings.history_branch}/*"])


def _of_branch(commit: Commit) -> PastState | None:
    return None if parse_stamp(commit.trailers) is None else PastState(commit.oid, commit.oid, commit.at)


def _of_kept(commit: Commit) -> PastState | None:
    found = kept(commit)
    return None if found is None else PastState(found.status, found.oid, found.at)


def _gone(text: str, when: datetime | None, states: tuple[PastState, ...]) -> str:
    if not states:
        return "no state is known: no controller has written a status yet"
    oldest = f"{states[0].at:%Y-%m-%dT%H:%M:%SZ}"
    if when is not None:
        return f"no state of {when:%Y-%m-%dT%H:%M:%SZ} is kept; the oldest is of {oldest}"
    return (
        f"the state {text[:40]} is not kept any more, or never was one of the status branch; all of the last hours are "
        f"kept, and of older ones at most one an hour since {oldest}"
    )
