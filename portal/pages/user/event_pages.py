"""`/events`: what happened, searched; the bell in the bar, with what is new to this person; `/alerts`.

What a person has read is a mark in a cookie: the place of the newest event that they were shown. Event files only grow,
so that the place never changes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.http.errors import ApiError
from portal.http.paging import Portion, cursor_of, read_cursor
from portal.identity.rights import seen_slice
from portal.pages.forms import Sent
from portal.pages.plain_words import reason_words
from portal.pages.user.workload_pages import Text, Values, beside, seen_by
from portal.pages.visit import Visit, Visiting
from portal.routes.events import Search
from portal.views.event_log import SEARCHED
from portal.views.event_search import EventData, EventQuery, found, search_of
from reconciler.model.events import EventReason
from reconciler.queries.event_search import Between, Filter, Spot, slice_of_event
from reconciler.status.branch import EVENT_FILE
from reconciler.workloads import alerts

router = APIRouter(include_in_schema=False)

Row = dict[str, Any]
SHOWN = 100
"""Events of one page."""
NEWEST, MOST_COUNTED, LOOKED_AT = 8, 99, 2000
"""Events in the bell's list; the highest count that is told; events that are looked at for it."""
UNMARKED = timedelta(days=1)
"""How far back events are new to a reader without a mark."""
YEAR_S = 31_536_000


@router.get("/events")
def event_list(
    visit: Visiting, wanted: Search, cursor: Annotated[str, Query(max_length=1000)] = ""
) -> Response:
    """Newest first. To look at all of them, unfiltered, is to have read them."""
    view, caller = visit.view, visit.caller
    query = replace(wanted, slice=wanted.slice or visit.workspace)
    if query.slice:
        seen_slice(view, caller, query.slice)
    rows, more = found(view, caller, query.filter(view, visit.now), Portion(SHOWN, cursor))
    answer = visit.page(
        "user/event_list.html",
        rows=rows,
        more=more,
        searched=SEARCHED if len(rows) < SHOWN and more else 0,
        wanted=wanted,
        cursor=cursor,
        names=[(name, name) for name in visit.frame.workspaces],
        reason_names=sorted(
            ((str(reason), f"{reason_words(reason)} ({reason})") for reason in EventReason),
            key=lambda one: one[1].lower(),
        ),
    )
    if wanted == EventQuery() and not cursor and not visit.workspace:
        _mark(visit, answer, _newest(visit))
    return answer


# -- the bell ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bell:
    """What is new about a person's own workspaces; for who sees all, also every warning."""

    rows: tuple[EventData, ...]
    unread: int
    is_more: bool
    """There are more than were counted."""
    mark: str
    """The place of the newest event; empty: there is none."""


@router.get("/bell")
def bell(visit: Visiting) -> Response:
    """A part of every page; a browser without scripts gets the page of events."""
    if "HX-Request" not in visit.request.headers:
        return visit.go("/events")
    return visit.page("user/bell.html", bell=bell_of(visit))


@router.post("/bell/read")
def read_bell(form: Sent, visit: Visiting) -> Response:
    """Events up to that mark are read."""
    answer = visit.go("/events")
    _mark(visit, answer, form.get("mark", ""))
    return answer


def bell_of(visit: Visit) -> Bell:
    """Costs the events since the mark, at most `LOOKED_AT`."""
    view, caller = visit.view, visit.caller
    after = _spot(visit.request.cookies.get(_cookie(visit), ""))
    wanted = Filter(since=None if after else visit.now - UNMARKED)
    search, own = search_of(view, caller, wanted), _own(visit)
    rows: list[EventData] = []
    unread = 0
    for _, row in islice(view.events.looked(wanted, Between(after=after)), LOOKED_AT):
        is_theirs = slice_of_event(row) in own or (caller.sees is None and row.get("type") == "Warning")
        data = search.data(row) if is_theirs else None
        if data is not None:
            unread += 1
            rows += [data] if len(rows) < NEWEST else []
        if unread > MOST_COUNTED:
            break
    return Bell(tuple(rows), min(unread, MOST_COUNTED), unread > MOST_COUNTED, _newest(visit))


def _own(visit: Visit) -> frozenset[str]:
    """Workspaces of which the person is a member or owner, as far as this login shows them."""
    email = visit.caller.email.lower()
    return frozenset(
        name
        for name, spec in visit.view.wanted.slices.items()
        if visit.caller.may_see(name) and email in {person.email.lower() for person in spec.people}
    )


def _newest(visit: Visit) -> str:
    spot = next((spot for spot, _ in visit.view.events.looked(Filter(), Between())), None)
    return "" if spot is None else cursor_of(spot.number, spot.path)


def _cookie(visit: Visit) -> str:
    """Its name: several people may share a browser."""
    return f"egs-read-{hashlib.sha256(visit.caller.email.encode()).hexdigest()[:8]}"


def _mark(visit: Visit, answer: Response, mark: str) -> None:
    if _spot(mark) is not None:
        answer.set_cookie(_cookie(visit), mark, max_age=YEAR_S, path="/", httponly=True, samesite="lax")


def _spot(mark: str) -> Spot | None:
    """None for what is no mark: a cookie may hold anything."""
    try:
        number, path = read_cursor(mark)
    except ApiError:
        return None
    return Spot(path, number) if EVENT_FILE.fullmatch(path) else None


# -- alerts ------------------------------------------------------------------------------------------------------------


@router.get("/alerts")
def alert_list(visit: Visiting, values: Values = "", q: Text = "") -> Response:
    """What is wrong with the caller's GPUs now, and from which value on."""
    rows: list[Row] = []
    limits: list[Row] = []
    seen = None
    if values:
        seen = seen_by(visit, visit.workspace)
        rows = [alerts.row(one) for one in alerts.alerts_of(seen.gpus, seen.now)]
        known = {(gpu.cluster, gpu.shape): gpu.limits for gpu in seen.gpus}
        limits = [{"cluster": place[0], "shape": place[1], "of": one} for place, one in sorted(known.items())]
    shown = [row for row in rows if q.lower() in " ".join(str(value) for value in row.values()).lower()]
    return beside(
        visit, "user/alert_list.html", values, rows=shown, total=len(rows), limits=limits, seen=seen, q=q
    )
