"""The calendar as one caller may see it: the data of `egs get calendar`, as models of the API.

`reconciler.queries.calendars` makes it of what this view keeps.

Held by tests/portal/live/test_calendar_rows.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field

from portal.http.context import Wire, optional
from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.live.live_changes import id_of
from portal.views.queues import line_of, plan_of
from portal.views.table_rows import clusters_seen
from portal.views.view import View
from reconciler.model.facts import NodeKey
from reconciler.queries.calendars import calendar_bars, calendar_rows
from reconciler.queries.calendars.calendar_bars import Bar, Kind, Row
from reconciler.queries.calendars.calendar_rows import Reader, Scene, Wanted, Window

MOST_ROWS = 200
"""Most nodes of one answer."""
At = int
"""Seconds since 1970."""


class CalendarBar(Wire):
    """A time in which something has the node. Times are seconds since 1970."""

    kind: Kind = Field(description="What it is; a promise is a committed start, `planned` may still move.")
    begin: At = Field(description="From here on the node is prepared and not free.")
    start: At | None = optional("When its use starts; absent: at `begin`.")
    end: At | None = optional("When its use ends; absent: at `until`.")
    until: At | None = optional("When the node is free and clean again; absent: unknown.")
    request: str | None = optional("slice/name, a key of `requests`; absent: none, or not for this caller.")


class CalendarRow(Wire):
    """A node."""

    cluster: str
    pool: str
    node: str
    state: str
    message: str | None = optional("What is wrong with it.")
    bars: list[CalendarBar] = Field(description="By begin; those of requests do not overlap.")


class CalendarWaits(Wire):
    """What a planned request waits for on one of its nodes."""

    kind: Kind
    request: str | None = optional("slice/name; absent: none, or not for this caller.")
    until: At


class CalendarRequest(Wire):
    """A request that the caller may see."""

    gpr_id: str
    phase: str
    nodes: int
    priority: int
    rank: int | None = optional("Its place in the queue, from 1.")
    likely: tuple[At, At] | None = optional(
        "One in ten starts before the first, one in ten after the second."
    )
    waits_for: list[CalendarWaits] | None = optional("What has its nodes until it begins.")
    reason: str | None = optional("Why it is where it is: a stable identifier.")
    message: str | None = optional("The same for people.")


class CalendarPool(Wire):
    """A group of rows."""

    cluster: str
    pool: str
    gpu_shape: str
    gpus_per_node: int
    memory_per_gpu: int = Field(alias="memoryPerGPU", description="GB.")
    first: int = Field(description="Number of its first row among all that match, from 0.")
    rows: int = Field(description="How many of its nodes match.")
    free: int = Field(description="How many of those are free now.")
    idle: bool = Field(description="Whether nothing has any of those in the window.")
    reachable: bool = Field(description="Whether its cluster answers; otherwise its rows may be old.")


class CalendarData(Wire):
    """A window of the calendar."""

    id: str = Field(description="Names the commits, as the `id` of `GET live`.")
    now: At = Field(description="When the plan was made.")
    begin: At = Field(description="First instant of the window.")
    total: int = Field(description="How many nodes match.")
    first: int = Field(description="Number of the first row here.")
    pools: list[CalendarPool] = Field(description="All that match, in order of their rows.")
    rows: list[CalendarRow]
    requests: dict[str, CalendarRequest] = Field(description="Those of the rows, by slice/name.")


def bars_of(view: View) -> Mapping[NodeKey, tuple[Bar, ...]]:
    """All bars by node; call it through `view.once_planned`."""
    return calendar_bars.bars_of(view.state, view.once_planned(plan_of))


def waits_for(view: View) -> Mapping[str, tuple[Bar, ...]]:
    """What planned requests wait for; call it through `view.once_planned`."""
    return calendar_bars.waits_in(view.once_planned(bars_of))


def rows_of(view: View) -> Sequence[Row]:
    """All rows; call it through `view.once`."""
    return calendar_bars.rows_of(view.state, view.once_planned(bars_of))


def calendar(view: View, caller: Caller, wanted: Wanted, window: Window) -> CalendarData:
    """The window of the rows that match."""
    return CalendarData.model_validate(
        calendar_rows.calendar(scene_of(view, caller), id_of(view), wanted, window)
    )


def scene_of(view: View, caller: Caller) -> Scene:
    """What the view keeps, as the caller may see it."""
    reader = Reader(clusters_seen(view, caller), caller.may_see, Redactor(caller, view).text)
    turns, waits = view.once_planned(line_of).turns, view.once_planned(waits_for)
    return Scene(view.state, view.once(rows_of), turns, waits, reader)


def rows_with_requests(
    view: View, caller: Caller, rows: Iterable[Row]
) -> tuple[list[CalendarRow], dict[str, CalendarRequest]]:
    """These rows with all their bars, and what the caller may know of the requests in them."""
    scene, shown = scene_of(view, caller), list(rows)
    known = calendar_rows.requests_in(scene, shown)
    return (
        [CalendarRow.model_validate(calendar_rows.row_data(scene, row)) for row in shown],
        {key: CalendarRequest.model_validate(one) for key, one in known.items()},
    )
