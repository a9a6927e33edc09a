"""`/gpr/waittime`: when a request would start if it were filed now."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body

from portal.http.context import Asking, Envelope, Looking, Of, Page, ok
from portal.identity.rights import seen_slice
from portal.openapi.refusals import refusals
from portal.views.quotes import WaitAsk, WaitTime, quoted

router = APIRouter(prefix="/gpr", tags=["Requests"])

_EXAMPLE = {"sliceName": "vision", "numberOfGPUs": 8, "numberOfGPUNodes": 2, "exitDuration": "0d6h0m"}


@router.post(
    "/waittime", responses=refusals(404, 422, "CrossSite"), summary="Ask when a request would start."
)
async def wait_time(
    ask: Annotated[WaitAsk, Body(examples=[_EXAMPLE])], view: Looking, caller: Asking, parts: Of
) -> Envelope[Page[WaitTime]]:
    """One answer for each pool that it could use; without a shape or cluster, for all of them. Files nothing."""
    seen_slice(view, caller, ask.slice_name)
    found = quoted(view, ask, parts.now())
    return ok(Page(items=found.items), "; ".join(found.notes) or "Success")
