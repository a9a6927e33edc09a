"""`/whatif`: what a change would do that was not pushed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Body

from portal.http.context import Asking, Envelope, Looking, Of, ok
from portal.identity.callers import Caller
from portal.openapi.refusals import refusals
from portal.vendor.what_if_models import WhatIfAsk
from portal.views.view import View
from portal.views.what_if import WhatIf, check_files, what_if
from portal.writes.proposed_files import proposed_files
from reconciler.store.store_port import Store

router = APIRouter(tags=["Queue"])

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
