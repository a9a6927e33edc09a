"""`/admin/insights`: trends, waits and how good estimates were. `/admin/lab`: a policy tried on the last weeks."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.http.context import Changed, changed
from portal.http.errors import ApiError, bad_parameters
from portal.pages.admin.rehearsal import Tried, tried
from portal.pages.forms import Form, Sent, filled, whole
from portal.pages.visit import AdminVisiting, Visit
from portal.routes import whatif
from portal.routes.whatif import PolicyTrial
from portal.views import table_rows
from portal.views.fleet.policy_trial import Trial, policy_of
from portal.views.view import View
from portal.writes.replayed_answers import Naming, naming_of
from portal.writes.write_request import Changes, Tree, WriteRequest
from portal.writes.yaml_files import fields_of, standing
from reconciler.accounts.insights import EMPTY
from reconciler.documents.yaml_edit import with_field
from reconciler.queries.insight_rows import insights_json
from reconciler.queries.past.promise_rows import promises_json
from schemas.documents.project import Project
from schemas.documents.scheduling import Ageing, Fairness, Preemption, Scheduling
from schemas.errors import EgsError

router = APIRouter(include_in_schema=False)

PAGE, LAB = "/admin/insights", "/admin/lab"
HOURS = 24
"""Of the capacity ahead."""
PROJECT = "project.yaml"


@router.get(PAGE)
def insights(visit: AdminVisiting, days: Annotated[int, Query(ge=1, le=92)] = 14) -> Response:
    """Of finished requests, promises and the hours ahead; all of one commit."""
    view = visit.view
    found = insights_json(view.facts.insights or EMPTY, days)
    return visit.page(
        "admin/insights.html",
        found=found,
        by_day=list(found["byDay"].items()),
        ledger=promises_json(view.facts, 12, frozenset()),
        ahead=table_rows.capacity(view, visit.caller, "", HOURS, ""),
        days=days,
    )


# -- the lab -----------------------------------------------------------------------------------------------------------


@router.get(LAB)
def lab(visit: AdminVisiting) -> Response:
    """The sliders, as the project has them now."""
    return _lab(visit, _form_of(visit.view.wanted.project.scheduling))


@router.post(LAB)
async def try_policy(visit: AdminVisiting, form: Sent) -> Response:
    """`do=try` replays it; `do=propose` also shows its effect on the queue; `do=save` makes it a pull request."""
    trial: Trial | None = None
    proposal: Tried | None = None
    try:
        policy = _policy(visit, form)
        if form.get("do") == "save":
            named = await naming_of(visit.caller, visit.parts, form.get("key", ""))
            return visit.landed(LAB, await _propose(visit, policy, named))
        fields = {"scheduling": policy.model_dump(mode="json", by_alias=True), "days": whole(form, "days")}
        body = filled(PolicyTrial, fields)
        trial = (await whatif.try_policy(body, visit.view, visit.caller, visit.parts)).data

        async def act(on: Visit, named: Naming) -> Changed:
            return await _propose(on, policy, named)

        proposal = await tried(visit, act)
    except EgsError as error:
        return _lab(visit, form, trial, None, error)
    return _lab(visit, form, trial, proposal)


async def _propose(visit: Visit, policy: Scheduling, named: Naming) -> Changed:
    """As a pull request, also where changes are pushed: a policy is everybody's."""

    def make(_: View, tree: Tree) -> Changes:
        found = standing(tree, PROJECT, Project)
        if found is None:
            raise bad_parameters(f"there is no {PROJECT}")
        # As a whole: where fairness or ageing is off, the file says null, which an edit by fields would remove.
        return {PROJECT: with_field(found[0], ("spec", "scheduling"), fields_of(policy) or None)}

    write = WriteRequest(visit.caller, "Change the scheduling policy", make, named.key, asks=True)
    return changed(await visit.parts.writer.submit(write))


def _lab(
    visit: Visit,
    form: Form,
    trial: Trial | None = None,
    proposal: Tried | None = None,
    error: EgsError | None = None,
) -> Response:
    status = error.status if isinstance(error, ApiError) else HTTPStatus.OK
    return visit.page("admin/lab.html", status, form=form, trial=trial, proposal=proposal, error=error)


def _form_of(policy: Scheduling) -> Form:
    fairness, ageing = policy.fairness or Fairness(), policy.ageing or Ageing()
    preemption = policy.preemption or Preemption()
    return {
        "days": "30",
        "fairness": "" if policy.fairness is None else "on",
        "half_life": str(round(fairness.half_life.total_seconds() / 86_400)),
        "share": str(fairness.step),
        "order": policy.order,
        "ageing": "" if policy.ageing is None else "on",
        "every": str(round(ageing.every.total_seconds() / 3600)),
        "step": str(ageing.step),
        "displacements": str(policy.max_displacements),
        "patience": "" if policy.max_wait_multiple is None else f"{policy.max_wait_multiple:g}",
        "preemption": "" if policy.preemption is None else "on",
        "guaranteed": str(round(preemption.guaranteed.total_seconds() / 60)),
        "gain": str(round(preemption.least_gain.total_seconds() / 60)),
    }


def _policy(visit: Visit, form: Form) -> Scheduling:
    """The project's policy with what the form says; the rest of it stays. ApiError 422."""
    now = visit.view.wanted.project.scheduling
    fairness, ageing = now.fairness or Fairness(), now.ageing or Ageing()
    preemption = now.preemption or Preemption()
    patience = form.get("patience", "")
    fields: dict[str, Any] = {
        "fairness": _part(
            form,
            "fairness",
            fairness,
            {"halfLife": _span(form, "half_life", "d"), "step": whole(form, "share")},
        ),
        "order": form.get("order", now.order),
        "ageing": _part(
            form, "ageing", ageing, {"every": _span(form, "every", "h"), "step": whole(form, "step")}
        ),
        "maxDisplacements": whole(form, "displacements"),
        "maxWaitMultiple": float(patience) if patience.replace(".", "", 1).isdecimal() else None,
        "preemption": _part(
            form,
            "preemption",
            preemption,
            {"guaranteed": _span(form, "guaranteed", "m"), "leastGain": _span(form, "gain", "m")},
        ),
    }
    return policy_of(now.model_dump(mode="json", by_alias=True) | fields)


def _part(
    form: Form, name: str, now: Fairness | Ageing | Preemption, fields: dict[str, Any]
) -> dict[str, Any] | None:
    """One part of the policy; None: it is off."""
    return now.model_dump(mode="json", by_alias=True) | fields if form.get(name) else None


def _span(form: Form, name: str, unit: str) -> str:
    return f"{whole(form, name) or 0}{unit}"
