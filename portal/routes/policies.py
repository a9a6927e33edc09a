"""`/workspace-policies`: a slice's limits under the vendor's names."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from portal.http.context import Asking, Envelope, Looking, Of, Page, changed, ok
from portal.http.paging import Portioned, portion
from portal.identity.rights import check_admin, seen_slice
from portal.openapi.refusals import NAMED, refusals
from portal.vendor.policy_models import Policy, PolicyChanged, PolicyWish, limits_of, policy_of
from portal.vendor.workspace_files import file_of
from portal.views.view import View
from portal.writes.replayed_answers import Named
from portal.writes.write_request import Changes, Landed, Tree, WriteRequest
from portal.writes.yaml_files import with_changes

router = APIRouter(prefix="/workspace-policies", tags=["workspaces"])

Name = Annotated[str, Path(max_length=253, description="The workspace, which is also the policy's name.")]


@router.get("", summary="The policies of all workspaces", responses=refusals(422))
async def list_all(view: Looking, caller: Asking, wanted: Portioned) -> Envelope[Page[Policy]]:
    """For the workspaces that you see, by name; the limits in force, including the project's."""
    seen = [name for name in sorted(view.wanted.slices) if caller.may_see(name)]
    names, more = portion(seen, wanted, str)
    return ok(Page[Policy](items=[_policy(view, name) for name in names], next=more))


@router.get("/{name}", summary="The policy of a workspace", responses=refusals(404, 422))
async def get(name: Name, view: Looking, caller: Asking) -> Envelope[Policy]:
    """The limits in force, including the project's."""
    seen_slice(view, caller, name)
    return ok(_policy(view, name))


@router.put("/{name}", summary="Change the policy of a workspace", responses=refusals(404, *NAMED))
async def update(
    name: Name, body: PolicyWish, view: Looking, caller: Asking, of: Of, named: Named
) -> Envelope[PolicyChanged]:
    """Changes the limits in the workspace's file and nothing else in it. Admins only."""
    if named.landed is not None:
        return _done(name, named.landed)
    seen_slice(view, caller, name)
    check_admin(caller, "change the policies of workspaces")
    limits_of(body, view.wanted.slices[name].limits, view.wanted.project)

    def make(view: View, tree: Tree) -> Changes:
        path, data, document = file_of(tree, name)
        before = document.spec.limits
        after = limits_of(body, before, view.wanted.project)
        return {path: with_changes(data, ("spec", "limits"), before, after)}

    landed = await of.writer.submit(WriteRequest(caller, f"Edit the limits of slice {name}", make, named.key))
    return _done(name, landed)


def _done(name: str, landed: Landed) -> Envelope[PolicyChanged]:
    return ok(PolicyChanged(policy_name=name, change=changed(landed)))


def _policy(view: View, name: str) -> Policy:
    return policy_of(name, view.wanted.slices[name].limits, view.wanted.project)
