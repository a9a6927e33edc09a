"""`/workloads` and `/usage`: what runs, and what it costs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from portal.http.context import Asking, Envelope, Looking, Of, Page, ok
from portal.http.etags import WORKLOAD, of_each, tag_without
from portal.http.paging import Portioned, portion
from portal.identity.rights import seen_slice
from portal.openapi.refusals import refusals
from portal.views.workload_rows import Usage, Workload, usage, workloads

router = APIRouter(tags=["Workloads"])


@router.get("/workloads", responses=refusals(404, 422), summary="What runs on the nodes.")
async def list_workloads(
    view: Looking,
    caller: Asking,
    parts: Of,
    portioned: Portioned,
    slice_name: Annotated[
        str, Query(alias="sliceName", max_length=63, description="Only of this workspace.")
    ] = "",
) -> Envelope[Page[Workload]]:
    """Requests that have their nodes: model and parameters, GPUs, health, since when idle, cost so far."""
    if slice_name:
        seen_slice(view, caller, slice_name)
    found = workloads(view, caller, parts.now(), slice_name)
    chosen, more = portion(found, portioned, lambda one: one.name)
    page = Page[Workload](items=chosen, next=more)
    tag_without(of_each(WORKLOAD), page)
    return ok(page)


@router.get("/usage", responses=refusals(422), summary="Use and cost of workspaces.")
async def list_usage(view: Looking, caller: Asking, parts: Of, portioned: Portioned) -> Envelope[Page[Usage]]:
    """GPU-hours and cost of each workspace, by month, with what runs now."""
    chosen, more = portion(usage(view, caller, parts.now()), portioned, lambda one: one.slice_name)
    return ok(Page(items=chosen, next=more))
