"""Events from the status branch, newest first, read file by file until enough are found. The filter is pure.

Held by tests/portal/test_events.py: `egs get events` and the API give the same rows for a filter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any

from reconciler.sources.source import Source
from reconciler.status.event_files import age
from reconciler.status.parse import events_from
from reconciler.store.store_port import Store
from schemas.reading.units import format_instant

EventRow = dict[str, str]

_SEARCHED = ("message", "reason", "request", "cluster", "node", "slice")
"""Fields that a text search looks at."""


@lru_cache(maxsize=64)
def _word(name: str) -> re.Pattern[str]:
    """Matches the name as a whole word, not inside a longer name or a path; a full stop may follow."""
    return re.compile(rf"(?<![\w./-]){re.escape(name)}(?![\w/-]|\.\w)")


@dataclass(frozen=True, slots=True)
class Spot:
    """Where an event is stored: its file and its index there. Files only grow, so this never changes."""

    path: str
    number: int


@dataclass(frozen=True, slots=True)
class Between:
    """A range of all events; None: unbounded on that side."""

    before: Spot | None = None
    """Only older events."""
    after: Spot | None = None
    """Only newer events."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events match; None matches everything."""

    slice: str | None = None
    gpr: str | None = None
    """The request's name alone, slice/gpr, or its id. The id also finds events of a request whose file is gone."""
    node: str | None = None
    """Node or cluster/node: the event's own node, or a whole word of its message, for events about several nodes."""
    cluster: str | None = None
    reason: str | None = None
    type: str | None = None
    text: str | None = None
    """Anywhere in the event, case-insensitive."""
    since: datetime | None = None
    until: datetime | None = None
    """Exclusive."""

    def takes(self, row: EventRow) -> bool:
        return self.is_about(row) and self.says(row)

    def is_about(self, row: EventRow) -> bool:
        """True if the stored event may match; `says` then checks the text as its reader sees it."""
        _, _, name = row.get("request", "").partition("/")
        return (
            self.slice in (None, slice_of_event(row))
            and self.gpr in (None, name, row.get("request"), row.get("uid"))
            and self._names_node(row)
            and self.cluster in (None, row.get("cluster"))
            and self.reason in (None, row.get("reason"))
            and self.type in (None, row.get("type"))
            and self._is_in_time(row.get("at", ""))
        )

    def may_hold(self, path: str) -> bool:
        """True if a file can have such an event: its events are all of one hour."""
        hour = None if self.since is None else hour_of(path)
        return hour is None or self.since is None or self.since < hour + timedelta(hours=1)

    def _names_node(self, row: Mapping[str, object]) -> bool:
        if self.node is None:
            return True
        cluster, node, message = (str(row.get(name, "")) for name in ("cluster", "node", "message"))
        if self.node in (node, f"{cluster}/{node}"):
            return True
        where, _, name = self.node.rpartition("/")
        return bool(_word(self.node).search(message) or (where == cluster and _word(name).search(message)))

    def _is_in_time(self, at: str) -> bool:
        # Timestamps are all written in one format that sorts by time.
        return (self.since is None or at >= format_instant(self.since)) and (
            self.until is None or at < format_instant(self.until)
        )

    def says(self, row: Mapping[str, object]) -> bool:
        """True if node and text match the event as given; apply any redaction first."""
        if not self._names_node(row):
            return False
        if self.text is None:
            return True
        wanted = self.text.casefold()
        return any(wanted in str(row.get(name, "")).casefold() for name in _SEARCHED)


def slice_of_event(row: EventRow) -> str | None:
    """The slice that an event is about; None: the event is about a cluster, a node or the repository."""
    return row.get("request", "").partition("/")[0] or row.get("slice")


def newest_first(paths: Iterable[str]) -> list[str]:
    """Event files in the order in which they are searched."""
    return sorted(paths, key=age, reverse=True)


def looked(
    paths: Iterable[str],
    rows_of: Callable[[str], list[EventRow]],
    wanted: Filter,
    part: Between,
) -> Iterator[tuple[Spot, EventRow]]:
    """Every event of the files that may contain a match, in the order of `paths` (`newest_first`), matching or not."""
    for path in paths:
        if part.after is not None and age(path) < age(part.after.path):
            return
        if (part.before is not None and age(path) > age(part.before.path)) or not wanted.may_hold(path):
            continue
        first = part.after.number + 1 if part.after is not None and path == part.after.path else 0
        rows = rows_of(path)
        end = len(rows) if part.before is None or path != part.before.path else part.before.number
        for number in range(min(end, len(rows)) - 1, first - 1, -1):
            yield Spot(path, number), rows[number]


def events(source: Source, wanted: Filter, limit: int) -> list[EventRow]:
    """At most `limit` matching events. Raises UserError if there is no repository."""
    status = source.status()
    if status is None:
        source.commit_of(None)
        return []
    return events_at(status, wanted, limit)


def events_at(status: tuple[Store, str], wanted: Filter, limit: int) -> list[EventRow]:
    """At most `limit` matching events up to a commit that has the status branch's files."""
    store, tip = status
    files = {e.path: e.oid for e in store.diff(None, tip) if e.path.startswith("events/") and e.oid}

    def rows_of(path: str) -> list[EventRow]:
        return events_from(store.read([files[path]])[files[path]])

    found = (row for _, row in looked(newest_first(files), rows_of, wanted, Between()))
    return list(islice(filter(wanted.takes, found), limit))


def event_row(row: Mapping[str, object]) -> dict[str, Any]:
    """An event as data: every field, absent ones as None."""
    names = ("at", "reason", "type", "request", "cluster", "node", "message")
    return {name: row.get(name) for name in names}


def hour_of(path: str) -> datetime | None:
    """Start of the hour that an event file covers; None: its name does not say."""
    day, hour, _ = age(path)
    try:
        return datetime.fromisoformat(f"{day}T{hour}:00:00").replace(tzinfo=UTC)
    except ValueError:
        return None
