"""The events of one status commit, ready to be searched: which files there are, and how to read one.

Files are read when somebody asks and the newest ones kept, so that a search costs what it looks at. Pure but for the
reading. Held by tests/portal/test_events.py.
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
"""Events that one question looks at: years of them are not walked for something that never was."""
KEPT = 64
"""Files of which the rows are kept: a busy hour has several."""

Rows = list[EventRow]


def _nothing(_: str) -> Rows:
    return []


@dataclass(frozen=True)
class EventLog:
    """What happened until one commit."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Object ids by path."""
    rows_of: Callable[[str], Rows] = field(default=_nothing)
    """The rows of an object."""

    def found(self, wanted: Filter) -> Iterator[EventRow]:
        """Those of the latest `SEARCHED` events that the filter takes, newest first."""
        return (row for _, row in islice(self.looked(wanted, Between()), SEARCHED) if wanted.takes(row))

    def looked(self, wanted: Filter, part: Between) -> Iterator[tuple[Spot, EventRow]]:
        """Every event that a search for these looks at, newest first; whoever asks counts them and stops in time."""
        return looked(self._paths, self._rows_at, wanted, part)

    @cached_property
    def _paths(self) -> list[str]:
        """Once for all who search this commit: years have many files."""
        return newest_first(self.files)

    def _rows_at(self, path: str) -> Rows:
        return self.rows_of(self.files[path])


NO_EVENTS = EventLog()


class EventReader:
    """Follows the files of events from commit to commit. `at` has one caller; reading is anybody's."""

    def __init__(self, store: Contents) -> None:
        self._store = store
        self._tip: str | None = None
        self._files: dict[str, str] = {}
        self._kept: OrderedDict[str, Rows] = OrderedDict()
        self._lock = Lock()

    def at(self, tip: str) -> EventLog:
        """The events of that commit; costs what differs from the commit of the last call."""
        if tip != self._tip:
            self._files, self._tip = self._followed(tip), tip
        return EventLog(self._files, self._rows)

    def _followed(self, tip: str) -> dict[str, str]:
        files = dict(self._files)
        try:
            entries = self._store.diff(self._tip, tip)
        except Fault:  # the old tip is gone: histories are replaced now and then
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
        except UNREADABLE:  # somebody broke the file; the others still tell
            found = []
        with self._lock:
            self._kept[oid] = found
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found
