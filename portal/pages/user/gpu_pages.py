"""`/workloads/gpus`: all GPUs that the caller's requests hold, and values over time of one or of a few."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.pages.user.chart_rows import chart_of, every_value
from portal.pages.user.workload_pages import Text, Values, beside, seen_by
from portal.pages.visit import Visit, Visiting
from portal.views import running_work
from reconciler.queries.arguments import moment
from reconciler.queries.running import ranges
from reconciler.queries.running.sight import Sight
from reconciler.queries.running.workload_details import gpu_table
from reconciler.sources.command_errors import NotFound
from reconciler.workloads import gpu_rows

router = APIRouter(include_in_schema=False)

Row = dict[str, Any]
SHOWN = 500
"""Rows of the table of GPUs; a filter finds the others."""
TOGETHER = 8
"""GPUs in one chart: more lines cannot be told apart."""
RANGES = {"1h": "1 hour", "6h": "6 hours", "24h": "1 day", "3d": "3 days", "7d": "7 days"}


@router.get("/workloads/gpus")
def gpu_list(visit: Visiting, values: Values = "", q: Text = "", hot: str = "") -> Response:
    """The nearest to their own limits first."""
    rows: list[Row] = []
    seen = None
    if values:
        seen = seen_by(visit, visit.workspace)
        rows = gpu_table(seen, q, hot_only=bool(hot))
    told = {"rows": rows[:SHOWN], "total": len(rows), "seen": seen, "id": "", "about": None}
    return beside(visit, "user/gpu_list.html", values, **told, q=q, hot=hot)


@router.get("/workloads/dashboard")
def dashboard(
    visit: Visiting,
    values: Values = "",
    workload: Text = "",
    gpu: Annotated[str, Query(max_length=100)] = "",
    since: Annotated[str, Query(max_length=50)] = "",
    until: Annotated[str, Query(max_length=50)] = "",
) -> Response:
    """Use, temperature, power and memory of one GPU, or of the hottest ones of a workload; range in the address."""
    told: Row = {"charts": [], "marks": [], "silences": (), "one": None, "others": [], "every": []}
    if values:
        told = _charts(visit, workload, gpu, (since, until))
    places = {"workload": workload, "gpu": gpu, "since": since or "1h", "until": until, "ranges": RANGES}
    return beside(visit, "user/gpu_dashboard.html", values, **places, **told)


def _charts(visit: Visit, workload: str, gpu: str, within: tuple[str, str]) -> Row:
    parts, view, caller, now = visit.parts, visit.view, visit.caller, visit.now
    begin, end = (
        moment(name, text or None, now) for name, text in zip(("since", "until"), within, strict=True)
    )
    span = ranges.span_of(now, begin, end)
    seen = seen_by(visit)
    found = running_work.over_time(parts.sources, view, caller, seen, (gpu, workload, span))
    gpus = _gpus(seen, workload)
    wanted = [gpu] if gpu else [row["uuid"] for row in gpus][:TOGETHER]
    if not wanted:  # a finished request: its GPUs serve others now
        wanted = sorted({series["uuid"] for series in found["series"]})[:TOGETHER]
    one = next((row for row in gpus if row["uuid"] == gpu), None)
    charts = [chart_of(found, metric, wanted, gpus) for metric in ranges.USUAL]
    return {
        "charts": [chart for chart in charts if chart["series"]],
        "marks": [mark for mark in found["marks"] if mark["uuid"] in wanted],
        "silences": found["silences"],
        "one": one,
        "others": gpus,
        "every": every_value(found, gpu) if gpu else [],
    }


def _gpus(seen: Sight, workload: str) -> list[Row]:
    """GPUs that can be chosen, the nearest to their limits first."""
    if not workload:
        return gpu_table(seen)
    try:
        about = running_work.found(seen, workload)
    except NotFound:  # a finished request
        return []
    return [gpu_rows.row(gpu, seen.now) for gpu in about.gpus(seen)]
