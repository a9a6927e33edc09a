"""`/queue`, `/plan` and `/calendar`: which requests wait, in which order, and what happens when and where."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Response
from pydantic import ConfigDict, Field

from portal.http.context import Asking, Envelope, Looking, Of, Page, Wire, changed, ok
from portal.http.errors import bad_parameters
from portal.http.etags import QUEUE_ROW, STANDS, of_each, tag_without
from portal.http.paging import Portioned, portion
from portal.http.past import Then
from portal.identity.callers import Caller
from portal.identity.rights import check_admin, seen_slice
from portal.live.calendar_rows import MOST_ROWS, CalendarData, calendar
from portal.openapi.refusals import NAMED, refusals
from portal.vendor.gpr_answers import id_of
from portal.vendor.gpr_models import GprChanged
from portal.vendor.what_if_models import Moving
from portal.views.plan_text import plan_text
from portal.views.queues import queue, queue_row
from portal.views.view import View
from portal.writes import queue_moves
from portal.writes.gpr_changes import seen
from portal.writes.replayed_answers import Named, id_then
from portal.writes.write_request import Changes, Tree, WriteRequest
from reconciler.queries.calendars.calendar_rows import Wanted, Window
from schemas.reading.units import parse_instant, seconds, wire

router = APIRouter(tags=["Queue"])


class QueueRow(Wire):
    """A waiting request; the row of `egs get queue -o json`."""

    gpr_id: str
    rank: int | None = Field(description="In the whole queue, from 1; null: it is not planned.")
    position: int | None = Field(description="Among requests that wait for the same pool, from 1.")
    slice: str
    name: str
    phase: str
    priority: int
    nodes: int
    estimated_start_time: str | None
    estimated_wait_seconds: int | None
    cluster: str | None
    pool: str | None
    promised: bool = Field(description="Whether that start is committed; otherwise it is planned.")
    delayed_count: int
    reason: str | None


class PlanData(Wire):
    """The answer of `egs plan -o json`, each row with its request's id."""

    model_config = ConfigDict(extra="forbid")

    now: str
    commit: str
    requests: list[dict[str, Any]] = Field(
        description="Requests with nodes, then waiting ones, in rank order."
    )
    refused: list[dict[str, Any]] = Field(description="Requests without a start, and what would be allowed.")


@router.get("/queue", responses=refusals(404, 410, 422), summary="Waiting requests, in order.")
async def get_queue(
    view: Then,
    caller: Asking,
    parts: Of,
    portioned: Portioned,
    slice_name: Annotated[
        str, Query(alias="sliceName", max_length=63, description="Only of this workspace.")
    ] = "",
    cluster: Annotated[str, Query(max_length=63, description="Only requests planned in this cluster.")] = "",
) -> Envelope[Page[QueueRow]]:
    """Requests of the caller's workspaces, for an admin all; rank and position also count the others."""
    if slice_name:
        seen_slice(view, caller, slice_name)
    keys, more = portion(queue(view, caller, slice_name, cluster), portioned, lambda key: key)
    rows = (queue_row(view, key, view.clock(parts.now())) for key in keys)
    page = Page[QueueRow](items=[QueueRow.model_validate(row) for row in rows], next=more)
    tag_without(of_each(QUEUE_ROW), page)
    return ok(page)


@router.post("/queue/move", responses=refusals(404, *NAMED), summary="Move a waiting request.")
async def move(
    moving: Annotated[Moving, Body(examples=[{"gprId": "vision/train", "to": "first"}])],
    view: Looking,
    caller: Asking,
    parts: Of,
    named: Named,
) -> Envelope[GprChanged]:
    """Among requests of its priority, as `egs gpr move`; `POST whatif` tells whom it delays. Admins only."""
    if named.landed is not None:
        id_ = id_then(view, parts.store, named.landed.commit, moving.gpr_id)
        return ok(GprChanged(gpr_id=id_, change=changed(named.landed)))
    found = seen(view, caller, moving.gpr_id)
    check_admin(caller, "move requests")

    def make(view: View, tree: Tree) -> Changes:
        return queue_moves.moved(view, tree, caller, moving)

    where = moving.to or f"before {moving.before}"
    write = WriteRequest(caller, f"Move {found.key} {where}"[:200], make, named.key)
    landed = await parts.writer.submit(write)
    return ok(GprChanged(gpr_id=id_of(view, found) or found.key, change=changed(landed)))


@router.get(
    "/plan",
    response_model=Envelope[PlanData],
    responses=refusals(410, 422),
    summary="Which request starts when and where.",
)
async def get_plan(view: Then, caller: Asking, parts: Of) -> Response:
    """As `egs plan -o json`, without other workspaces' requests."""
    return await parts.costly.answer(_plan_told, view, caller, view.clock(parts.now()))


MOST_HOURS = 24 * 90


@router.get(
    "/calendar",
    responses=refusals(404, 410, 422),
    response_model_exclude_none=True,
    summary="What has which node, and when.",
)
def get_calendar(  # noqa: PLR0913 - each is a parameter of the path
    view: Then,
    caller: Asking,
    parts: Of,
    begin: Annotated[
        str, Query(alias="from", max_length=40, description="Bars from this time on; empty: from now on.")
    ] = "",
    hours: Annotated[int, Query(ge=1, le=MOST_HOURS, description="How many hours of bars.")] = 336,
    first: Annotated[
        int, Query(ge=0, description="Number of the first row among those that match, from 0.")
    ] = 0,
    rows: Annotated[int, Query(ge=0, le=MOST_ROWS, description="How many rows.")] = 60,
    cluster: Annotated[str, Query(max_length=63, description="Only nodes of this cluster.")] = "",
    pool: Annotated[str, Query(max_length=63, description="Only nodes of pools of this name.")] = "",
    shape: Annotated[str, Query(max_length=63, description="Only nodes of this GPU shape.")] = "",
    slice_name: Annotated[
        str, Query(alias="sliceName", max_length=63, description="Only nodes with a bar of this workspace.")
    ] = "",
    free: Annotated[bool, Query(description="Only nodes that are free now.")] = False,
) -> Envelope[CalendarData]:
    """Nodes as rows, by cluster and pool, with leases, promises, planned starts and maintenance as bars.

    A window of rows and time: ask for the rows that are shown. Bars of other workspaces have no name.
    """
    if slice_name:
        seen_slice(view, caller, slice_name)
    wanted = Wanted(cluster, pool, shape, slice_name, free)
    since = _instant(begin, view.clock(parts.now()))
    window = Window(seconds(since), seconds(since + timedelta(hours=hours)), first, rows)
    return ok(calendar(view, caller, wanted, window))


def _instant(text: str, now: datetime) -> datetime:
    try:
        return parse_instant(text) if text else now
    except ValueError as error:
        raise bad_parameters(f"from: {error}") from error


def _plan_told(view: View, caller: Caller, now: datetime) -> Response:
    """The whole answer as text: serialising a long queue at each question takes longer than planning it."""
    found = plan_text(view, caller)
    STANDS.get().digest = found.digest()
    around = PlanData(now=wire(now), commit=found.commit, requests=[], refused=found.refused)
    # No text of the data can contain this: quotes within texts are escaped.
    before, here, after = ok(around).model_dump_json(by_alias=True).partition('"requests":[]')
    body = f"{before}{here[:-2]}{found.requests(now)}{after}"
    return Response(body, media_type="application/json")
