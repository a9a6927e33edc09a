"""`/admin`: is the fleet kept: allocation against use by pool, promises, and what needs an admin."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter
from starlette.responses import Response

from portal.pages.visit import AdminVisiting
from portal.routes import problems
from portal.views.fleet import fleet_state
from portal.views.running_work import seen_by
from reconciler.queries.past.promise_rows import promises_json

router = APIRouter(include_in_schema=False)

MONTHS = 3
"""Of the ledger of promises."""
LATELY = timedelta(days=7)
SLIPS = 12
"""Moves to later that are listed."""


@router.get("/admin")
def overview(visit: AdminVisiting) -> Response:
    """All numbers are of one commit; use is measured now."""
    view, parts, now = visit.view, visit.parts, visit.now
    seen = seen_by(parts.sources, view, visit.caller, now)
    pools = fleet_state.pools(view, seen.gpus)
    moved = fleet_state.slips(view, now - LATELY)
    return visit.page(
        "admin/overview.html",
        pools=pools,
        used=fleet_state.use_of(pools),
        needs=fleet_state.needs(view, problems.rows(view, parts.store, now)),
        ledger=promises_json(view.facts, MONTHS, visit.caller.sees),
        moved=moved[:SLIPS],
        moves=len(moved),
        phases=fleet_state.phases(view),
        silences=seen.silences,
    )
