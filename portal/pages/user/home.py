"""`/`: when do I start, what runs, what is free, what it costs, what is wrong; and what needs an admin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from portal.http.paging import Portion
from portal.pages.user.request_rows import Brief, Chosen, matching, ordered, rows
from portal.pages.visit import Visit, Visiting
from portal.routes.events import search_events
from portal.vendor.approval_models import pending
from portal.vendor.gpr_answers import found_in
from portal.vendor.gpr_models import GprData
from portal.views.event_search import EventQuery
from portal.views.running_work import seen_by
from portal.views.table_rows import capacity
from portal.views.why import sentences
from portal.views.workload_rows import usage
from reconciler.queries.running.sight import Sight
from reconciler.queries.running.workload_details import gpu_table

router = APIRouter(include_in_schema=False)

SHOWN = 5
"""Requests of each kind, and warnings."""
AHEAD_H = 72
"""How far the next free node is looked for."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that waits, and one line of why."""

    row: GprData
    why: str


@dataclass(frozen=True, slots=True)
class Free:
    """Nodes of a shape."""

    shape: str
    now: int
    nodes: int
    next_at: str
    """When more are free; empty: not within `AHEAD_H` hours."""
    next_free: int


@dataclass(frozen=True, slots=True)
class Spent:
    """Of the calendar month (UTC), running leases included."""

    amount: float | None
    """None: nothing has a price."""
    gpu_hours: float
    currency: str


@dataclass(frozen=True, slots=True)
class Hottest:
    """The GPU with the highest temperature."""

    top: Mapping[str, Any] | None
    """None: none is measured."""
    hot: int
    """How many are at a limit of heat or power."""
    measured: int
    seen: Sight


@router.get("/")
def home(visit: Visiting) -> Response:
    """Cards; each leads to the page that tells more."""
    waiting, running = _found(visit, "waiting"), _found(visit, "running")
    told = [_why(visit, one) for one in waiting[:SHOWN]]
    return visit.page(
        "user/home.html",
        waiting=told,
        next=next((one for one in told if one.row.estimated_start_time), None),
        waiting_count=len(waiting),
        running=[row for row, _ in _rows(visit, running[:SHOWN])],
        running_count=len(running),
        free=_free(visit),
        ahead_h=AHEAD_H,
        spent=_spent(visit),
        warnings=_warnings(visit),
        approvals=len(pending(visit.view, visit.caller)) if visit.caller.is_admin else 0,
        has_workspace=bool(visit.frame.workspaces),
        may_file=bool(visit.caller.actor.member_of),
    )


@router.get("/hottest")
def hottest(visit: Visiting) -> Response:
    """The card of the hottest GPU, which comes after the page: clusters and Prometheus are asked for it."""
    found = hottest_of(visit)
    return visit.page(
        "user/hottest.html",
        top=found.top,
        hot=found.hot,
        measured=found.measured,
        holds=bool(found.seen.held or found.seen.gpus),
        silences=found.seen.silences,
    )


def hottest_of(visit: Visit) -> Hottest:
    """Asks clusters and Prometheus."""
    seen = seen_by(visit.parts.sources, visit.view, visit.caller, visit.now, visit.workspace)
    rows = [row for row in gpu_table(seen) if row["tempC"] is not None]
    top = max(rows, key=lambda row: row["tempC"], default=None)
    return Hottest(top, sum(row["hot"] for row in rows), len(rows), seen)


def _found(visit: Visit, which: str) -> Sequence[Brief]:
    caller, only = visit.caller, visit.workspace
    wanted = Chosen(which)
    mine = matching(visit.view, lambda name: only in ("", name) and caller.may_see(name), wanted)
    return ordered(visit.view, mine, wanted, visit.now)


def _rows(visit: Visit, found: Sequence[Brief]) -> list[Any]:
    return rows(visit.view, (one.key for one in found), visit.now, visit.redactor)


def _why(visit: Visit, one: Brief) -> Waiting:
    """What holds it up: the first sentence after the one that says when it starts."""
    found = found_in(visit.view, one.key)
    assert found is not None, "it was found in this view"
    told = sentences(visit.view, found, visit.redactor)
    ((row, _),) = _rows(visit, [one])
    has_start = bool(row.estimated_start_time) and len(told) > 1
    why = told[1] if has_start else told[0]
    return Waiting(row, why[:1].upper() + why[1:])


def _free(visit: Visit) -> list[Free]:
    """By shape, of pools that the caller may use."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in capacity(visit.view, visit.caller, "", AHEAD_H, ""):
        found.setdefault(row["gpuShape"], []).append(row)
    return [_shape(shape, hours) for shape, hours in sorted(found.items())]


def _shape(shape: str, hours: list[dict[str, Any]]) -> Free:
    now = hours[0]
    more = next((row for row in hours if row["free"] > now["free"]), None)
    at, free = ("", 0) if more is None else (more["begin"], more["free"])
    return Free(shape, now["free"], now["nodes"], at, free)


def _spent(visit: Visit) -> Spent:
    month = f"{visit.now:%Y-%m}"
    found = [
        one for one in usage(visit.view, visit.caller, visit.now) if visit.workspace in ("", one.slice_name)
    ]
    ended = [each for one in found for each in one.months if each.month == month]
    hours = sum(each.gpu_hours for each in ended) + sum(one.running_gpu_hours for one in found)
    amount = sum(each.cost for each in ended) + sum(one.running_cost for one in found)
    currency = visit.view.wanted.project.currency
    return Spent(amount if amount or not hours else None, hours, currency)


def _warnings(visit: Visit) -> Sequence[Any]:
    wanted = EventQuery(slice=visit.workspace, type="Warning", since="24h")
    return search_events(visit.view, visit.caller, visit.parts, wanted, Portion(SHOWN)).data.items
