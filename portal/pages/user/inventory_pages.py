"""`/inventory`: what the caller may use: shapes with the next start and price, free nodes by hour, and nodes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.pages.user.workload_pages import Text, Values, beside
from portal.pages.visit import Visit, Visiting
from portal.routes import inventory as node_routes
from portal.views import table_rows
from portal.views.inventories import Inventory
from portal.views.quotes import Quoted, WaitAsk, quoted

router = APIRouter(include_in_schema=False)

Row = dict[str, Any]
HOURS = 24
SHOWN = 200
"""Nodes of one page; the filter finds the others."""


@router.get("/inventory")
def inventory(
    visit: Visiting,
    values: Values = "",
    q: Text = "",
    state: Annotated[str, Query(max_length=30)] = "",
    first: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """Shapes first, then nodes; devices come after the page, because agents and clusters tell them."""
    view, caller = visit.view, visit.caller
    workspace = visit.workspace or next(iter(visit.frame.workspaces), "")
    nodes = _nodes(visit, q, state)
    devices = {f"{one.cluster_name}/{one.gpu_node_name}": one for one in _told(visit)} if values else {}
    return beside(
        visit,
        "user/inventory.html",
        values,
        workspace=workspace,
        quotes=_quotes(visit, workspace),
        hours=_hours(table_rows.capacity(view, caller, "", HOURS, "")),
        nodes=nodes[first : first + SHOWN],
        total=len(nodes),
        first=first,
        shown=SHOWN,
        devices=devices,
        states=[("", "All"), *((name, name) for name in _states(visit))],
        currency=view.wanted.project.currency,
        q=q,
        state=state,
    )


def _quotes(visit: Visit, workspace: str) -> Quoted | None:
    """When one node would start for an hour, in each pool that the workspace may use."""
    if not workspace:
        return None
    ask = WaitAsk.model_validate({"sliceName": workspace, "numberOfGPUNodes": 1, "exitDuration": "1h"})
    return quoted(visit.view, ask, visit.now)


def _hours(rows: list[Row]) -> dict[str, list[Row]]:
    """Free nodes of the coming hours, by shape."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["gpuShape"], []).append(row)
    return found


def _nodes(visit: Visit, q: str, state: str) -> list[Row]:
    rows = table_rows.nodes(visit.view, visit.caller, "", "")
    wanted = [row for row in rows if state in ("", row["state"]) and q.lower() in _text(row)]
    begin = visit.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return [
        {**row, "next": next((one for one in row["schedule"] if one["begin"] > begin), None)}
        for row in wanted
    ]


def _states(visit: Visit) -> list[str]:
    return sorted({row["state"] for row in table_rows.nodes(visit.view, visit.caller, "", "")})


def _text(row: Row) -> str:
    names = (row["cluster"], row["pool"], row["name"], row["state"], row["reason"], row["lease"])
    return " ".join(name for name in names if name).lower()


def _told(visit: Visit) -> list[Inventory]:
    found = node_routes.list_nodes(visit.view, visit.caller, visit.parts).data
    return [*found.managed_nodes, *found.unmanaged_nodes]


@router.get("/inventory/{cluster}/{name}")
def node(cluster: str, name: str, visit: Visiting, values: Values = "") -> Response:
    """One node: its state and calendar, its GPUs and network."""
    found = table_rows.described_node(visit.view, visit.caller, f"{cluster}/{name}")
    told = None
    if values:
        told = next(
            (one for one in _told(visit) if (one.cluster_name, one.gpu_node_name) == (cluster, name)), None
        )
    return beside(visit, "user/inventory_node.html", values, node=found, told=told)
