"""`/usage`: GPU-hours and cost by month, workspace, request or person, on the screen and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.pages.html import ABSENT
from portal.pages.visit import Visit, Visiting
from portal.views.workload_rows import RequestUsage, Usage, request_usage, usage

router = APIRouter(include_in_schema=False)

By = Literal["month", "workspace", "request", "person"]
WAYS: dict[By, str] = {
    "month": "Month",
    "workspace": "Workspace",
    "request": "Request",
    "person": "Person",
}
RUNNING = "running now"
Month = Annotated[str, Query(pattern=r"^(|\d{4}-\d\d)$")]


@dataclass(frozen=True, slots=True)
class Line:
    """One row; `texts` are as many as the table has columns of text."""

    texts: tuple[str, ...]
    gpu_hours: float
    cost: float
    path: str = ""
    """Where the first text leads."""


@dataclass(frozen=True, slots=True)
class Table:
    """What the screen and the CSV show, in this order."""

    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    currency: str
    is_priced: bool
    """False: no pool has a price, so that there are hours only."""

    @property
    def gpu_hours(self) -> float:
        return sum(line.gpu_hours for line in self.lines)

    @property
    def cost(self) -> float:
        return sum(line.cost for line in self.lines)


@router.get("/usage")
def usage_page(visit: Visiting, by: By = "month", month: Month = "") -> Response:
    """The ledger of the caller's workspaces, running leases included."""
    table = table_of(visit, by, month)
    return visit.page(
        "user/usage.html", table=table, by=by, month=month, ways=list(WAYS.items()), months=_months(visit)
    )


@router.get("/usage.csv")
def usage_csv(visit: Visiting, by: By = "month", month: Month = "") -> Response:
    """The rows of the screen."""
    table, text = table_of(visit, by, month), io.StringIO()
    lines = csv.writer(text)
    prices = [f"Cost, {table.currency}"] if table.is_priced else []
    lines.writerow([*table.columns, "GPU-hours", *prices])
    for line in table.lines:
        cost = [f"{line.cost:.2f}"] if table.is_priced else []
        lines.writerow([*map(_cell, line.texts), f"{line.gpu_hours:.2f}", *cost])
    headers = {"Content-Disposition": f'attachment; filename="usage-by-{by}.csv"'}
    return Response(text.getvalue(), headers=headers, media_type="text/csv; charset=utf-8")


def _cell(text: str) -> str:
    """A spreadsheet takes no text for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def table_of(visit: Visit, by: By, month: str) -> Table:
    """The rows of one way to look at it; `month` empty: all."""
    view = visit.view
    if by in ("month", "workspace"):
        lines = _of_workspaces(_ledger(visit), by, month)
    else:
        found = request_usage(view, visit.caller, visit.now, visit.workspace, month)
        lines = _of_requests(found) if by == "request" else _of_people(found)
    columns = {
        "month": ("Month", "Workspace", "Leases"),
        "workspace": ("Workspace", "Leases"),
        "request": ("Request", "Workspace", "Person", "Month", "State"),
        "person": ("Person", "Requests"),
    }
    has_price = any(pool.price_per_gpu_hour for pool in view.wanted.pools.values())
    is_priced = has_price or any(line.cost for line in lines)
    return Table(columns[by], tuple(lines), view.wanted.project.currency, is_priced)


def _ledger(visit: Visit) -> list[Usage]:
    rows = usage(visit.view, visit.caller, visit.now)
    return [row for row in rows if visit.workspace in ("", row.slice_name)]


def _months(visit: Visit) -> list[str]:
    """Newest first, the present one always."""
    ended = {month.month for row in _ledger(visit) for month in row.months}
    return sorted(ended | {f"{visit.now:%Y-%m}"}, reverse=True)


def _of_workspaces(rows: list[Usage], by: By, month: str) -> list[Line]:
    lines: list[tuple[str, str, int, float, float]] = []
    for row in rows:
        lines += [
            (each.month, row.slice_name, each.leases, each.gpu_hours, each.cost)
            for each in row.months
            if month in ("", each.month)
        ]
        if row.running_gpu_hours and not month:
            lines.append((RUNNING, row.slice_name, 0, row.running_gpu_hours, row.running_cost))
    if by == "month":
        lines.sort(key=lambda line: line[1])
        lines.sort(key=lambda line: line[0], reverse=True)
        return [
            Line((when, name, str(leases) if leases else ABSENT), hours, cost, f"/workspaces/{name}")
            for when, name, leases, hours, cost in lines
        ]
    names = sorted({name for _, name, *_ in lines})
    return [_summed(name, [line for line in lines if line[1] == name]) for name in names]


def _summed(name: str, own: list[tuple[str, str, int, float, float]]) -> Line:
    leases = sum(line[2] for line in own)
    hours, cost = sum(line[3] for line in own), sum(line[4] for line in own)
    return Line((name, str(leases)), hours, cost, f"/workspaces/{name}")


def _of_requests(found: Iterable[RequestUsage]) -> list[Line]:
    """The dearest first."""
    lines = [
        Line(
            (
                one.name.partition("/")[2],
                one.slice_name,
                ", ".join(one.people) or ABSENT,
                RUNNING if one.is_running else one.month,
                one.phase,
            ),
            one.gpu_hours,
            one.cost,
            f"/requests/{one.name}",
        )
        for one in found
    ]
    return sorted(lines, key=lambda line: (-line.cost, -line.gpu_hours, line.texts))


def _of_people(found: Iterable[RequestUsage]) -> list[Line]:
    """A request of several people counts for each of them in equal parts."""
    own: dict[str, list[tuple[float, float]]] = {}
    for one in found:
        people = one.people or [ABSENT]
        for person in people:
            own.setdefault(person, []).append((one.gpu_hours / len(people), one.cost / len(people)))
    lines = [
        Line((person, str(len(parts))), sum(hours for hours, _ in parts), sum(cost for _, cost in parts))
        for person, parts in own.items()
    ]
    return sorted(lines, key=lambda line: (-line.cost, -line.gpu_hours, line.texts))
