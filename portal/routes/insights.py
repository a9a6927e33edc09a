"""`/insights` and `/promises`: statistics of finished requests, and what became of promised starts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field

from portal.http.context import Asking, Envelope, Looking, Of, Wire, ok, optional
from portal.openapi.refusals import refusals
from reconciler.accounts.insights import EMPTY
from reconciler.queries.insight_rows import insights_json
from reconciler.queries.past.promise_rows import promises_json

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


class ForecastQuality(Wire):
    """How good the first forecasts of these starts were."""

    starts: int = Field(description="Starts that had a forecast.")
    covered: float | None = Field(description="Share of them between p10 and p90; null: none had one.")
    median_error_at_most_seconds: int | None = Field(
        description="Half of them were at most this far from p50; null: more than a week, or none."
    )


class Settled(Wire):
    """Promised starts that were kept, slipped or withdrawn."""

    starts: int = Field(description="Promised starts that happened.")
    kept: int = Field(description="At the promised instant or earlier, or within the tolerance after it.")
    slipped: int = Field(description="Later than that.")
    kept_share: float | None = Field(description="Null: no promised start happened.")
    withdrawn: int = Field(
        description="Promises of requests that were cancelled, edited anew or failed before."
    )
    causes: dict[str, int] = Field(description="Slipped starts by the cause that delayed them most.")
    median_error_at_most_seconds: int | None = Field(
        description="Half of the starts were at most this far from their promise; null: more than a week, or none."
    )
    forecast: ForecastQuality


class Month(Settled):
    """The same for one month."""

    month: str = Field(description="UTC, such as 2026-11.")


class OpenPromises(Wire):
    """Promises that are not settled yet."""

    promises: int
    later: int = Field(description="Those that now stand later than they were made.")


class PromisedStart(Wire):
    """One promised start that happened."""

    slice: str
    name: str
    promised: str
    start: str
    late_seconds: int = Field(description="0: at the promised instant or earlier.")
    cause: str | None = optional("Why it slipped; null: it was kept.")


class Ledger(Wire):
    """The answer of `egs promises -o json`; docs/estimates.md explains the figures."""

    tolerance_seconds: int = Field(description="A start this late is still kept.")
    open: OpenPromises
    total: Settled
    months: list[Month] = Field(description="The newest first.")
    recent: list[PromisedStart] = Field(
        description="The newest starts of the caller's workspaces, for an admin of all; for strangers none."
    )


@router.get(
    "/promises", responses=refusals(422), summary="What became of every promised start. For everybody."
)
async def get_promises(
    request: Request,
    view: Looking,
    parts: Of,
    months: Annotated[int, Query(ge=1, le=36, description="Months listed one by one.")] = 12,
) -> Envelope[Ledger]:
    """Counts of the whole fleet by month and cause, for anybody; a known caller also gets their workspaces' starts."""
    caller = parts.logins.identify(request, view) if parts.logins.is_known(request, view) else None
    sees = frozenset[str]() if caller is None else caller.sees
    return ok(Ledger.model_validate(promises_json(view.facts, months, sees)))
