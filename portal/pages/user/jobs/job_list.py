"""`/jobs`: workloads that were filed, running or not, and what became of each.

Held by tests/portal/pages/test_job_pages.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.identity.callers import Caller
from portal.pages.visit import Visiting
from portal.views import table_rows
from portal.views.view import View
from schemas.status.workload_status import ObjectState, WorkloadPhase

router = APIRouter(include_in_schema=False)

Row = dict[str, Any]
Text = Annotated[str, Query(max_length=200)]
TROUBLE = frozenset({ObjectState.FAILED, ObjectState.REFUSED, ObjectState.CHANGED, ObjectState.MISSING})
"""States of objects that a list names."""


@router.get("/jobs")
def job_list(visit: Visiting, q: Text = "", phase: Text = "") -> Response:
    """Those of the workspace in view, or of all that the caller sees."""
    rows = table_rows.jobs(visit.view, visit.caller, visit.workspace)
    shown = [row for row in rows if phase in ("", row["phase"]) and q.lower() in _text(row).lower()]
    return visit.page(
        "user/jobs.html",
        rows=[(row, troubles(row["objects"])) for row in shown],
        total=len(rows),
        q=q,
        phase=phase,
        phases=[each.value for each in WorkloadPhase],
        may_file=bool(workspaces_to_file(visit.view, visit.caller)),
    )


def troubles(objects: Sequence[Row]) -> list[Row]:
    """Objects that have failed, were refused, or differ from the document."""
    return [each for each in objects if each["state"] in TROUBLE]


def workspaces_to_file(view: View, caller: Caller) -> list[str]:
    """Workspaces for which the caller may file."""
    return sorted(caller.actor.member_of & view.wanted.slices.keys())


def _text(row: Row) -> str:
    objects = " ".join(f"{each['kind']} {each['name']}" for each in row["objects"])
    return (
        f"{row['slice']}/{row['name']} {row['gpr']} {row['cluster'] or ''} {row['namespace'] or ''} {objects}"
    )
