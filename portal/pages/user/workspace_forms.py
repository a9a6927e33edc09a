"""Forms of a workspace's page: its members, a kubeconfig for an hour, a new API key, and the end of one."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from portal.http.errors import ApiError
from portal.pages.forms import Sent, filled, listed
from portal.pages.user.workspace_pages import shown
from portal.pages.visit import Visiting
from portal.routes import apikeys, kubeconfig, workspaces
from portal.vendor.key_models import KeyNamed, KeyWish
from portal.vendor.workspace_models import ClusterNamed, WorkspaceEdit
from portal.writes.replayed_answers import naming_of

router = APIRouter(include_in_schema=False)


@router.post("/workspaces/{name}/members")
async def change_members(name: str, form: Sent, visit: Visiting) -> Response:
    """The complete new list; owners may change it."""
    view, caller, parts = visit.view, visit.caller, visit.parts
    try:
        edit = filled(WorkspaceEdit, {"workspaceName": name, "members": listed(form, "members")})
        naming = await naming_of(caller, parts, form.get("key", ""))
        await workspaces.update(edit, view, caller, parts, naming)
    except ApiError as error:
        return await run_in_threadpool(shown, visit, name, error, None, form)
    return visit.go(f"/workspaces/{name}")


@router.post("/workspaces/{name}/kubeconfig")
def kubeconfig_file(name: str, form: Sent, visit: Visiting) -> Response:
    """The file, as a download; a refusal is shown on the page."""
    try:
        named = filled(ClusterNamed, {"workspaceName": name, "clusterName": form.get("cluster", "")})
        given = kubeconfig.kube_config(named, visit.view, visit.caller, visit.parts).data
    except ApiError as error:
        return shown(visit, name, error)
    headers = {
        "Content-Disposition": f'attachment; filename="{named.workspace_name}-{named.cluster_name}.yaml"',
        "Cache-Control": "no-store",
    }
    return Response(given.kube_config, headers=headers, media_type="application/yaml")


@router.post("/workspaces/{name}/keys")
async def new_key(name: str, form: Sent, visit: Visiting) -> Response:
    """The page with the key's text, this once."""
    made = error = None
    try:
        wish = filled(
            KeyWish,
            {
                "name": form.get("key", ""),
                "role": form.get("role", "Editor"),
                "validity": form.get("validity", ""),
                "description": form.get("description", ""),
                "workspaceName": None if form.get("scope") == "all" else name,
            },
        )
        made = (await apikeys.create(wish, visit.view, visit.caller, visit.parts)).data
    except ApiError as refusal:
        error = refusal
    return await run_in_threadpool(shown, visit, name, error, made, {} if made else form)


@router.post("/workspaces/{name}/keys/revoke")
async def revoke_key(name: str, form: Sent, visit: Visiting) -> Response:
    """The key is refused once the change is read."""
    try:
        named = filled(KeyNamed, {"name": form.get("key", "")})
        await apikeys.delete(named, visit.view, visit.caller, visit.parts)
    except ApiError as error:
        return await run_in_threadpool(shown, visit, name, error)
    return visit.go(f"/workspaces/{name}")
