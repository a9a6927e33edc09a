"""`/admin/usage`: what to charge to whom, by month. `/admin/people`: who may do what, with which keys."""

from __future__ import annotations

import csv
import io
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.pages.forms import Sent, filled
from portal.pages.visit import AdminVisiting, Visit
from portal.routes import apikeys
from portal.vendor.key_models import KeyNamed, keys_shown
from portal.views.fleet.people import people
from portal.views.workload_rows import Usage, usage
from schemas.errors import EgsError

router = APIRouter(include_in_schema=False)

USAGE, PEOPLE = "/admin/usage", "/admin/people"
MONTHS = 6
Row = tuple[str, str, float, float, int]
"""Workspace, month, GPU-hours, amount, leases."""


@router.get(USAGE)
def usage_page(visit: AdminVisiting) -> Response:
    """Ended leases by workspace and month, with what runs now beside them."""
    found = usage(visit.view, visit.caller, visit.now)
    months = sorted({month.month for one in found for month in one.months})[-MONTHS:]
    cells = {(one.slice_name, month.month): month for one in found for month in one.months}
    totals = {name: sum(m.cost for (_, month), m in cells.items() if month == name) for name in months}
    return visit.page(
        "admin/usage.html",
        rows=sorted(found, key=lambda one: (-one.cost, one.slice_name)),
        months=months,
        cells=cells,
        totals=totals,
        currency=visit.view.wanted.project.currency,
    )


@router.get(USAGE + ".csv")
def usage_csv(visit: AdminVisiting) -> Response:
    """A line for each workspace and month, and one for what runs now."""
    text, currency = io.StringIO(), visit.view.wanted.project.currency
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("workspace", "month", "gpu_hours", "amount", "currency", "leases"))
    for one in usage(visit.view, visit.caller, visit.now):
        for row in _lines(one):
            lines.writerow((row[0], row[1], row[2], row[3], currency, row[4]))
    headers = {"Content-Disposition": 'attachment; filename="chargeback.csv"'}
    return Response(text.getvalue(), headers=headers, media_type="text/csv; charset=utf-8")


def _lines(one: Usage) -> list[Row]:
    ended: list[Row] = [(one.slice_name, m.month, m.gpu_hours, m.cost, m.leases) for m in one.months]
    running: Row = (one.slice_name, "running", one.running_gpu_hours, one.running_cost, 0)
    return [*ended, running] if one.running_gpu_hours else ended


@router.get(PEOPLE)
def people_page(visit: AdminVisiting, q: Annotated[str, Query(max_length=100)] = "") -> Response:
    """Everybody that the documents name, and groups of the identity provider."""
    return _people(visit, q)


@router.post(PEOPLE + "/revoke")
async def revoke_key(visit: AdminVisiting, form: Sent) -> Response:
    """The key is refused as soon as the change is read."""
    try:
        body = filled(KeyNamed, {"name": form.get("name", "")})
        done = await apikeys.delete(body, visit.view, visit.caller, visit.parts)
    except EgsError as error:
        return _people(visit, "", error)
    return visit.landed(PEOPLE, done.data.change)


def _people(visit: Visit, q: str, error: EgsError | None = None) -> Response:
    project = visit.view.wanted.project
    keys = list(keys_shown(visit.view, visit.caller, None, visit.now))
    found = [one for one in people(visit.view, keys) if q.lower() in one.email.lower()]
    return visit.page(
        "admin/people.html",
        people=found,
        groups=project.groups,
        approval=project.approval,
        is_verified=visit.view.facts.trust is not None,
        q=q,
        error=error,
    )
