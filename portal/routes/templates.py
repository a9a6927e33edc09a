"""`/gpr-template`: presets for requests."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter

from portal.http.context import Asking, Envelope, Looking, Of, Page, changed, ok
from portal.http.errors import ApiError, bad_parameters, conflict, not_found
from portal.http.names import checked_name, name_query, name_query_or_body
from portal.http.paging import Portioned, portion
from portal.identity.callers import Caller
from portal.identity.rights import check_admin
from portal.openapi.refusals import NAMED, IdempotencyKey, refusals
from portal.vendor.template_models import (
    Template,
    TemplateChanged,
    TemplateNamed,
    TemplateWish,
    check_clusters,
    template_of,
    wish_of,
)
from portal.views.view import View
from portal.writes.replayed_answers import Named
from portal.writes.write_request import Changes, Landed, Tree, WriteRequest
from portal.writes.yaml_files import fields_of, standing, with_changes
from reconciler.documents.yaml_edit import new_document
from schemas.documents.gpr import GPRTemplate
from schemas.documents.gpr import Wish as Fields
from schemas.rules.view import template_path

router = APIRouter(prefix="/gpr-template", tags=["templates"])

Name = Annotated[str, name_query("gprTemplateName", "The template.", "small")]
AnyName = Annotated[str | None, name_query_or_body("gprTemplateName", "The template, if no body names it.")]


@router.post("", summary="Make a template", responses=refusals(*NAMED, "GprTemplateAlreadyExists"))
async def create(
    body: TemplateWish, view: Looking, caller: Asking, of: Of, key: IdempotencyKey = ""
) -> Envelope[TemplateChanged]:
    """Fields that it leaves out are left to the requests that name it. Admins only."""
    check_admin(caller, "make templates")
    name = checked_name("name", body.name)
    spec = wish_of(body, Fields())
    check_clusters(spec, view.wanted.clusters)

    def make(_: View, tree: Tree) -> Changes:
        if tree.read(template_path(name)) is not None:
            raise conflict(f"template {name} exists already; change it with PUT", "GprTemplateAlreadyExists")
        return {template_path(name): new_document("GPRTemplate", name, fields_of(spec))}

    return _done(name, await of.writer.submit(WriteRequest(caller, f"Create template {name}", make, key)))


@router.put("", summary="Change a template", responses=refusals(404, *NAMED))
async def update(
    body: TemplateWish, view: Looking, caller: Asking, of: Of, named: Named
) -> Envelope[TemplateChanged]:
    """Absent fields stay; "" and 0 remove a field. Accepted requests keep what they got. Admins only."""
    if named.landed is not None:
        return _done(body.name, named.landed)
    _check_there(view, caller, body.name)
    check_admin(caller, "change templates")
    check_clusters(
        wish_of(body, Fields(idle_timeout=view.wanted.templates[body.name].idle_timeout)),
        view.wanted.clusters,
    )

    def make(_: View, tree: Tree) -> Changes:
        path = template_path(body.name)
        found = standing(tree, path, GPRTemplate)
        if found is None:
            raise not_found("template", body.name)
        data, document = found
        return {path: with_changes(data, ("spec",), document.spec, wish_of(body, document.spec))}

    return _done(
        body.name, await of.writer.submit(WriteRequest(caller, f"Edit template {body.name}", make, named.key))
    )


@router.delete("", summary="Delete a template", responses=refusals(404, *NAMED, "GprTemplateInUse"))
async def delete(
    view: Looking,
    caller: Asking,
    of: Of,
    named: Named,
    body: TemplateNamed | None = None,
    gpr_template_name: AnyName = None,
) -> Envelope[TemplateChanged]:
    """Accepted requests keep what they got. Refused while a binding names it. Admins only."""
    name = body.gpr_template_name if body is not None else gpr_template_name
    if not name:
        raise bad_parameters("gprTemplateName: name the template, in the body or as ?gprTemplateName=")
    if named.landed is not None:
        return _done(name, named.landed)
    _check_there(view, caller, name)
    check_admin(caller, "delete templates")

    def make(view: View, tree: Tree) -> Changes:
        if tree.read(template_path(name)) is None:
            raise not_found("template", name)
        _check_unbound(view, name)
        return {template_path(name): None}

    return _done(
        name, await of.writer.submit(WriteRequest(caller, f"Delete template {name}", make, named.key))
    )


@router.get("", summary="One template", responses=refusals(404, 422))
async def get(gpr_template_name: Name, view: Looking, caller: Asking) -> Envelope[Template]:
    """As in its file; absent fields are left to requests."""
    _check_there(view, caller, gpr_template_name)
    return ok(template_of(gpr_template_name, view.wanted.templates[gpr_template_name]))


@router.get("/list", summary="All templates", responses=refusals(422))
async def list_all(view: Looking, caller: Asking, wanted: Portioned) -> Envelope[Page[Template]]:
    """By name; empty for a caller who sees no workspace."""
    names, more = portion(sorted(view.wanted.templates) if caller.sees_any else [], wanted, str)
    found = [template_of(name, view.wanted.templates[name]) for name in names]
    return ok(Page[Template](items=found, next=more))


def _check_there(view: View, caller: Caller, name: str) -> None:
    if name not in view.wanted.templates or not caller.sees_any:
        raise not_found("template", name)


def _check_unbound(view: View, name: str) -> None:
    bound = [
        s for s, spec in view.wanted.bindings.items() if any(name in each.templates for each in spec.clusters)
    ]
    if bound:
        text = f"template {name} is offered to {', '.join(sorted(bound)[:8])}; change the binding first"
        raise ApiError(HTTPStatus.CONFLICT, "GprTemplateInUse", text)


def _done(name: str, landed: Landed) -> Envelope[TemplateChanged]:
    return ok(TemplateChanged(name=name, change=changed(landed)))
