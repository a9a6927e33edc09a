"""Which states of the status branch are kept when its history is left behind, and where. Pure.

Each week has a branch, `egs/history/<number>`, with at most one state an hour: a commit with the tree, time, subject
and stamp of the status commit, and its name. The numbers go round, so that a week takes the branch of the oldest one:
no branch is ever deleted, and there are never more.

Held by tests/reconciler/status/test_history.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from reconciler.store.store_port import Commit
from reconciler.store.trailers import parse_stamp, with_trailers

WEEK = timedelta(days=7)
_MONDAY = datetime(1970, 1, 5, tzinfo=UTC)
_HOUR_S = 3600
_NAMED, _COUNTED = "Status-Commit", "Kept"
_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_COUNT = re.compile(r"([0-9]{1,7}) ([0-9]{1,15})")
_COPIED = ("Writer", "Term", "Seq", "Intent", "Epoch")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is kept; `kept_for` zero: nothing."""

    kept_for: timedelta
    week_bytes: int
    """Contents of changed files, before compression, that a week's states may add to its first one."""

    @property
    def slots(self) -> int:
        """Branches: one for each week that is kept, and one for the present week."""
        return -(-self.kept_for // WEEK) + 1 if self.kept_for else 0

    def branch(self, prefix: str, week: int) -> str:
        return f"{prefix}/{week % self.slots:02}"


@dataclass(frozen=True, slots=True)
class Kept:
    """A kept state: its own commit, and that of the status branch."""

    oid: str
    status: str
    at: datetime
    week: int
    written: int
    """Bytes that the week's states have added up to it."""


def week_of(at: datetime) -> int:
    """The number of its week, which begins on Monday (UTC)."""
    return (at - _MONDAY) // WEEK


def kept(commit: Commit) -> Kept | None:
    """The state that a commit of a history branch keeps; None: it keeps none."""
    named, counted = commit.trailers.get(_NAMED, ""), _COUNT.fullmatch(commit.trailers.get(_COUNTED, ""))
    if counted is None or _OID.fullmatch(named) is None:
        return None
    return Kept(commit.oid, named, commit.at, int(counted[1]), int(counted[2]))


def kept_message(commit: Commit, week: int, written: int) -> str:
    """The message under which a status commit is kept: its own, with its name and the week's count."""
    subject = commit.message.partition("\n")[0]
    copied = [f"{name}: {commit.trailers[name]}" for name in _COPIED if name in commit.trailers]
    return with_trailers(subject, [*copied, f"{_NAMED}: {commit.oid}", f"{_COUNTED}: {week} {written}"])


def candidates(commits: Iterable[Commit]) -> Iterator[Commit]:
    """The last decision or take-over of each hour, oldest first; `commits` are newest first."""
    found: dict[tuple[int, int], Commit] = {}
    for commit in commits:
        if parse_stamp(commit.trailers) is not None:
            found.setdefault(_hour(commit.at), commit)
    return (found[hour] for hour in sorted(found))


def is_newer(commit: Commit, last: Kept | None) -> bool:
    """True if it is of a later hour than the last kept state."""
    return last is None or _hour(commit.at) > _hour(last.at)


def is_worth(at: datetime, size: int, last: Kept, bounds: Bounds) -> bool:
    """Whether a state that adds `size` bytes is kept: within the share of the week that has passed, and once a day."""
    if at.date() > last.at.date():
        return True
    passed = at - (_MONDAY + last.week * WEEK)
    return last.written + size <= bounds.week_bytes * (passed / WEEK)


def by_week(commits: Iterable[Commit]) -> Mapping[int, list[Commit]]:
    found: dict[int, list[Commit]] = {}
    for commit in commits:
        found.setdefault(week_of(commit.at), []).append(commit)
    return found


def _hour(at: datetime) -> tuple[int, int]:
    return week_of(at), int(at.timestamp()) // _HOUR_S
