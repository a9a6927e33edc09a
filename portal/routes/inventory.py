"""`/inventory`: GPU nodes that the caller's workspaces may use."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from portal.http.context import Asking, Envelope, Looking, Of, ok
from portal.identity.rights import seen_slice
from portal.openapi.refusals import refusals
from portal.views.inventories import Nodes, WorkspaceInventory, inventory, shown, workspace_inventory

router = APIRouter(prefix="/inventory", tags=["Inventory"])


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
