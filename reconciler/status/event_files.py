"""Event files: each hour has as many as it needs, none larger than the read limit. Pure.

The number per hour is limited; the last file's last event counts the events beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.model.events import EventReason
from reconciler.status.parse import OWN_BYTES
from reconciler.status.yaml_rows import plain, row, with_rows

EVENTS_PER_FILE = 1000
FILE_BYTES = OWN_BYTES * 9 // 10
PARTS_PER_HOUR = 40
"""Keeps a day's folder below 1,000 files."""
LAST_BYTES = 500
"""Reserved in an hour's last file for the count of dropped events."""

Row = dict[str, str]
Identity = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class EventFile:
    """One file of events, oldest first."""

    path: str
    rows: tuple[Row, ...]
    data: bytes


def appended(path: str, rows: Sequence[Row], fresh: Sequence[Row]) -> tuple[EventFile, ...]:
    """The files changed by appending `fresh` to `rows`, the content of `path`; the last one is continued."""
    filling = _Filling(path, rows)
    found: list[EventFile] = []
    for place, event in enumerate(fresh):
        if filling.has_room(text := row(event)):
            filling.add(event, text)
            continue
        if filling.is_last:
            filling.leave_out(fresh[place:])
            break
        if filling.grew:
            found.append(filling.file())
        filling = _Filling(_next(filling.path), ())
        filling.add(event, text)
    return (*found, filling.file())


def age(path: str) -> tuple[str, str, int]:
    """Sort key of `events/<day>/<hour>-<part>.yaml`; parts are numbers."""
    _, day, file = path.split("/", 2)
    hour, _, part = file.removesuffix(".yaml").partition("-")
    return (day, hour, int(part) if part.isdigit() else 0)


def identity(event: Row) -> Identity:
    """Identifies an event; without the request's id, which is only added when writing."""
    return tuple(sorted((str(name), str(value)) for name, value in event.items() if name != "uid"))


_BEGIN = plain("Events", {})


class _Filling:
    def __init__(self, path: str, rows: Sequence[Row]) -> None:
        self.path, self.grew = path, False
        self.is_last = age(path)[2] >= PARTS_PER_HOUR - 1
        self._rows, self._texts = list(rows), [row(event) for event in rows]
        self._size = len(_BEGIN) + sum(len(text.encode()) for text in self._texts)

    def has_room(self, text: str) -> bool:
        if self._omitted():
            return False
        rows, size = (1, LAST_BYTES) if self.is_last else (0, 0)  # reserved for the count of dropped events
        fits = self._size + len(text.encode()) <= FILE_BYTES - size
        return fits and len(self._rows) < EVENTS_PER_FILE - rows

    def add(self, event: Row, text: str) -> None:
        self._rows.append(event)
        self._texts.append(text)
        self._size += len(text.encode())
        self.grew = True

    def leave_out(self, events: Sequence[Row]) -> None:
        before = self._omitted()
        if before:
            del self._rows[-1], self._texts[-1]
        told = {
            "at": events[-1]["at"],
            "reason": str(EventReason.EVENTS_OMITTED),
            "type": "Warning",
            "message": f"{before + len(events)} {_OMITTED}",
        }
        self.add(told, row(told))

    def file(self) -> EventFile:
        return EventFile(self.path, tuple(self._rows), with_rows(_BEGIN, "events", self._texts))

    def _omitted(self) -> int:
        last = self._rows[-1] if self._rows else {}
        count = last.get("message", "").partition(" ")[0]
        return int(count) if last.get("reason") == EventReason.EVENTS_OMITTED and count.isdigit() else 0


_OMITTED = "more events of this hour are not stored here; see the controller's log"


def _next(path: str) -> str:
    day, hour, part = age(path)
    return f"events/{day}/{hour}-{part + 1}.yaml"
