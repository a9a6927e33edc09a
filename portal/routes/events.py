"""`/events`: what happened, searched, and as it happens."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from portal.allowing import seen_slice
from portal.commandrows import clusters_seen
from portal.documenting import refusals
from portal.eventsearch import Asked, EventData, data_of, found, is_for
from portal.hiding import Veil
from portal.live import STREAM, Told, streaming
from portal.paging import Portioned
from portal.serving import Asking, Envelope, Looking, Of, Page, ok
from portal.view import View
from reconciler.commands.happenings import Spot

router = APIRouter(prefix="/events", tags=["Events"])

LATEST = 200
"""Events that a stream tells at most of one view: whoever needs every one searches."""


def asked(  # noqa: PLR0913 - each is a parameter of the path
    slice_: Annotated[str, Query(alias="slice", max_length=63, description="Only of this workspace.")] = "",
    gpr: Annotated[
        str, Query(max_length=200, description="Only of this request: its id, its name, or slice/name.")
    ] = "",
    node: Annotated[str, Query(max_length=320, description="Only of this node, or cluster/node.")] = "",
    cluster: Annotated[str, Query(max_length=63, description="Only of this cluster.")] = "",
    reason: Annotated[str, Query(max_length=60, description="Only these, such as GPRDelayed.")] = "",
    type_: Annotated[Literal["", "Normal", "Warning"], Query(alias="type", description="Only such.")] = "",
    q: Annotated[str, Query(max_length=200, description="Only with this text, in capitals or not.")] = "",
    since: Annotated[
        str, Query(max_length=40, description="From this time on; `2h`: two hours ago.", examples=["2h"])
    ] = "",
    until: Annotated[str, Query(max_length=40, description="Before this time, or so long ago.")] = "",
) -> Asked:
    """What is looked for."""
    return Asked(slice_, gpr, node, cluster, reason, type_, q, since, until)


Search = Annotated[Asked, Depends(asked)]


@router.get("", responses=refusals(404, 422), summary="What happened, newest first.")
def search_events(
    view: Looking, caller: Asking, parts: Of, wanted: Search, portioned: Portioned
) -> Envelope[Page[EventData]]:
    """Of the caller's workspaces and the clusters that these span; an admin searches everything."""
    if wanted.slice:
        seen_slice(view, caller, wanted.slice)
    items, more = found(view, caller, wanted.filter(view, parts.now()), portioned)
    return ok(Page(items=items, next=more))


@router.get(
    "/stream",
    responses={**refusals(404, 422), **STREAM},
    response_class=StreamingResponse,
    summary="What happens, as it happens.",
)
async def stream_events(
    request: Request, view: Looking, caller: Asking, parts: Of, wanted: Search
) -> StreamingResponse:
    """Server-sent events: the latest as they were committed, oldest first, and each one after; `since` bounds the
    first. The id of each is the commit that told it."""
    if wanted.slice:
        seen_slice(view, caller, wanted.slice)
    bounded = replace(wanted, since=wanted.since or "1h")
    bounded.filter(view, parts.now())  # refused before the stream begins

    def tell(view: View) -> list[Told]:
        who = parts.logins.recognise(request, view)
        veil, seen = Veil(who, view), clusters_seen(view, who)
        told: list[Told] = []
        for spot, row in view.events.found(bounded.filter(view, parts.now())):
            if is_for(who, row, seen):
                told.append(_told(spot, data_of(row, veil)))
            if len(told) == LATEST:
                break
        return told[::-1]

    return streaming(request, parts, tell)


def _told(spot: Spot, data: EventData) -> Told:
    return Told(f"{spot.path}:{spot.number}", "event", data.model_dump_json(by_alias=True))
