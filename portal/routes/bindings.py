"""`/gpr-template-binding`: which templates are offered to a workspace."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter

from portal.http.context import Asking, Envelope, Looking, Of, Page, changed, ok
from portal.http.errors import bad_parameters, conflict, not_found
from portal.http.names import name_query, name_query_or_body
from portal.http.paging import Portioned, portion
from portal.identity.callers import Caller
from portal.identity.rights import check_admin, seen_slice
from portal.openapi.refusals import NAMED, IdempotencyKey, refusals
from portal.vendor.binding_models import (
    Binding,
    BindingChanged,
    BindingNamed,
    BindingWish,
    binding_of,
    spec_of,
)
from portal.views.view import View
from portal.writes.replayed_answers import Named
from portal.writes.write_request import Changes, Landed, Tree, WriteRequest
from portal.writes.yaml_files import fields_of, standing, with_changes
from reconciler.documents.yaml_edit import new_document
from schemas.documents.binding import GPRTemplateBinding
from schemas.rules.view import binding_path

router = APIRouter(prefix="/gpr-template-binding", tags=["templates"])

Name = Annotated[str, name_query("bindingName", "The workspace.", "vision")]
AnyName = Annotated[str | None, name_query_or_body("bindingName", "The workspace, if no body names it.")]


@router.post(
    "",
    summary="Offer templates to a workspace",
    responses=refusals(404, *NAMED, "GprTemplateBindingAlreadyExists"),
)
async def create(
    body: BindingWish, view: Looking, caller: Asking, of: Of, key: IdempotencyKey = ""
) -> Envelope[BindingChanged]:
    """From then on its requests name one of these templates, or none. Admins only."""
    name = body.workspace_name
    seen_slice(view, caller, name)
    check_admin(caller, "offer templates to workspaces")
    spec_of(body, view.wanted)

    def make(view: View, tree: Tree) -> Changes:
        if tree.read(binding_path(name)) is not None:
            text = f"workspace {name} has a binding already; change it with PUT"
            raise conflict(text, "GprTemplateBindingAlreadyExists")
        seen_slice(view, caller, name)
        return {
            binding_path(name): new_document(
                "GPRTemplateBinding", name, fields_of(spec_of(body, view.wanted))
            )
        }

    return _done(
        name, await of.writer.submit(WriteRequest(caller, f"Bind templates to slice {name}", make, key))
    )


@router.put("", summary="Change the templates offered to a workspace", responses=refusals(404, *NAMED))
async def update(
    body: BindingWish, view: Looking, caller: Asking, of: Of, named: Named
) -> Envelope[BindingChanged]:
    """`clusters` replaces the whole list of the binding. Admins only."""
    name = body.workspace_name
    if named.landed is not None:
        return _done(name, named.landed)
    _check_there(view, caller, name)
    check_admin(caller, "change which templates workspaces are offered")
    spec_of(body, view.wanted)

    def make(view: View, tree: Tree) -> Changes:
        found = standing(tree, binding_path(name), GPRTemplateBinding)
        if found is None:
            raise not_found("binding", name)
        seen_slice(view, caller, name)
        data, document = found
        return {binding_path(name): with_changes(data, ("spec",), document.spec, spec_of(body, view.wanted))}

    return _done(
        name,
        await of.writer.submit(WriteRequest(caller, f"Edit the binding of slice {name}", make, named.key)),
    )


@router.delete("", summary="Offer all templates again", responses=refusals(404, *NAMED))
async def delete(
    view: Looking,
    caller: Asking,
    of: Of,
    named: Named,
    body: BindingNamed | None = None,
    binding_name: AnyName = None,
) -> Envelope[BindingChanged]:
    """A workspace without a binding may use every template. Admins only."""
    name = body.binding_name if body is not None else binding_name
    if not name:
        raise bad_parameters("bindingName: name the workspace, in the body or as ?bindingName=")
    if named.landed is not None:
        return _done(name, named.landed)
    _check_there(view, caller, name)
    check_admin(caller, "change which templates workspaces are offered")

    def make(_: View, tree: Tree) -> Changes:
        if tree.read(binding_path(name)) is None:
            raise not_found("binding", name)
        return {binding_path(name): None}

    return _done(
        name,
        await of.writer.submit(WriteRequest(caller, f"Delete the binding of slice {name}", make, named.key)),
    )


@router.get("", summary="Templates offered to a workspace", responses=refusals(404, 422))
async def get(binding_name: Name, view: Looking, caller: Asking) -> Envelope[Binding]:
    """By cluster, with whether each template exists."""
    _check_there(view, caller, binding_name)
    return ok(binding_of(binding_name, view.wanted.bindings[binding_name], view.wanted))


@router.get("/list", summary="Templates offered to all workspaces", responses=refusals(422))
async def list_all(view: Looking, caller: Asking, wanted: Portioned) -> Envelope[Page[Binding]]:
    """For the workspaces that you see, by name."""
    seen = [name for name in sorted(view.wanted.bindings) if caller.may_see(name)]
    names, more = portion(seen, wanted, str)
    found = [binding_of(name, view.wanted.bindings[name], view.wanted) for name in names]
    return ok(Page[Binding](items=found, next=more))


def _check_there(view: View, caller: Caller, name: str) -> None:
    if name not in view.wanted.bindings or not caller.may_see(name):
        raise not_found("binding", name)


def _done(name: str, landed: Landed) -> Envelope[BindingChanged]:
    return ok(BindingChanged(name=name, change=changed(landed)))
