"""`/whatif`: what a change would do that was not pushed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body
from pydantic import Field

from portal.http.context import Asking, Envelope, Looking, Of, Whole, Wire, example, ok
from portal.identity.callers import Caller
from portal.identity.rights import check_admin
from portal.openapi.refusals import refusals
from portal.vendor.what_if_models import WhatIfAsk
from portal.views.fleet.policy_trial import Trial, policy_of, trial
from portal.views.view import View
from portal.views.what_if import WhatIf, check_files, what_if
from portal.writes.proposed_files import proposed_files
from reconciler.store.store_port import Store

router = APIRouter(tags=["Queue"])


class PolicyTrial(Wire):
    """A scheduling policy to try."""

    model_config = example({"scheduling": {"order": "shortest-service"}, "days": 30})

    scheduling: dict[str, Any] = Field(
        description="As `spec.scheduling` of project.yaml: docs/reference/kinds/project.md.",
        examples=[{"order": "first-filed"}],
    )
    days: Annotated[Whole, Field(ge=1, le=92)] = Field(
        default=30, description="Requests filed in the last days are replayed."
    )


_EDIT = {"changes": [{"do": "edit", "gprId": "vision/train", "priority": 180}]}
_DELETE = {"files": {"slices/vision/gprs/train.yaml": None}}
_WINDOW = {
    "changes": [
        {
            "do": "maintenance",
            "clusterName": "east",
            "begin": "2026-11-21T08:00:00Z",
            "end": "2026-11-21T12:00:00Z",
            "nodes": ["h100-1"],
        }
    ]
}


@router.post(
    "/whatif",
    responses=refusals(
        403, 404, 422, "CrossSite", "Conflict", "GprAlreadyExists", "GpuAlreadyProvisioned", "GpuAlreadyReleased",
        "NotProvisioned", "Unchanged",
    ),
    summary="Ask what a change would do.",
)  # fmt: skip
async def ask_what_if(
    ask: Annotated[WhatIfAsk, Body(examples=[_EDIT, _DELETE, _WINDOW])],
    view: Looking,
    caller: Asking,
    parts: Of,
) -> Envelope[WhatIf]:
    """The check of a pull request with this change: problems, approvals, starts, cost, and who is delayed.

    Nothing is pushed or stored. Requests of workspaces that the caller may not see are counted, not named.
    """
    return ok(await parts.costly.answer(_answer, view, parts.store, caller, ask, parts.now()))


def _answer(view: View, store: Store, caller: Caller, ask: WhatIfAsk, now: datetime) -> WhatIf:
    check_files(caller, ask.files)
    return what_if(view, store, caller, proposed_files(view, store, caller, ask), now)


@router.post(
    "/whatif/policy", responses=refusals(403, 409, 422, "CrossSite"), summary="Try a scheduling policy."
)
async def try_policy(
    asked: Annotated[PolicyTrial, Body()], view: Looking, caller: Asking, parts: Of
) -> Envelope[Trial]:
    """Replays the requests of the last days under the present policy and under this one, as `egs simulate --history`.

    Nothing is pushed or stored. 409: no request was filed then. Admins only.
    """
    check_admin(caller, "try scheduling policies")
    policy = policy_of(asked.scheduling)
    return ok(await parts.costly.answer(trial, view, policy, asked.days, parts.now()))
