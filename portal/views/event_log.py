"""The events of one status commit, ready to be searched: its files, and their rows.

Files are read on demand and the newest are cached, so a search costs what it looks at. Held by
tests/portal/test_events.py.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from threading import Lock

from reconciler.queries.event_search import Between, EventRow, Filter, Spot, looked, newest_first
from reconciler.status.branch import EVENT_FILE
from reconciler.status.parse import UNREADABLE, events_from
from reconciler.store.store_port import Contents
from schemas.errors import Fault

SEARCHED = 20_000
"""Most events one search looks at, so that a search without hits does not read years of them."""
KEPT = 64
"""Files whose rows are cached: a busy hour has several."""

Rows = list[EventRow]


def _nothing(_: str) -> Rows:
    return []


@dataclass(frozen=True)
class EventLog:
    """The events up to one commit."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Blob ids by path."""
    rows_of: Callable[[str], Rows] = field(default=_nothing)
    """The rows of a blob."""

    def found(self, wanted: Filter) -> Iterator[EventRow]:
        """Matching events among the latest `SEARCHED`, newest first."""
        return (row for _, row in islice(self.looked(wanted, Between()), SEARCHED) if wanted.takes(row))

    def looked(self, wanted: Filter, part: Between) -> Iterator[tuple[Spot, EventRow]]:
        """Every event that the search looks at, newest first; the caller counts them and stops in time."""
        return looked(self._paths, self._rows_at, wanted, part)

    @cached_property
    def _paths(self) -> list[str]:
        """Sorted once per commit: years have many files."""
        return newest_first(self.files)

    def _rows_at(self, path: str) -> Rows:
        return self.rows_of(self.files[path])


NO_EVENTS = EventLog()


class EventReader:
    """Follows the event files from commit to commit. `at` has one caller; reading is safe from any thread."""

    def __init__(self, store: Contents) -> None:
        self._store = store
        self._tip: str | None = None
        self._files: dict[str, str] = {}
        self._kept: OrderedDict[str, Rows] = OrderedDict()
        self._lock = Lock()

    def at(self, tip: str) -> EventLog:
        """The events of that commit; costs the difference to the commit of the last call."""
        if tip != self._tip:
            self._files, self._tip = self._followed(tip), tip
        return EventLog(self._files, self._rows)

    def _followed(self, tip: str) -> dict[str, str]:
        files = dict(self._files)
        try:
            entries = self._store.diff(self._tip, tip)
        except Fault:  # the old tip is gone: the history was rewritten
            entries, files = self._store.diff(None, tip), {}
        for entry in entries:
            if EVENT_FILE.fullmatch(entry.path) and entry.oid is not None:
                files[entry.path] = entry.oid
            else:
                files.pop(entry.path, None)
        return files

    def _rows(self, oid: str) -> Rows:
        with self._lock:
            known = self._kept.get(oid)
        if known is not None:
            return known
        try:
            found = events_from(self._store.read([oid])[oid])
        except UNREADABLE:  # the file is broken; the others are still shown
            found = []
        with self._lock:
            self._kept[oid] = found
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found
