"""Quotes on the wire: when a request would start in each pool if it were filed now. Pure.

What does not depend on the question is computed once per view (`desk_of`); an answer costs the pools in question.

Held by tests/portal/test_quotes.py: the same answers as `egs wait`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, ValidationError

from portal.http.context import Wire
from portal.http.errors import bad_parameters
from portal.vendor.gpr_answers import forecast_of, spoken
from portal.vendor.gpr_filing import asked
from portal.vendor.gpr_models import ForecastData, Terms, TextLine
from portal.views.queues import plan_of
from portal.views.view import View
from portal.writes.gpr_changes import check_names, with_template
from reconciler.documents.yaml_edit import new_document
from reconciler.queries.quotes import QuoteContext, likely_starts
from reconciler.queries.quotes import quote_json as command_row
from scheduler.choices.fit import limit_violations, would_fit
from scheduler.quote import Quote
from scheduler.snapshot import PoolKey
from schemas.documents.gpr import GPRSpec, RequestSpec, resolve
from schemas.reading.reader import read_document
from schemas.reading.units import format_instant, instant, seconds
from schemas.rules.limits import LimitViolation
from schemas.rules.view import gpr_path
from schemas.status.insights import Forecast

FORECAST_AMONG = 200
"""Largest queue for which a quote has a forecast: it simulates many futures of the whole queue."""


class WaitAsk(Terms):
    """A hypothetical request."""

    request_name: TextLine = Field(default="", description="Informational; changes nothing.")
    slice_name: str = Field(max_length=63, description="The workspace it would be for.", examples=["vision"])


class WaitTime(Wire):
    """The quote for one pool."""

    cluster_name: str
    pool: str
    gpu_shape: str
    instance_type: str = Field(description="Empty: the pool names none.")
    gpus_per_node: int
    memory_per_gpu: Annotated[int, Field(alias="memoryPerGPU", description="GB.")]
    free_nodes: int = Field(description="Now.")
    estimated_start_time: str = Field(description="Empty: never, and `reason` says why.")
    estimated_wait_time: str = Field(examples=["0h2m40s"])
    estimated_wait_seconds: int | None
    needs_approval: bool = Field(description="The start holds only if an admin approves at once.")
    price_per_gpu_hour: float
    reason: str = Field(description="Stable identifier of why there is no start; empty: there is one.")
    message: str = Field(description="The same for people.")
    forecast: ForecastData | None = Field(
        description="When it would likely start; null: unknown, or the queue is too long for a forecast."
    )


@dataclass(frozen=True, slots=True)
class Quoted:
    """Answers by pool, earliest first, and notes about them."""

    items: tuple[WaitTime, ...]
    notes: tuple[str, ...] = ()


def desk_of(view: View) -> QuoteContext:
    """The part of quotes that is the same for a whole view; call it through `view.once_planned`."""
    return QuoteContext(view.state, view.once_planned(plan_of))


def quoted(view: View, ask: WaitAsk, now: datetime) -> Quoted:
    """The quotes at `now`. ApiError 422 for an invalid request. The workspace must exist."""
    wanted = asked(ask)
    spec = wished(view, ask.slice_name, with_template(view, ask.slice_name, wanted.spec))
    slice_ = view.wanted.slices[ask.slice_name]
    broken = limit_violations(spec, slice_)
    answers = view.once_planned(desk_of).quotes(spec)
    likely = _likely(view, spec, answers) if not broken else {}
    items = tuple(_item(view, answer, (broken, likely.get(answer.pool)), now) for answer in answers)
    notes = [*wanted.notes, *(violation.message for violation in broken)]
    if not answers:
        notes.append(f"it fits no pool that it may use: {would_fit(spec, slice_, view.wanted.pools)}")
    return Quoted(items, tuple(notes))


def wished(view: View, slice_: str, fields: Mapping[str, Any]) -> RequestSpec:
    """The request that these fields make, template included. ApiError 422 with everything that is wrong."""
    check_names(view, slice_, fields)
    content = {"slice": slice_, **fields}
    try:
        spec = GPRSpec.model_validate_json(json.dumps(content))
    except ValidationError:
        raise bad_parameters(_wrong(slice_, dict(fields))) from None
    template = None if spec.template is None else view.wanted.templates[spec.template]
    found = resolve(spec, template)
    if isinstance(found, str):
        raise bad_parameters(found)
    return found


def _wrong(slice_: str, fields: dict[str, Any]) -> str:
    """The same messages as for a file with these fields."""
    found = read_document(gpr_path(slice_, "wish"), new_document("GPR", "wish", {"slice": slice_, **fields}))
    problems = found if isinstance(found, tuple) else ()
    return "; ".join(problem.advice for problem in problems[:5]) or "this request is not possible"


def _likely(view: View, spec: RequestSpec, answers: tuple[Quote, ...]) -> dict[PoolKey, Forecast]:
    if len(view.state.snapshot.requests) > FORECAST_AMONG:
        return {}
    return likely_starts(view.state, view.once_planned(desk_of).unfiled_request(spec), answers)


def _item(
    view: View, answer: Quote, found: tuple[tuple[LimitViolation, ...], Forecast | None], now: datetime
) -> WaitTime:
    broken, likely = found
    row = command_row(answer, view.state, is_barred=bool(broken))
    # A start that has passed since the controller's last cycle is now.
    start = None if answer.start is None or broken else max(answer.start, seconds(now))
    wait_s = None if start is None else start - seconds(now)
    return WaitTime(
        cluster_name=row["cluster"],
        pool=row["pool"],
        gpu_shape=row["gpuShape"],
        instance_type=view.wanted.pools[answer.pool].instance_type or "",
        gpus_per_node=row["gpusPerNode"],
        memory_per_gpu=row["memoryPerGpu"],
        free_nodes=row["freeNodes"],
        estimated_start_time="" if start is None else format_instant(instant(start)),
        estimated_wait_time="" if wait_s is None else spoken(instant(wait_s) - instant(0)),
        estimated_wait_seconds=wait_s,
        needs_approval=row["needsApproval"],
        price_per_gpu_hour=row["pricePerGpuHour"],
        reason=row["reason"] or "",
        message="; ".join(violation.message for violation in broken) or answer.message or "",
        forecast=forecast_of(likely),
    )
