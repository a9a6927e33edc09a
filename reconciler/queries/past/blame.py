"""`egs blame`: which commit set this. Of a document a person's commit on main, of a status the controller's and why.

A change of main is one along its first parents; if a merge took the file as it was on the branch, the branch's commit.
A status is compared between kept states, so that an old change is known to the hour.

Held by tests/reconciler/queries/test_blame.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from reconciler.queries.event_search import Filter
from reconciler.status.parse import UNREADABLE
from reconciler.status.past_states import PastState
from reconciler.store.store_port import Commit, Store
from reconciler.store.trailers import parse_stamp
from schemas.reading.strict_yaml import load
from schemas.reading.units import format_instant

Row = dict[str, Any]
Told = Callable[[datetime | None, datetime], Iterable[Row]]
"""Events about the request after an instant (None: from the first on) and until another, that one included."""
MOST_STEPS = 200
"""Changes of one file that are looked through for a field."""
MOST_EVENTS = 5
_NUMBERED = re.compile(r"merge request \S*(!\d+)|(?<![\w/&])(#\d+)")
_FIELD = re.compile(r"(spec|status|metadata)(\.[A-Za-z0-9_-]{1,63}){0,8}")
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Blamed:
    """What is asked about."""

    path: str
    field: str | None
    """`spec.…` of the file, `status.…` of the request's record; None: the whole file, and the whole record."""
    limit: int

    def check(self) -> None:
        """Raises ValueError with what would be a field."""
        if self.field is not None and _FIELD.fullmatch(self.field) is None:
            raise ValueError("name a field like spec.priority or status.estimatedStartTime")

    @property
    def is_of_main(self) -> bool:
        return self.field is None or not self.field.startswith("status")

    @property
    def is_of_status(self) -> bool:
        """Only requests have a record of the same path."""
        is_asked = self.field is None or self.field.startswith("status")
        return is_asked and self.path.startswith("slices/") and "/gprs/" in self.path

    def events(self, after: datetime | None, until: datetime) -> Filter:
        """Those about the request, from the first instant to the second, both included."""
        key = self.path.removeprefix("slices/").removesuffix(".yaml").replace("/gprs/", "/")
        return Filter(gpr=key, since=after, until=until + timedelta(seconds=1))


def main_changes(store: Store, tip: str, asked: Blamed) -> list[Row]:
    """The newest changes of the file, or of one field of it, newest first. Costs the commits back to them."""
    found, field = _changes(store, tip, asked.path), asked.field
    steps = (
        _main_row(store, commit, asked.path, was, now)
        for commit, before, after in islice(found, MOST_STEPS)
        if (was := _value(before, field)) != (now := _value(after, field)) or field is None
    )
    return list(islice(steps, asked.limit))


def _changes(store: Store, tip: str, path: str) -> Iterator[tuple[Commit, bytes | None, bytes | None]]:
    """Commits that changed the file, newest first, with its content before and after."""
    step: str | None = tip
    while step is not None and (oid := store.last_change(step, path)) is not None:
        commit = store.commit(oid)
        parent = commit.parents[0] if commit.parents else None
        yield commit, None if parent is None else store.read_path(parent, path), store.read_path(oid, path)
        step = parent


def _main_row(store: Store, commit: Commit, path: str, was: object, now: object) -> Row:
    by = _on_branch(store, commit, path)
    number = next((n for n in (_number(commit.message), _number(by.message)) if n), None)
    return {
        "commit": by.oid,
        "at": format_instant(by.at.astimezone(UTC)),
        "name": by.author.name,
        "email": by.author.email,
        "subject": by.message.partition("\n")[0],
        "pullRequest": number,
        "mergedBy": None if by is commit else commit.oid,
        "was": None if was is _ABSENT else was,
        "now": None if now is _ABSENT else now,
    }


def _on_branch(store: Store, commit: Commit, path: str) -> Commit:
    """The commit of the branch from which a merge took the file as it was there; else the commit itself."""
    content = store.read_path(commit.oid, path)
    for side in commit.parents[1:]:
        oid = store.last_change(side, path)
        if oid is not None and store.read_path(side, path) == content:
            return store.commit(oid)
    return commit


def _number(message: str) -> str:
    """The pull request that a message names: `#12`, of GitLab `!12`; empty: none."""
    found = _NUMBERED.search(message)
    return "" if found is None else found[1] or found[2]


def _value(data: bytes | None, field: str | None) -> object:
    """The value of a field such as `spec.nodes`; without a field, or if there is none: absent."""
    if data is None or field is None:
        return _ABSENT
    try:
        content = load(data, len(data) + 1)
    except UNREADABLE:
        return _ABSENT
    for name in field.split("."):
        if isinstance(content, list) and name.isdigit() and int(name) < len(content):
            content = content[int(name)]
        elif isinstance(content, dict) and name in content:
            content = content[name]
        else:
            return _ABSENT
    return content


def status_changes(store: Store, states: Iterable[PastState], asked: Blamed, told: Told) -> list[Row]:
    """The newest changes of a record on the status branch, newest first; `states` are newest first."""
    found = list(islice(_steps(store, states, asked.path, asked.field), asked.limit))
    return [_status_row(store, *step, told) for step in found]


def _steps(
    store: Store, states: Iterable[PastState], path: str, field: str | None
) -> Iterator[tuple[PastState, datetime | None, object, object]]:
    """States in which it differs from the kept state before, the time of that, and both values."""
    newer: tuple[PastState, bytes | None] | None = None
    for state in states:
        data = store.read_path(state.commit, path)
        if newer is not None and newer[1] != data:
            was, now = _value(data, field), _value(newer[1], field)
            if field is None or was != now:
                yield newer[0], state.at, was, now
        newer = (state, data)
    if (
        newer is not None
        and newer[1] is not None
        and (_value(newer[1], field) is not _ABSENT or field is None)
    ):
        yield newer[0], None, _ABSENT, _value(newer[1], field)


def _status_row(
    store: Store, state: PastState, after: datetime | None, was: object, now: object, told: Told
) -> Row:
    commit = store.commit(state.commit)
    stamp = parse_stamp(commit.trailers)
    events = [
        {"at": row["at"], "reason": row["reason"], "message": row.get("message", "")}
        for row in islice(told(after, state.at), MOST_EVENTS)
    ]
    return {
        "commit": state.status,
        "at": format_instant(state.at),
        "after": None if after is None else format_instant(after),
        "subject": commit.message.partition("\n")[0],
        "main": None if stamp is None else stamp.intent,
        "events": events,
        "was": None if was is _ABSENT else was,
        "now": None if now is _ABSENT else now,
    }
