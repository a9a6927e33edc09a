"""Events from the status branch, newest first, read file by file until enough are found. The filter is pure.

Held by tests/portal/test_events.py: the same filter gives the same rows to
`egs get events` and to the API.
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
from schemas.reading.units import format_instant

EventRow = dict[str, str]

_SEARCHED = ("message", "reason", "request", "cluster", "node", "slice")
"""Fields in which a text is looked for."""


@lru_cache(maxsize=64)
def _word(name: str) -> re.Pattern[str]:
    """A name where it is whole: neither part of a longer one, nor of a path. A full stop may end the sentence."""
    return re.compile(rf"(?<![\w./-]){re.escape(name)}(?![\w/-]|\.\w)")


@dataclass(frozen=True, slots=True)
class Spot:
    """Where an event stands: its file, and its number there. Files only ever grow, so it stays there."""

    path: str
    number: int


@dataclass(frozen=True, slots=True)
class Between:
    """Which part of all events; None: no bound there."""

    before: Spot | None = None
    """Only older ones."""
    after: Spot | None = None
    """Only newer ones."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events; what is None does not matter."""

    slice: str | None = None
    gpr: str | None = None
    """Its name alone, slice/gpr, or its id: events say that since it is theirs, also of one that is gone."""
    node: str | None = None
    """Alone or as cluster/node: the event's own, or a whole word of its message, as of those that tell of many."""
    cluster: str | None = None
    reason: str | None = None
    type: str | None = None
    text: str | None = None
    """Anywhere in the event, in capitals or not."""
    since: datetime | None = None
    until: datetime | None = None
    """Not at this instant any more."""

    def takes(self, row: EventRow) -> bool:
        """Whether the event is wanted."""
        return self.is_about(row) and self.says(row)

    def is_about(self, row: EventRow) -> bool:
        """Whether it can be, as it was written; `says` decides it by what its reader sees."""
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
        """Whether a file can have such an event: it holds what was told in one hour, all of it of then or before."""
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
        # Times are written in one form, in which later ones are greater.
        return (self.since is None or at >= format_instant(self.since)) and (
            self.until is None or at < format_instant(self.until)
        )

    def says(self, row: Mapping[str, object]) -> bool:
        """Whether node and text are in the event, as it is given here: whoever hides something hides it before."""
        if not self._names_node(row):
            return False
        if self.text is None:
            return True
        wanted = self.text.casefold()
        return any(wanted in str(row.get(name, "")).casefold() for name in _SEARCHED)


def slice_of_event(row: EventRow) -> str | None:
    """The slice that an event is about; None: it is about a cluster, a node or the repository."""
    return row.get("request", "").partition("/")[0] or row.get("slice")


def walk(
    paths: Iterable[str],
    rows_of: Callable[[str], list[EventRow]],
    wanted: Filter,
    before: Spot | None = None,
) -> Iterator[tuple[Spot, EventRow]]:
    """Events that the filter takes and where they stand, newest first; `before`: only those that are older."""
    for spot, row in looked(newest_first(paths), rows_of, wanted, Between(before=before)):
        if wanted.takes(row):
            yield spot, row


def newest_first(paths: Iterable[str]) -> list[str]:
    """Files of events in the order in which they are walked."""
    return sorted(paths, key=age, reverse=True)


def looked(
    paths: Iterable[str],
    rows_of: Callable[[str], list[EventRow]],
    wanted: Filter,
    part: Between,
) -> Iterator[tuple[Spot, EventRow]]:
    """Every event of the files that can hold a wanted one, taken or not, newest first: what a search looks at.

    `paths` are `newest_first`. Reads as many files as are needed, and none of the hours before `since`.
    """
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
    """At most `limit` events that the filter takes. Raises UserError where there is no repository at all."""
    status = source.status()
    if status is None:
        source.commit_of(None)
        return []
    store, tip = status
    files = {e.path: e.oid for e in store.diff(None, tip) if e.path.startswith("events/") and e.oid}

    def rows_of(path: str) -> list[EventRow]:
        return events_from(store.read([files[path]])[files[path]])

    return [row for _, row in islice(walk(files, rows_of, wanted), limit)]


def event_row(row: Mapping[str, object]) -> dict[str, Any]:
    """An event as data: every field, absent ones as None."""
    names = ("at", "reason", "type", "request", "cluster", "node", "message")
    return {name: row.get(name) for name in names}


def hour_of(path: str) -> datetime | None:
    """When the hour begins that a file of events is of; None: its name does not say."""
    day, hour, _ = age(path)
    try:
        return datetime.fromisoformat(f"{day}T{hour}:00:00").replace(tzinfo=UTC)
    except ValueError:
        return None
