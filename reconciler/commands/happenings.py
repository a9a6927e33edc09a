"""Events from the status branch, newest first, read file by file until enough are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciler.commands.source import Source
from reconciler.readback import events_from

EventRow = dict[str, str]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events; what is None does not matter."""

    slice: str | None = None
    gpr: str | None = None
    node: str | None = None
    cluster: str | None = None
    reason: str | None = None

    def takes(self, row: EventRow) -> bool:
        """Whether the event is wanted; a node is named alone or as cluster/node, a GPR alone or as slice/gpr."""
        slice_, _, name = row.get("request", "").partition("/")
        node = row.get("node", "")
        return (
            self.slice in (None, slice_ or row.get("slice"))
            and self.gpr in (None, name, row.get("request"))
            and self.node in (None, node, f"{row.get('cluster')}/{node}")
            and self.cluster in (None, row.get("cluster"))
            and self.reason in (None, row.get("reason"))
        )


def events(source: Source, wanted: Filter, limit: int) -> list[EventRow]:
    """At most `limit` events that the filter takes."""
    status = source.status()
    if status is None:
        return []
    store, tip = status
    files = {e.path: e.oid for e in store.diff(None, tip) if e.path.startswith("events/") and e.oid}
    found: list[EventRow] = []
    for path in sorted(files, key=age, reverse=True):
        oid = files[path]
        rows = events_from(store.read([oid])[oid])
        found += [row for row in reversed(rows) if wanted.takes(row)]
        if len(found) >= limit:
            break
    return found[:limit]


def event_row(row: EventRow) -> dict[str, Any]:
    """An event as data: every field, absent ones as None."""
    names = ("at", "reason", "type", "request", "cluster", "node", "message")
    return {name: row.get(name) for name in names}


def age(path: str) -> tuple[str, str, int]:
    """`events/<day>/<hour>-<part>.yaml` as what orders it; parts are numbers."""
    _, day, file = path.split("/", 2)
    hour, _, part = file.removesuffix(".yaml").partition("-")
    return (day, hour, int(part) if part.isdigit() else 0)
