"""`/insights`: statistics of finished requests."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from portal.http.context import Asking, Envelope, Looking, Wire, ok
from portal.openapi.refusals import refusals
from reconciler.accounts.insights import EMPTY
from reconciler.queries.insight_rows import insights_json

router = APIRouter(tags=["Insights"])
Figures = dict[str, Any]


class Insights(Wire):
    """The answer of `egs insights -o json`; docs/estimates.md explains the figures."""

    total: Figures
    by_shape: dict[str, Figures]
    by_slice: dict[str, Figures] = Field(description="The caller's workspaces; for an admin all.")
    by_hour: dict[str, Figures]
    by_day: dict[str, Figures]
    slips: dict[str, int] = Field(description="Promises moved to later, by cause.")


@router.get("/insights", responses=refusals(422), summary="Demand, waits, use, and accuracy of estimates.")
async def get_insights(
    view: Looking,
    caller: Asking,
    days: Annotated[int, Query(ge=1, le=92, description="Days listed one by one.")] = 14,
) -> Envelope[Insights]:
    """For the whole fleet and for the caller's workspaces."""
    found = insights_json(view.facts.insights or EMPTY, days)
    found["bySlice"] = {name: one for name, one in found["bySlice"].items() if caller.may_see(name)}
    return ok(Insights.model_validate(found))
