"""`/gpr/waittime`: when a request would start if it were filed now. `/advice`: which to file, and by when."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query

from portal.http.context import Asking, Envelope, Looking, Of, Page, ok
from portal.identity.rights import seen_slice
from portal.openapi.refusals import refusals
from portal.views.advice_rows import advice, served
from portal.views.quotes import WaitAsk, WaitTime, quoted
from reconciler.queries.demand.slice_advice import MOST_HOURS, Question

router = APIRouter(tags=["Requests"])

_EXAMPLE = {"sliceName": "vision", "numberOfGPUs": 8, "numberOfGPUNodes": 2, "exitDuration": "0d6h0m"}


@router.post(
    "/gpr/waittime", responses=refusals(404, 422, "CrossSite"), summary="Ask when a request would start."
)
async def wait_time(
    ask: Annotated[WaitAsk, Body(examples=[_EXAMPLE])], view: Looking, caller: Asking, parts: Of
) -> Envelope[Page[WaitTime]]:
    """One answer for each pool that it could use; without a shape or cluster, for all of them. Files nothing."""
    seen_slice(view, caller, ask.slice_name)
    found = quoted(view, ask, parts.now())
    return ok(Page(items=found.items), "; ".join(found.notes) or "Success")


_ADVICE = {
    "slice": "vision",
    "method": "learnt-quantile",
    "leadSeconds": 1200,
    "hours": [{"begin": "2026-11-21T08:00:00Z", "nodes": 3, "known": 2, "missing": 1}],
}
_SHOWN: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "application/json": {
                "example": {"statusCode": 200, "status": "OK", "message": "Success", "data": _ADVICE}
            }
        }
    }
}


@router.get(
    "/advice/{name}",
    responses={**refusals(404, 422), **_SHOWN},
    summary="Ask how many nodes to file for.",
)
async def ask_advice(  # noqa: PLR0913 - each is a parameter of the question
    name: Annotated[str, Path(description="The workspace.")],
    view: Looking,
    caller: Asking,
    parts: Of,
    hours: Annotated[int, Query(ge=1, le=MOST_HOURS, description="Hours to look ahead.")] = 24,
    patience: Annotated[
        str,
        Query(
            max_length=20, description="The price of waiting: after so long it has cost as much as the work."
        ),
    ] = "1h",
    cold_start: Annotated[
        str,
        Query(alias="coldStart", max_length=20, description="From a lease's start until its work runs."),
    ] = "10m",
    gpus_per_node: Annotated[
        int | None,
        Query(
            alias="gpusPerNode",
            ge=1,
            le=1024,
            description="GPUs each node has at least; absent: 1, for an endpoint those of its request.",
        ),
    ] = None,
    gpu_shape: Annotated[
        str, Query(alias="gpuShape", max_length=500, description="Shapes, comma-separated; empty: any.")
    ] = "",
    endpoint: Annotated[
        str,
        Query(max_length=63, description="Learn from what this endpoint served; empty: from requests."),
    ] = "",
) -> Envelope[dict[str, Any]]:
    """As `egs advise -o json`: nodes by hour, by when to file for missing ones, and the requests that would do so."""
    seen_slice(view, caller, name)
    shapes = tuple(shape for shape in gpu_shape.split(",") if shape)
    asked = Question(hours, patience, cold_start, gpus_per_node, shapes, endpoint)
    past = await served(view, name, asked, parts.sources.past)
    return ok(await parts.costly.answer(advice, view, name, asked, past))
