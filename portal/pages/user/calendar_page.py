"""`/calendar`: nodes along time, with what has them and what is planned; a table says the same without scripts.

What it shows is `GET /api/v1/calendar`; a script draws it, fetches the rows that come into view and follows the live
stream. Held by tests/portal/pages/test_calendar_page.py and tests/browser/test_calendar.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from markupsafe import Markup
from starlette.responses import Response

from portal.http.errors import bad_parameters
from portal.live.calendar_rows import CalendarBar, CalendarData, CalendarRow, calendar
from portal.pages.visit import Visit, Visiting
from portal.views.table_rows import clusters_seen
from reconciler.queries.calendars.calendar_rows import Wanted, Window
from schemas.reading.units import instant, parse_instant, seconds

router = APIRouter(include_in_schema=False)

Zoom = Literal["day", "week", "2weeks", "30days"]
HOURS: dict[Zoom, int] = {"day": 24, "week": 168, "2weeks": 336, "30days": 720}
NAMES: dict[Zoom, str] = {"day": "Day", "week": "Week", "2weeks": "2 weeks", "30days": "30 days"}
DURING: dict[Zoom, str] = {
    "day": "all day", "week": "all week", "2weeks": "both weeks", "30days": "all 30 days",
}  # fmt: skip
FIRST_ROWS = 60
"""Rows that come with the page: what a wall screen shows at once."""
TABLE_ROWS = 60
BARS_OF_A_ROW = 6
"""Bars of a node that its row of the table lists."""
_KINDS = {
    "lease": "has it",
    "promise": "starts",
    "planned": "is planned",
    "maintenance": "Maintenance",
    "out": "Out of service",
    "unreserved": "Not reserved",
}
_DATE = 10
"""Letters of a date without a time."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The time in view."""

    zoom: Zoom
    begin: datetime

    @property
    def length(self) -> timedelta:
        return timedelta(hours=HOURS[self.zoom])

    @property
    def end(self) -> datetime:
        return self.begin + self.length


@router.get("/calendar")
def calendar_page(  # noqa: PLR0913 - each is a field of the form
    visit: Visiting,
    zoom: Zoom = "2weeks",
    begin: Annotated[str, Query(alias="from", max_length=40)] = "",
    cluster: Annotated[str, Query(max_length=63)] = "",
    pool: Annotated[str, Query(max_length=63)] = "",
    shape: Annotated[str, Query(max_length=63)] = "",
    of: Annotated[str, Query(max_length=63)] = "",
    free: bool = False,
    first: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """From today on, for two weeks, unless the address says otherwise."""
    asked = Asked(zoom, _since(begin, visit.now, zoom))
    wanted = Wanted(cluster, pool, shape, of if visit.caller.may_see(of) else "", free)
    window = Window(seconds(asked.begin), seconds(asked.end), 0, FIRST_ROWS)
    found = calendar(visit.view, visit.caller, wanted, window)
    listed = calendar(visit.view, visit.caller, wanted, Window(window.begin, window.end, first, TABLE_ROWS))
    kept = {
        "cluster": cluster,
        "pool": pool,
        "shape": shape,
        "of": wanted.slice,
        "free": "true" if free else "",
    }
    return visit.page(
        "user/calendar.html",
        zoom=zoom,
        zooms=NAMES,
        asked=asked,
        kept=kept,
        choices=_choices(visit),
        found=found,
        table=[_line(row) for row in listed.rows],
        first=first,
        shown=TABLE_ROWS,
        workspaces=_files_in(visit),
        spans={name: visit.view.wanted.slices[name].clusters for name in _files_in(visit)},
        has_own=bool(visit.workspace or _own(visit)),
        data=_embedded(_told(visit, asked, wanted, found)),
    )


def _since(text: str, now: datetime, zoom: Zoom) -> datetime:
    """The beginning of the time in view; without one the last midnight (of a day: the last hour)."""
    if not text:
        return now.replace(minute=0, second=0, microsecond=0) if zoom == "day" else _midnight(now)
    try:
        return (
            _midnight(parse_instant(f"{text}T00:00:00Z"))
            if len(text) == _DATE
            else parse_instant(_full(text))
        )
    except ValueError as error:
        raise bad_parameters(
            "from: write a date such as 2026-11-21, or a time such as 2026-11-21T08:00Z"
        ) from error


def _full(text: str) -> str:
    """With seconds, which a browser's input leaves out."""
    return f"{text[:-1]}:00Z" if text.endswith("Z") and text.count(":") == 1 else text


def _midnight(at: datetime) -> datetime:
    return datetime.combine(at.date(), time(), UTC)


def _choices(visit: Visit) -> dict[str, list[str]]:
    """Clusters, pools and shapes that the caller's rows can have."""
    seen = clusters_seen(visit.view, visit.caller)
    pools = [pool for key, pool in visit.view.wanted.pools.items() if key[0] in seen]
    return {
        "cluster": sorted(seen),
        "pool": sorted({pool.key[1] for pool in pools}),
        "shape": sorted({pool.gpu_shape for pool in pools}),
    }


def _files_in(visit: Visit) -> list[str]:
    """Workspaces in which the caller may file requests."""
    return sorted(name for name in visit.frame.workspaces if name in visit.caller.actor.member_of)


def _own(visit: Visit) -> list[str]:
    """Workspaces that list the reader; an admin who is in none sees all alike."""
    email, slices = visit.caller.email, visit.view.wanted.slices
    return [
        name
        for name in visit.frame.workspaces
        if any(person.email == email for person in (*slices[name].members, *slices[name].owners))
    ]


def _told(visit: Visit, asked: Asked, wanted: Wanted, found: CalendarData) -> dict[str, Any]:
    """For the script: what is in view, and whose bars are the reader's own."""
    works = _files_in(visit)
    return {
        "zoom": asked.zoom,
        "from": seconds(asked.begin),
        "during": DURING[asked.zoom],
        "filters": {
            name: value
            for name, value in (
                ("cluster", wanted.cluster),
                ("pool", wanted.pool),
                ("shape", wanted.shape),
                ("sliceName", wanted.slice),
                ("free", "true" if wanted.is_free else ""),
            )
            if value
        },
        "own": [visit.workspace] if visit.workspace else _own(visit),
        "workspaces": len(visit.frame.workspaces),
        "works": works,
        "files": bool(works) or visit.caller.is_admin,
        "isAdmin": visit.caller.is_admin,
        "data": found.model_dump(by_alias=True, exclude_none=True),
    }


def _embedded(told: dict[str, Any]) -> Markup:
    """JSON within a script element that is data: nothing in it can end the element."""
    text = json.dumps(told, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704


@dataclass(frozen=True, slots=True)
class Line:
    """A node in the table."""

    row: CalendarRow
    bars: tuple[Told, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Told:
    """A bar in words."""

    request: str
    """slice/name; empty: none, or of another workspace."""
    text: str
    begin: datetime
    end: datetime | None


def _line(row: CalendarRow) -> Line:
    bars = tuple(_told_bar(bar) for bar in row.bars[:BARS_OF_A_ROW])
    return Line(row, bars, len(row.bars) - len(bars))


def _told_bar(bar: CalendarBar) -> Told:
    end = bar.end if bar.end is not None else bar.until
    return Told(
        bar.request or "",
        _KINDS[bar.kind],
        instant(bar.begin if bar.start is None else bar.start),
        None if end is None else instant(end),
    )
