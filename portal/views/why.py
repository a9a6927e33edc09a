"""`egs why` on the wire: reasons, the forecast, and what would start a request earlier.

The reasons follow from the view's plan. Each alternative costs a plan of its own, so they are tried within a time
limit; the answer says how many were left out.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from portal.http.context import Wire
from portal.identity.redaction import Redactor
from portal.vendor.gpr_answers import NOT_SEEN_TEXT, Found, id_of
from portal.views.queues import full_plan_of
from portal.views.view import View
from reconciler.clock import monotonic_s
from reconciler.queries.alternatives import Tried
from reconciler.queries.why import changes, forecast_json, reasons
from scheduler.snapshot import Plan

MOST_S = 0.4
"""Time limit for trying alternatives."""
REMEMBERED = 1000
"""Most requests per view whose alternatives are kept."""


class Alternative(Wire):
    """One change that would start the request earlier."""

    field: str = Field(description="A field of its file.", examples=["nodes"])
    value: str | int
    estimated_start_time: str
    saved_seconds: int | None = Field(description="null: unchanged, it has no start.")
    cluster: str
    pool: str
    keeps_place: bool = Field(description="Whether it keeps its place in the queue.")


class Why(Wire):
    """Why a request is where it is."""

    gpr_id: str
    slice: str
    name: str
    phase: str | None = Field(description="null: the controller has not seen it yet.")
    reasons: list[str] = Field(description="Sentences, most direct reason first.")
    forecast: dict[str, Any] | None
    alternatives: list[Alternative]
    untried: int = Field(
        default=0,
        description="Changes that were not tried, because the queue is too long for the time limit.",
    )


def why(view: View, found: Found, redactor: Redactor) -> Why:
    """As `egs why -o json`, within a time limit."""
    status = found.status
    planned = view.once(full_plan_of) if status is not None else None
    helps = _helps(view, found.key, planned)
    return Why(
        gpr_id=id_of(view, found),
        slice=found.slice,
        name=found.name,
        phase=None if status is None else str(status.phase),
        reasons=sentences(view, found, redactor),
        forecast=forecast_json(None if status is None else status.forecast),
        alternatives=[Alternative.model_validate(one.json()) for one in helps.found],
        untried=helps.untried,
    )


def sentences(view: View, found: Found, redactor: Redactor) -> list[str]:
    """The reasons alone, the most direct first."""
    if found.status is None:
        return [NOT_SEEN_TEXT]
    told = reasons(view.state, found.key, view.once(full_plan_of))
    return [redactor.text(sentence) for sentence in told]


def _helps(view: View, key: str, planned: Plan | None) -> Tried:
    """Computed once per request and view: what follows from the plan does not change."""
    known = view.once(_tried_already)
    if key not in known:
        end_s = monotonic_s() + MOST_S
        found = changes(view.state, key, planned, lambda cost_s: monotonic_s() + cost_s <= end_s)
        if len(known) < REMEMBERED:
            known[key] = found
        return found
    return known[key]


def _tried_already(_: View) -> dict[str, Tried]:
    return {}
