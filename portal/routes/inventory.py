"""`/inventory`: GPU nodes that the caller's workspaces may use, and what admins say about them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Query
from pydantic import Field, ValidationError

from portal.http.context import Asking, Changed, Envelope, Looking, Of, Wire, changed, example, ok, optional
from portal.http.durations import checked_duration
from portal.http.errors import bad_parameters
from portal.identity.rights import check_admin, seen_slice
from portal.openapi.refusals import NAMED, refusals
from portal.vendor.gpr_models import Span, Time
from portal.views.inventories import Nodes, WorkspaceInventory, inventory, shown, workspace_inventory
from portal.views.view import View
from portal.writes import cluster_changes
from portal.writes.replayed_answers import Named
from portal.writes.write_request import Changes, Tree, WriteRequest
from schemas.documents.maintenance import Maintenance
from schemas.reading.units import parse_instant

router = APIRouter(prefix="/inventory", tags=["Inventory"])

Names = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=253)], ...], Field(max_length=500)]


class NodeNamed(Wire):
    """Names a node."""

    model_config = example({"clusterName": "east", "nodeName": "h100-3"})

    cluster_name: str = Field(min_length=1, max_length=63, description="Its cluster.", examples=["east"])
    node_name: str = Field(min_length=1, max_length=253, description="The node.", examples=["h100-1"])


class Window(Wire):
    """A time in which nodes serve no request: all of the cluster, unless pools or nodes are named."""

    model_config = example(
        {
            "clusterName": "east",
            "begin": "2026-12-01T06:00:00Z",
            "end": "2026-12-01T08:00:00Z",
            "pools": ["h100"],
            "reason": "new switches",
        }
    )

    cluster_name: str = Field(min_length=1, max_length=63, description="Its cluster.", examples=["east"])
    begin: Time = Field(description="First instant without these nodes.")
    end: Time = Field(description="First instant with them again.", examples=["2026-11-21T09:00:00Z"])
    pools: Names = Field(default=(), description="Whole pools.")
    nodes: Names = Field(default=(), description="Single nodes.")
    every: Span | None = optional("It repeats after this long, at least a day.", examples=[None])
    until: Time | None = optional("No window begins from then on; with `every`.", examples=[None])
    reason: str = Field(default="", max_length=200, description="Informational.")


class ClusterChanged(Wire):
    """A cluster whose document was changed, and where the change is."""

    model_config = example({"clusterName": "east", "change": {"way": "pushed", "commit": "8d5f…"}})

    cluster_name: str = Field(description="Its name.")
    change: Changed = Field(description="Where the change is.")


@router.get("/list", responses=refusals(), summary="GPU nodes, one by one.")
def list_nodes(view: Looking, caller: Asking, parts: Of) -> Envelope[Nodes]:
    """Nodes that the caller's workspaces may use (for an admin all), with their devices and network; of others'
    leases only that the node is taken."""
    return ok(inventory(view, caller, shown(parts.sources, view, caller, parts.now())))


@router.get("", responses=refusals(404, 422), summary="GPU nodes of a workspace, counted.")
async def count_nodes(
    view: Looking,
    caller: Asking,
    slice_name: Annotated[
        str, Query(alias="sliceName", max_length=63, description="The workspace.", examples=["vision"])
    ],
) -> Envelope[WorkspaceInventory]:
    """Nodes that the workspace may use; equal nodes of a cluster are counted together."""
    seen_slice(view, caller, slice_name)
    return ok(workspace_inventory(view, slice_name))


@router.post("/clear", responses=refusals(404, *NAMED), summary="Say that a node is repaired.")
async def clear_node(
    body: Annotated[NodeNamed, Body()], view: Looking, caller: Asking, of: Of, named: Named
) -> Envelope[ClusterChanged]:
    """Lists the node under `cleared` of its cluster: earlier faults and failed checks no longer count. Admins only."""
    cluster, node = body.cluster_name, body.node_name
    if named.landed is not None:
        return ok(ClusterChanged(cluster_name=cluster, change=changed(named.landed)))
    check_admin(caller, "say that nodes are repaired")
    cluster_changes.check_node(view, cluster, node)
    at = of.now().replace(microsecond=0)

    def make(_: View, tree: Tree) -> Changes:
        return cluster_changes.cleared(tree, cluster, node, at)

    write = WriteRequest(caller, f"Clear node {cluster}/{node}"[:200], make, named.key)
    return ok(ClusterChanged(cluster_name=cluster, change=changed(await of.writer.submit(write))))


@router.post("/maintenance", responses=refusals(404, *NAMED), summary="Plan a time without nodes.")
async def plan_maintenance(
    body: Annotated[Window, Body()], view: Looking, caller: Asking, of: Of, named: Named
) -> Envelope[ClusterChanged]:
    """Adds a window to the cluster's document. It cuts no running lease short; waiting requests are planned around
    it. Admins only."""
    cluster = body.cluster_name
    if named.landed is not None:
        return ok(ClusterChanged(cluster_name=cluster, change=changed(named.landed)))
    check_admin(caller, "plan maintenance")
    window = window_of(body)
    cluster_changes.check_window(view, cluster, window, of.now())

    def make(_: View, tree: Tree) -> Changes:
        return cluster_changes.with_window(tree, cluster, window)

    write = WriteRequest(caller, f"Plan maintenance of {_scope(body)}"[:200], make, named.key)
    return ok(ClusterChanged(cluster_name=cluster, change=changed(await of.writer.submit(write))))


@router.delete("/maintenance", responses=refusals(404, *NAMED), summary="Remove a time without nodes.")
async def remove_maintenance(
    body: Annotated[Window, Body()], view: Looking, caller: Asking, of: Of, named: Named
) -> Envelope[ClusterChanged]:
    """Removes the window that has exactly these fields. Admins only."""
    cluster = body.cluster_name
    if named.landed is not None:
        return ok(ClusterChanged(cluster_name=cluster, change=changed(named.landed)))
    check_admin(caller, "plan maintenance")
    cluster_changes.check_cluster(view, cluster)
    window = window_of(body)

    def make(_: View, tree: Tree) -> Changes:
        return cluster_changes.without_window(tree, cluster, window)

    write = WriteRequest(caller, f"Remove maintenance of {_scope(body)}"[:200], make, named.key)
    return ok(ClusterChanged(cluster_name=cluster, change=changed(await of.writer.submit(write))))


def window_of(body: Window) -> Maintenance:
    """The window as its document has it; ApiError 422."""
    try:
        return Maintenance(
            begin=parse_instant(body.begin),
            end=parse_instant(body.end),
            pools=body.pools,
            nodes=body.nodes,
            every=None if body.every is None else checked_duration("every", body.every),
            until=None if body.until is None else parse_instant(body.until),
            reason=body.reason,
        )
    except ValueError as error:
        raise bad_parameters(_said(error)) from error


def _said(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"])) or "window"
    return f"{where}: {str(first['msg']).removeprefix('Value error, ')}"


def _scope(body: Window) -> str:
    parts = [*body.pools, *body.nodes]
    return f"{body.cluster_name}/{parts[0]}" if len(parts) == 1 else f"cluster {body.cluster_name}"
