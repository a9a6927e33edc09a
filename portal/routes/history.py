"""What was: `/insights` of finished requests, `/promises` and what became of them, `/blame`, `/diff`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field

from portal.http.context import Asking, Envelope, Looking, Of, Wire, example, ok, optional
from portal.http.errors import bad_parameters
from portal.openapi.refusals import refusals
from portal.views.past.blame import blame
from portal.views.past.differences import StateDiff, state_diff
from portal.writes import gpr_changes
from reconciler.accounts.insights import EMPTY
from reconciler.queries.insight_rows import insights_json
from reconciler.queries.past.blame import Blamed
from reconciler.queries.past.promise_rows import promises_json
from schemas.rules.view import gpr_path

router = APIRouter(tags=["Insights"])
Figures = dict[str, Any]


class Insights(Wire):
    """The answer of `egs insights -o json`; docs/explain/estimates.md explains the figures."""

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
    """The answer of `egs promises -o json`; docs/explain/estimates.md explains the figures."""

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


class SetOnMain(Wire):
    """A commit of main that changed the file, or the field."""

    commit: str = Field(
        description="The commit that made the change, if a merge brought it that of its branch."
    )
    at: str
    name: str
    email: str
    subject: str
    pull_request: str | None = optional("`#12`, or `!12` of GitLab, if a message names it.")
    merged_by: str | None = optional("The merge that brought it to main.")
    was: Any = optional("The value of the field before; null: there was none.")
    now: Any = optional("The value of the field since.")


class Cause(Wire):
    """An event of that time about the request."""

    at: str
    reason: str
    message: str


class SetInStatus(Wire):
    """A commit of the controller that changed the record, or the field."""

    commit: str = Field(description="The status commit; `?at=` shows its state.")
    at: str
    after: str | None = optional("The change was after this kept state; null: it is the oldest one.")
    subject: str
    main: str | None = optional("The commit of main that it answers.")
    events: list[Cause] = Field(description="Why: at most 5 events.")
    was: Any = optional("The value of the field before; null: there was none.")
    now: Any = optional("The value of the field since.")


class Blame(Wire):
    """The answer of `egs blame -o json`."""

    model_config = example(
        {
            "path": "slices/vision/gprs/train.yaml",
            "field": "spec.priority",
            "main": [
                {
                    "commit": "8d5f0a1c6b7e4f2d9a3b5c7d9e1f2a3b4c5d6e7f",
                    "at": "2026-11-21T08:00:00Z",
                    "name": "Bo Ek",
                    "email": "bo@example.com",
                    "subject": "Raise the priority of train (#12)",
                    "pullRequest": "#12",
                    "mergedBy": None,
                    "was": 101,
                    "now": 180,
                }
            ],
            "status": [],
        }
    )

    path: str
    field: str | None = optional("Null: the whole file.")
    main: list[SetOnMain] = Field(description="The newest first.")
    status: list[SetInStatus] = Field(description="The newest first; of requests alone.")


@router.get("/blame", responses=refusals(404, 422), summary="Which commit set this.")
async def get_blame(  # noqa: PLR0913 - each is a parameter of the path
    view: Looking,
    caller: Asking,
    parts: Of,
    gpr_id: Annotated[
        str, Query(alias="gprId", max_length=200, description="A request: its id, or slice/name.")
    ] = "",
    path: Annotated[str, Query(max_length=300, description="Or a document: its path on main.")] = "",
    field: Annotated[
        str,
        Query(
            max_length=200,
            description="Only this field: `spec.…` of the file, `status.…` of the request's record.",
        ),
    ] = "",
    limit: Annotated[int, Query(ge=1, le=50, description="Most commits of each.")] = 10,
) -> Envelope[Blame]:
    """As `egs blame -o json`: who changed a request, a document, or one field, when, and by which pull request; of a
    status the controller's commits, with the events of that time."""
    if bool(gpr_id) == bool(path):
        raise bad_parameters("give either gprId or path")
    where = gpr_path(*gpr_changes.seen(view, caller, gpr_id).key.split("/", 1)) if gpr_id else path
    asked = Blamed(where, field or None, limit)
    found = await parts.costly.answer(blame, parts.store, parts.past.states, view, caller, asked)
    return ok(Blame.model_validate(found))


@router.get("/diff", responses=refusals(410, 422), summary="What differs between two states.")
async def get_diff(
    view: Looking,
    caller: Asking,
    parts: Of,
    from_: Annotated[
        str,
        Query(
            alias="from",
            max_length=80,
            description="The first state: a status commit, an instant, or how long ago, such as `12h`.",
            examples=["12h"],
        ),
    ],
    to: Annotated[str, Query(max_length=80, description="The second state, later; empty: now.")] = "",
) -> Envelope[StateDiff]:
    """Requests that were filed, promised, slipped (with the cause), started or ended; nodes in another state; people
    and rules that changed. Each with a sentence, as far as the caller may see it now."""
    about = (parts.past, view, caller, (from_, to), parts.now())
    return ok(await parts.costly.answer(state_diff, *about))
