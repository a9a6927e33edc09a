"""`/calendar`: nodes along time, with what has them and what is planned; a table says the same without scripts.

What it shows is `GET /api/v1/calendar`; a script draws it, fetches the rows that come into view and follows the live
stream. Held by tests/portal/pages/test_calendar_page.py and tests/browser/test_calendar.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from markupsafe import Markup
from starlette.responses import Response

from portal.live.calendar_rows import CalendarBar, CalendarData, CalendarRow, calendar
from portal.pages.user.calendar_parts import strips_of
from portal.pages.user.calendar_time import DURING, NAMES, Asked, InView
from portal.pages.user.new_request import USUAL
from portal.pages.visit import Visit, Visiting
from portal.views.table_rows import clusters_seen
from reconciler.queries.calendars.calendar_rows import Wanted, Window
from schemas.reading.units import instant, seconds

router = APIRouter(include_in_schema=False)

Colour = Literal["", "workspace"]
"""What bars are coloured by; empty: what they are."""
HUES = 8
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


@router.get("/calendar")
def calendar_page(  # noqa: PLR0913 - each is a field of the form
    visit: Visiting,
    asked: InView,
    cluster: Annotated[str, Query(max_length=63)] = "",
    pool: Annotated[str, Query(max_length=63)] = "",
    shape: Annotated[str, Query(max_length=63)] = "",
    of: Annotated[str, Query(max_length=63)] = "",
    free: bool = False,
    first: Annotated[int, Query(ge=0)] = 0,
    need: Annotated[int, Query(ge=0, le=100_000)] = 0,
    colour: Colour = "",
) -> Response:
    """From today on, for a length that suits what is planned, unless the address says otherwise."""
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
        "need": need or "",
        "colour": colour,
    }
    hues = _hues(visit) if colour == "workspace" else {}
    return visit.page(
        "user/calendar.html",
        zoom=asked.zoom,
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
        need=need,
        colour=colour,
        hues=hues,
        strips_found=strips_of(visit, asked, cluster, shape, need),
        usual_priority=USUAL["priority"],
        data=_embedded(_told(visit, asked, wanted, found) | {"hues": hues}),
    )


def _hues(visit: Visit) -> dict[str, int]:
    """The colour of each workspace that the reader sees; beyond `HUES` workspaces colours come again."""
    return {name: number % HUES for number, name in enumerate(sorted(visit.frame.workspaces))}


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
