"""Searching events for one caller, in portions. Pure but for the reading of files.

Held by tests/portal/test_events.py: nobody sees an event of a workspace that is not theirs; a cursor goes on where the
last portion ended, whatever happened meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field

from portal.callers import Caller
from portal.commandrows import clusters_seen
from portal.errors import bad_parameters
from portal.hiding import Veil
from portal.naming import listed
from portal.paging import Portion, cursor_of, read_cursor
from portal.serving import Wire
from portal.view import View
from reconciler.commands.errors import WrongUse
from reconciler.commands.happenings import EventRow, Filter, Spot, event_row, slice_of_event
from reconciler.commands.typed import moment
from reconciler.events import Told

SEARCHED = 20_000
"""Events that one question looks at; the cursor goes on behind them."""


class EventData(Wire):
    """Something that happened; the row of `egs get events -o json`."""

    at: str | None
    reason: str | None = Field(description="From a closed list: docs/operations.md.", examples=["GPRDelayed"])
    type: str | None = Field(examples=["Warning"])
    request: str | None = Field(description="slice/name.")
    cluster: str | None
    node: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What is looked for, as sent; empty: it does not matter."""

    slice: str = ""
    gpr: str = ""
    node: str = ""
    cluster: str = ""
    reason: str = ""
    type: Literal["", "Normal", "Warning"] = ""
    q: str = ""
    since: str = ""
    until: str = ""

    def filter(self, view: View, now: datetime) -> Filter:
        """The same as commands have it; a request may be named by its id, too. ApiError 422."""
        if self.reason and self.reason not in set(Told):
            raise bad_parameters(f"reason: there is no reason {self.reason}; there are {listed(Told)}")
        try:
            since, until = moment("since", self.since or None, now), moment("until", self.until or None, now)
        except WrongUse as error:
            raise bad_parameters(str(error)) from error
        return Filter(
            slice=self.slice or None,
            gpr=view.ids.get(self.gpr, self.gpr) or None,
            node=self.node or None,
            cluster=self.cluster or None,
            reason=self.reason or None,
            type=self.type or None,
            text=self.q or None,
            since=since,
            until=until,
        )


def found(view: View, caller: Caller, wanted: Filter, portion: Portion) -> tuple[list[EventData], str | None]:
    """That portion, newest first, and the cursor of what is older."""
    before = None if not portion.cursor else _spot(portion.cursor)
    items: list[EventData] = []
    veil, seen = Veil(caller, view), clusters_seen(view, caller)
    last: Spot | None = None
    for looked, (spot, row) in enumerate(view.events.found(wanted, before)):
        if len(items) == portion.limit or looked == SEARCHED:
            assert last is not None
            return items, cursor_of(last.number, last.path)
        last = spot
        if is_for(caller, row, seen):
            items.append(data_of(row, veil))
    return items, None


def _spot(cursor: str) -> Spot:
    number, path = read_cursor(cursor)
    if path.count("/") < 2:
        raise bad_parameters("cursor: give `next` of the portion before as it was, or leave it out")
    return Spot(path, number)


def is_for(caller: Caller, row: EventRow, clusters: frozenset[str]) -> bool:
    """Of their workspaces, of clusters that these span; of the repository and the controller only for who sees all."""
    slice_ = slice_of_event(row)
    if slice_ is not None:
        return caller.may_see(slice_)
    return caller.sees is None or row.get("cluster", "") in clusters


def data_of(row: EventRow, veil: Veil) -> EventData:
    """An event over the wire, without the names of others' requests."""
    return EventData.model_validate(veil.strings(event_row(row)))
