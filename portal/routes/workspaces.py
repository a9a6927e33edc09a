"""`/slice-workspace`: workspaces, which are slices."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter

from portal.http.context import Asking, Envelope, Looking, Of, changed, ok
from portal.http.errors import bad_parameters, forbidden
from portal.http.names import name_query, name_query_or_body
from portal.identity.callers import Caller
from portal.identity.rights import check_admin, check_owner, seen_slice
from portal.openapi.refusals import NAMED, IdempotencyKey, refusals
from portal.vendor import workspace_files, workspace_models
from portal.vendor.workspace_models import (
    ClusterNamed,
    Workspace,
    WorkspaceChanged,
    WorkspaceEdit,
    WorkspaceNamed,
    Workspaces,
    WorkspaceWish,
)
from portal.views.view import View
from portal.writes.replayed_answers import Named
from portal.writes.write_request import Changes, Landed, Tree, WriteRequest

router = APIRouter(prefix="/slice-workspace", tags=["workspaces"])

Name = Annotated[str, name_query("workspaceName", "The workspace.", "vision")]
AnyName = Annotated[str | None, name_query_or_body("workspaceName", "The workspace, if no body names it.")]


@router.post("", summary="Make or request a workspace", responses=refusals(*NAMED, "WorkspaceAlreadyExists"))
async def create(
    body: WorkspaceWish, view: Looking, caller: Asking, of: Of, key: IdempotencyKey = ""
) -> Envelope[WorkspaceChanged]:
    """An admin's workspace exists at once; any other user's waits for an admin, and the answer says where."""
    name = body.workspace_name
    workspace_files.check_wish(body, view.wanted)
    _check_may_ask(caller, name, workspace_files.owner_of(body, caller)["email"])

    def make(view: View, tree: Tree) -> Changes:
        workspace_files.check_free(tree, view, name)
        workspace_files.check_wish(body, view.wanted)
        return workspace_files.made(body, caller)

    verb = "Create" if caller.is_admin else "Ask for"
    write = WriteRequest(caller, f"{verb} slice {name}", make, key, asks=not caller.is_admin)
    message = (
        "Success" if caller.is_admin else f"workspace {name} is requested; it is made when an admin merges it"
    )
    return _done(name, await of.writer.submit(write), message)


def _check_may_ask(caller: Caller, name: str, owner: str) -> None:
    if not any(grant.role != "Viewer" and grant.covers(name) for grant in caller.grants):
        raise forbidden(
            f"{caller.email} may not request workspace {name}: that needs write access to the whole project, by "
            "a login or by an API key that covers it"
        )
    if not caller.is_admin and owner.lower() != caller.email.lower():
        raise forbidden(
            f"email: {caller.email} may only request workspaces of their own; {owner} can request this one, or an "
            "admin can make it"
        )


@router.put("", summary="Change a workspace", responses=refusals(404, *NAMED, "WorkspaceInUse"))
async def update(
    body: WorkspaceEdit, view: Looking, caller: Asking, of: Of, named: Named
) -> Envelope[WorkspaceChanged]:
    """Absent fields stay. What owners may not change alone becomes a proposal for an admin to merge."""
    name = body.workspace_name
    if named.landed is not None:
        return _done(name, named.landed)
    seen_slice(view, caller, name)
    check_owner(caller, name, "change it")

    def make(view: View, tree: Tree) -> Changes:
        return workspace_files.changed(body, view, tree)

    return _done(name, await of.writer.submit(WriteRequest(caller, f"Edit slice {name}", make, named.key)))


@router.post(
    "/detach", summary="Remove a cluster from a workspace", responses=refusals(404, *NAMED, "WorkspaceInUse")
)
async def detach(
    body: ClusterNamed, view: Looking, caller: Asking, of: Of, named: Named
) -> Envelope[WorkspaceChanged]:
    """Deletes its namespaces there with their content, so no request may hold nodes there. Never the last cluster."""
    name = body.workspace_name
    if named.landed is not None:
        return _done(name, named.landed)
    seen_slice(view, caller, name)
    check_admin(caller, "remove clusters from workspaces")

    def make(view: View, tree: Tree) -> Changes:
        return workspace_files.detached(view, tree, name, body.cluster_name)

    write = WriteRequest(
        caller, f"Detach cluster {body.cluster_name} from slice {name}"[:200], make, named.key
    )
    return _done(name, await of.writer.submit(write))


@router.delete("", summary="Delete a workspace", responses=refusals(404, *NAMED, "WorkspaceInUse"))
async def delete(
    view: Looking,
    caller: Asking,
    of: Of,
    named: Named,
    body: WorkspaceNamed | None = None,
    workspace_name: AnyName = None,
) -> Envelope[WorkspaceChanged]:
    """With its namespaces and their content. Refused while one of its requests is not over."""
    name = body.workspace_name if body is not None else workspace_name
    if not name:
        raise bad_parameters("workspaceName: name the workspace, in the body or as ?workspaceName=")
    if named.landed is not None:
        return _done(name, named.landed)
    seen_slice(view, caller, name)
    check_admin(caller, "delete workspaces")

    def make(view: View, tree: Tree) -> Changes:
        return workspace_files.removed(view, tree, name)

    return _done(name, await of.writer.submit(WriteRequest(caller, f"Delete slice {name}", make, named.key)))


@router.get("", summary="One workspace", responses=refusals(404, 422))
async def get(workspace_name: Name, view: Looking, caller: Asking) -> Envelope[Workspace]:
    """With its people, limits, use and cost."""
    seen_slice(view, caller, workspace_name)
    return ok(workspace_models.workspace_of(view, workspace_name))


@router.get("/list", summary="All workspaces that you see", responses=refusals())
async def list_all(view: Looking, caller: Asking) -> Envelope[Workspaces]:
    """By name."""
    return ok(Workspaces(workspaces=workspace_models.workspaces(view, caller)))


def _done(name: str, landed: Landed, message: str = "Success") -> Envelope[WorkspaceChanged]:
    return ok(WorkspaceChanged(workspace_name=name, change=changed(landed)), message)
