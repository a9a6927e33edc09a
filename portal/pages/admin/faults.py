"""`/admin/problems`: what is wrong with documents. `/admin/trust`: held changes, machines and alarms."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.pages.visit import AdminVisiting
from portal.routes import problems
from reconciler.model.events import EventReason
from reconciler.queries.event_search import Filter

router = APIRouter(include_in_schema=False)

Which = Literal["all", "error", "warning", "notice"]
ORDER = {"error": 0, "warning": 1, "notice": 2}
SHOWN = 300
ALARMS = 50


@router.get("/admin/problems")
def problem_list(
    visit: AdminVisiting, severity: Which = "all", q: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Errors first; each with its file, line, reason and what to do."""
    rows = problems.rows(visit.view, visit.parts.store, visit.now)
    found = [
        row
        for row in rows
        if severity in ("all", row["severity"])
        and q.lower() in f"{row['file']} {row['rule']} {row['message']}".lower()
    ]
    found.sort(key=lambda row: (ORDER[row["severity"]], row["file"], row["line"], row["rule"]))
    return visit.page(
        "admin/problems.html",
        rows=found[:SHOWN],
        total=len(found),
        counts={name: sum(row["severity"] == name for row in rows) for name in ORDER},
        severity=severity,
        q=q,
    )


@router.get("/admin/trust")
def trust_page(visit: AdminVisiting) -> Response:
    """Which changes of main do not count, which machines may speak, and what was alarming."""
    view = visit.view
    record = view.facts.trust
    alarms = list(islice(view.events.found(Filter(reason=EventReason.ALARM)), ALARMS))
    return visit.page(
        "admin/trust.html",
        record=record,
        is_judged=record is not None and record.main == view.main,
        main=view.main,
        held=() if record is None else record.held,
        alarms=alarms,
        clusters=sorted(view.wanted.clusters.items()),
        deletions=view.facts.held_deletions,
    )
