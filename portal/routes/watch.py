"""`/gpr/watch`, `/watch` and `/live`: requests, or everything, as it changes: server-sent events."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from portal.http.context import Asking, Looking, Of
from portal.http.errors import not_found
from portal.http.sse import STREAM, StreamEvent, counted, streaming
from portal.identity.rights import seen_slice
from portal.live.live_stream import LiveStream
from portal.openapi.refusals import refusals
from portal.views.gpr_stream import Watch
from portal.views.view import View
from portal.writes.gpr_changes import seen

router = APIRouter(tags=["Requests"])


@router.get(
    "/gpr/watch",
    responses={**refusals(404), **STREAM},
    response_class=StreamingResponse,
    summary="Follow a request.",
)
async def watch_gpr(
    gpr_id: Annotated[
        str,
        Query(alias="gprId", max_length=200, description="Its id, or slice/name.", examples=["vision/train"]),
    ],
    request: Request,
    view: Looking,
    caller: Asking,
    parts: Of,
) -> StreamingResponse:
    """`event: gpr` with the request's data at once, and again after each change.

    The stream ends with phase Cancelled, also for a waiting request whose file was deleted.
    """
    key = seen(view, caller, gpr_id).key
    watch = Watch(keys=frozenset({key}))

    def tell(view: View) -> list[StreamEvent]:
        who = parts.logins.recognise(request, view)
        if not who.may_see(key.partition("/")[0]):  # a caller who has lost access gets nothing further
            raise not_found("request", key)
        told = watch.tell(view, who, parts.now())
        if not told:
            raise not_found("request", key)
        return told

    return streaming(request, parts, caller, tell)


@router.get(
    "/watch",
    responses={**refusals(404), **STREAM},
    response_class=StreamingResponse,
    summary="Follow the requests of a workspace.",
)
async def watch_slice(
    slice_name: Annotated[
        str, Query(alias="sliceName", max_length=63, description="The workspace.", examples=["vision"])
    ],
    request: Request,
    view: Looking,
    caller: Asking,
    parts: Of,
) -> StreamingResponse:
    """The same for every request of a workspace that waits or has nodes, until it ends."""
    seen_slice(view, caller, slice_name)
    watch = Watch(slice=slice_name)

    def tell(view: View) -> list[StreamEvent]:
        who = parts.logins.recognise(request, view)
        seen_slice(view, who, slice_name)
        return watch.tell(view, who, parts.now())

    return streaming(request, parts, caller, tell)


@router.get(
    "/live",
    responses={**refusals(), **STREAM},
    response_class=StreamingResponse,
    summary="Follow everything that a page shows.",
)
async def follow_live(
    request: Request,
    caller: Asking,
    parts: Of,
    calendar: Annotated[
        bool,
        Query(description="Also `event: calendar` before a commit: the rows of `GET calendar` that changed."),
    ] = False,
) -> StreamingResponse:
    """`event: commit` with each new commit: its age, and the requests and nodes that changed for the caller.

    `all` says that anything may have changed; so it does first, unless `Last-Event-ID` is the present commit. `event:
    beat` tells the age while nothing is new, `event: stale` that the repository does not answer and why, `event: fresh`
    that it answers again, and `event: end` why the stream ends: with status 401 or 403 for good.
    """
    last = request.headers.get("Last-Event-ID", "")
    stream = LiveStream(parts.reads, partial(parts.logins.recognise, request), last, calendar)
    return counted(stream.told(), caller)
