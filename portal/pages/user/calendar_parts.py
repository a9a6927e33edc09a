"""Parts of the calendar: free nodes by time (`/calendar/free`), and a quote (`/calendar/quote`).

Free nodes are those of `GET tables/capacity`; the quote is that of the form for a new request, with whom it delays.

Held by tests/portal/pages/test_calendar_parts.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from math import ceil
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.pages.html import fresh_key, when
from portal.pages.user.calendar_time import Asked, InView
from portal.pages.user.new_request import USUAL, answer_of
from portal.pages.user.request_fields import WIRE, minute_of
from portal.pages.visit import Visit, Visiting
from portal.views.table_rows import capacity
from portal.views.view import View
from reconciler.planning.free_hours import MOST_HOURS
from schemas.reading.units import parse_instant

router = APIRouter(include_in_schema=False)

LEVELS = 4
"""Shades of how many are free."""
WINDOWS = 3
"""Times named for a shape."""
REMEMBERED = 100
"""Questions about free nodes whose answers a view keeps."""
_HOUR = timedelta(hours=1)
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A time in which the same number of nodes is free."""

    begin: datetime
    end: datetime
    free: int
    level: int
    is_enough: bool
    """Whether as many are free as the reader asks for; False if they ask for none."""
    x: float
    """Percent of the time in view, as `width`."""
    width: float
    href: str

    @property
    def told_begin(self) -> str:
        return when(self.begin).striptags()

    @property
    def told_end(self) -> str:
        return when(self.end).striptags()


@dataclass(frozen=True, slots=True)
class Free:
    """A time in which enough nodes are free."""

    begin: datetime | None
    """None: now."""
    end: datetime | None
    """None: as far as is known."""
    href: str


@dataclass(frozen=True, slots=True)
class Strip:
    """The free nodes of a shape."""

    shape: str
    nodes: int
    parts: tuple[Part, ...]
    windows: tuple[Free, ...]


@router.get("/calendar/free")
def free_part(
    visit: Visiting,
    asked: InView,
    cluster: Annotated[str, Query(max_length=63)] = "",
    shape: Annotated[str, Query(max_length=63)] = "",
    need: Annotated[int, Query(ge=0, le=100_000)] = 0,
) -> Response:
    """The strips anew, after another commit or for another time."""
    found = strips_of(visit, asked, cluster, shape, need)
    return visit.page("user/calendar_free.html", strips_found=found, need=need)


@router.get("/calendar/quote")
async def quote_part(visit: Visiting) -> Response:
    """When it could start in each pool, at which priority, and whom it would delay."""
    query = visit.request.query_params
    form = {**USUAL, **{name: query[name].strip() for name in WIRE if name in query}}
    form["notBefore"] = minute_of(form.get("notBefore", ""))
    answer = await answer_of(visit, form, fresh_key())
    starts = [one.quote.estimated_start_time for one in answer.offers if one.quote.estimated_start_time]
    wanted = query.get("notBefore", "")
    return visit.page(
        "user/calendar_quote.html",
        answer=answer,
        fields={name: value for name, value in form.items() if value},
        priority=form["priority"],
        currency=visit.view.wanted.project.currency,
        late=bool(wanted and starts and _is_later(min(starts), wanted)),
    )


def _is_later(start: str, wanted: str) -> bool:
    try:
        return parse_instant(start) > parse_instant(wanted) + timedelta(minutes=1)
    except ValueError:
        return False


def strips_of(visit: Visit, asked: Asked, cluster: str, shape: str, need: int) -> list[Strip]:
    """By shape, from now on. With `need`, the search goes beyond the view, to the end of what plans cover."""
    hours = MOST_HOURS if need else min(MOST_HOURS, ceil((asked.end - visit.view.facts.at) / _HOUR))
    if hours <= 0:
        return []
    rows = _capacity(visit, cluster, hours)
    by_shape = groupby(rows, key=lambda row: str(row["gpuShape"]))
    return [_strip(visit, asked, list(of), need) for name, of in by_shape if shape in ("", name)]


def free_times(visit: Visit, shape: str, need: int) -> list[Strip]:
    """When `need` nodes of each shape are free, within two weeks."""
    return strips_of(visit, Asked("2weeks", visit.view.facts.at), "", shape, need)


def _capacity(visit: Visit, cluster: str, hours: int) -> list[Row]:
    """Kept by view: everybody who sees the same clusters asks for the same."""
    known: dict[tuple[Any, ...], list[Row]] = visit.view.once(_capacities)
    sees = visit.caller.sees
    key = (None if sees is None else tuple(sorted(sees)), cluster, hours)
    if key not in known:
        found = capacity(visit.view, visit.caller, cluster, hours, "")
        if len(known) >= REMEMBERED:
            return found
        known[key] = found
    return known[key]


def _capacities(_: View) -> dict[tuple[Any, ...], list[Row]]:
    return {}


def _strip(visit: Visit, asked: Asked, rows: list[Row], need: int) -> Strip:
    spans = list(_spans(rows))
    shape, nodes = str(rows[0]["gpuShape"]), int(rows[0]["nodes"])
    parts = tuple(
        _part(visit, asked, (shape, nodes), span, need)
        for span in spans
        if span[1] > asked.begin and span[0] < asked.end
    )
    return Strip(shape, nodes, parts, tuple(_windows(visit, shape, spans, need)) if need else ())


Span = tuple[datetime, datetime, int]


def _spans(rows: Iterable[Row]) -> Iterator[Span]:
    """Hours that follow each other with the same number of free nodes."""
    for free, of in groupby(rows, key=lambda row: int(row["free"])):
        begins = [parse_instant(row["begin"]) for row in of]
        yield begins[0], begins[-1] + _HOUR, free


def _part(visit: Visit, asked: Asked, of: tuple[str, int], span: Span, need: int) -> Part:
    shape, nodes = of
    begin, end = max(span[0], asked.begin), min(span[1], asked.end)
    free = span[2]
    return Part(
        begin,
        end,
        free,
        ceil(LEVELS * free / nodes) if nodes else 0,
        bool(need) and free >= need,
        round(100 * ((begin - asked.begin) / asked.length), 2),
        round(100 * ((end - begin) / asked.length), 2),
        _request(visit, shape, span[0], min(free, need) if need else free),
    )


def _windows(visit: Visit, shape: str, spans: Sequence[Span], need: int) -> Iterator[Free]:
    runs = [list(of) for enough, of in groupby(spans, key=lambda span: span[2] >= need) if enough]
    last = spans[-1][1]
    for of in runs[:WINDOWS]:
        begin, end = of[0][0], of[-1][1]
        at = None if begin <= visit.now else begin
        yield Free(at, None if end == last else end, _request(visit, shape, begin, need))


def _request(visit: Visit, shape: str, begin: datetime, nodes: int) -> str:
    """The address of the form for that request: its nodes, and its begin."""
    wished: Mapping[str, Any] = {"shape": shape, "nodes": max(1, nodes)}
    later = {} if begin <= visit.now else {"notBefore": f"{begin:%Y-%m-%dT%H:%M}Z"}
    return visit.link("/requests/new", **wished, **later)
