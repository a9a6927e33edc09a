"""Searching events for one caller, page by page. Pure but for the reading of files.

Held by tests/portal/test_events.py: a caller sees no event of other workspaces and cannot find one by hidden text; a
cursor continues where the last page ended, whatever happened meanwhile; one search looks at no more than `SEARCHED`
events.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field

from portal.http.context import Wire
from portal.http.errors import bad_parameters
from portal.http.names import listed
from portal.http.paging import Portion, cursor_of, read_cursor
from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.views.event_log import SEARCHED
from portal.views.table_rows import clusters_seen
from portal.views.view import View
from reconciler.model.events import EventReason
from reconciler.queries.arguments import moment
from reconciler.queries.event_search import Between, EventRow, Filter, Spot, event_row, slice_of_event
from reconciler.sources.command_errors import WrongUse


class EventData(Wire):
    """One event; the row of `egs get events -o json`."""

    at: str | None
    reason: str | None = Field(
        description="From a closed list: docs/reference/events.md.", examples=["GPRDelayed"]
    )
    type: str | None = Field(examples=["Warning"])
    request: str | None = Field(description="slice/name.")
    cluster: str | None
    node: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class EventQuery:
    """The search as sent; empty fields match everything."""

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
        """The filter as commands use it; a request may also be named by its id. ApiError 422."""
        if self.reason and self.reason not in set(EventReason):
            raise bad_parameters(f"reason: there is no reason {self.reason}; there are {listed(EventReason)}")
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


@dataclass(frozen=True, slots=True)
class Search:
    """One caller's search in one view."""

    wanted: Filter
    caller: Caller
    clusters: frozenset[str]
    redactor: Redactor

    def data(self, row: EventRow) -> EventData | None:
        """The event on the wire; None: it does not match, or the caller may not see it.

        Text is matched against what the caller can read, so that a search cannot probe hidden names.
        """
        if not self.wanted.is_about(row) or not is_for(self.caller, row, self.clusters):
            return None
        shown = self.redactor.strings(row)
        return EventData.model_validate(event_row(shown)) if self.wanted.says(shown) else None


def search_of(view: View, caller: Caller, wanted: Filter) -> Search:
    return Search(wanted, caller, clusters_seen(view, caller), Redactor(caller, view))


def found(view: View, caller: Caller, wanted: Filter, portion: Portion) -> tuple[list[EventData], str | None]:
    """That page, newest first, and the cursor of older events; a page may be short or empty and still continue."""
    search = search_of(view, caller, wanted)
    part = Between(before=None if not portion.cursor else _spot(portion.cursor))
    items: list[EventData] = []
    last: Spot | None = None
    looked = 0
    for spot, row in view.events.looked(wanted, part):
        if last is not None and (len(items) == portion.limit or looked == SEARCHED):
            return items, cursor_of(last.number, last.path)
        last, looked = spot, looked + 1
        data = search.data(row)
        if data is not None:
            items.append(data)
    return items, None


def _spot(cursor: str) -> Spot:
    number, path = read_cursor(cursor)
    if path.count("/") < 2:
        raise bad_parameters("cursor: pass `next` of the previous page unchanged, or leave it out")
    return Spot(path, number)


def is_for(caller: Caller, row: EventRow, clusters: frozenset[str]) -> bool:
    """Events of their workspaces and of the clusters these span; those of repository and controller only for admins."""
    slice_ = slice_of_event(row)
    if slice_ is not None:
        return caller.may_see(slice_)
    return caller.sees is None or row.get("cluster", "") in clusters
