"""`/requests`: all requests that the caller may see, filtered by workspace, phase and text."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.pages.visit import Visiting
from portal.routes.gpr import keys_of
from portal.vendor.gpr_answers import FILED, data_of
from portal.vendor.gpr_models import GprData
from portal.writes.gpr_changes import seen
from schemas.status.gpr_status import HOLDING, TERMINAL, WAITING, Phase

router = APIRouter(include_in_schema=False)

Which = Literal["open", "waiting", "running", "over", "all"]
WHICH: dict[Which, frozenset[str]] = {
    "open": frozenset({FILED, *WAITING, *HOLDING}),
    "waiting": frozenset({FILED, *WAITING}),
    "running": frozenset(HOLDING),
    "over": frozenset(TERMINAL),
    "all": frozenset({FILED, *Phase}),
}
SHOWN = 200
"""Rows of one page."""


@router.get("/requests")
def request_list(
    visit: Visiting,
    which: Which = "open",
    q: Annotated[str, Query(max_length=100)] = "",
    first: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """Waiting ones first, by their start; then running ones by their end, then finished ones."""
    found = [row for row in _rows(visit, which) if q.lower() in _text(row).lower()]
    found.sort(key=_order)
    return visit.page(
        "user/request_list.html",
        rows=found[first : first + SHOWN],
        total=len(found),
        first=first,
        shown=SHOWN,
        which=which,
        kinds=tuple(WHICH),
        q=q,
    )


def _rows(visit: Visiting, which: Which) -> list[GprData]:
    view, caller, phases, slice_ = visit.view, visit.caller, WHICH[which], visit.workspace
    redactor, now = visit.redactor, visit.now
    found = []
    for key in view.once(keys_of):
        owner = key.partition("/")[0]
        status = view.facts.requests.get(key)
        phase = FILED if status is None else str(status.phase)
        if phase in phases and slice_ in ("", owner) and caller.may_see(owner):
            found.append(data_of(view, seen(view, caller, key), now, redactor))
    return found


def _text(row: GprData) -> str:
    return f"{row.name} {row.gpr_name} {row.gpu_shape} {row.cluster_name} {row.phase} {row.model.name}"


def _order(row: GprData) -> tuple[int, str, str]:
    if row.phase in WHICH["waiting"]:
        return 0, row.estimated_start_time or "~", row.name
    if row.phase in HOLDING:
        return 1, row.end_time or "~", row.name
    return 2, "", row.name
