"""`/events`: past events, searched, and new ones as they happen."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from portal.http.context import Asking, Envelope, Looking, Of, Page, ok
from portal.http.paging import Portioned
from portal.http.sse import STREAM, StreamEvent, streaming
from portal.identity.rights import seen_slice
from portal.openapi.refusals import refusals
from portal.views.event_search import EventData, EventQuery, found
from portal.views.event_stream import EventStream
from portal.views.view import View

router = APIRouter(prefix="/events", tags=["Events"])


def asked(  # noqa: PLR0913 - each is a parameter of the path
    slice_: Annotated[str, Query(alias="slice", max_length=63, description="Only of this workspace.")] = "",
    gpr: Annotated[
        str,
        Query(
            max_length=200,
            description="Only of this request: its id (even of a deleted one), its name, or slice/name.",
        ),
    ] = "",
    node: Annotated[
        str,
        Query(max_length=320, description="Only of this node, or cluster/node; also if a message names it."),
    ] = "",
    cluster: Annotated[str, Query(max_length=63, description="Only of this cluster.")] = "",
    reason: Annotated[str, Query(max_length=60, description="Only this reason, such as GPRDelayed.")] = "",
    type_: Annotated[
        Literal["", "Normal", "Warning"], Query(alias="type", description="Only this type.")
    ] = "",
    q: Annotated[str, Query(max_length=200, description="Only with this text; case is ignored.")] = "",
    since: Annotated[
        str, Query(max_length=40, description="From this time on; `2h`: the last two hours.", examples=["2h"])
    ] = "",
    until: Annotated[str, Query(max_length=40, description="Before this time, or this long ago.")] = "",
) -> EventQuery:
    return EventQuery(slice_, gpr, node, cluster, reason, type_, q, since, until)


Search = Annotated[EventQuery, Depends(asked)]


@router.get("", responses=refusals(404, 422), summary="What happened, newest first.")
def search_events(
    view: Looking, caller: Asking, parts: Of, wanted: Search, portioned: Portioned
) -> Envelope[Page[EventData]]:
    """Events of the caller's workspaces and of their clusters; an admin searches all.

    One request searches 20,000 events: a page may be short or empty and still have a `next`.
    """
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
    """Server-sent events: the latest committed ones, oldest first, then each new one. `since` bounds the first, at most
    an hour back. The id of each is the commit that brought it."""
    if wanted.slice:
        seen_slice(view, caller, wanted.slice)
    wanted.filter(view, parts.now())  # refused before the stream begins
    stream = EventStream(wanted, parts.now())

    def tell(view: View) -> list[StreamEvent]:
        return stream.tell(view, parts.logins.recognise(request, view), parts.now())

    return streaming(request, parts, caller, tell)
