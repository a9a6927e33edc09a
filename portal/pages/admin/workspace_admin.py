"""`/admin/workspaces`: all workspaces, those that people ask for, and the forms that make and change one."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from portal.http.context import Changed
from portal.identity.rights import seen_slice
from portal.pages.admin.rehearsal import DocumentForm, FormField
from portal.pages.forms import Form, Sent, filled, listed, whole
from portal.pages.visit import AdminVisiting, Visit
from portal.routes import workspaces
from portal.vendor.workspace_models import WorkspaceEdit, WorkspaceNamed, WorkspaceWish, workspace_of
from portal.vendor.workspace_models import workspaces as all_workspaces
from portal.views import table_rows
from portal.writes.replayed_answers import Naming
from reconciler.sources.source import PROPOSED
from reconciler.store.store_port import Store
from schemas.documents.workspace import WorkspaceRequest
from schemas.errors import Fault
from schemas.reading.reader import read_document

router = APIRouter(include_in_schema=False)

PAGE = "/admin/workspaces"
MOST = 10_000
"""Characters of a field that the address fills in."""
DELETES = "Its namespaces are deleted with their content."


@dataclass(frozen=True, slots=True)
class Asked:
    """A workspace that a branch asks for."""

    branch: str
    name: str
    document: WorkspaceRequest


@router.get(PAGE)
def workspace_list(visit: AdminVisiting) -> Response:
    """By name, after those that wait for an admin."""
    view = visit.view
    asked, silence = _asked(visit)
    rows = table_rows.requests(view, visit.caller, visit.parts.store)
    return visit.page(
        "admin/workspaces.html",
        rows=all_workspaces(view, visit.caller),
        asked=asked,
        silence=silence,
        waiting=[row for row in rows if row["phase"] in ("PendingApproval", "Invalid")],
    )


def _asked(visit: Visit) -> tuple[list[Asked], str]:
    """Requests on branches that are not merged; and why they are unknown, if the remote does not answer."""
    store, known = visit.parts.store, visit.view.wanted
    try:
        tips = store.fetch([f"{PROPOSED}*"])
        found = [
            one for branch, oid in sorted(tips.items()) for one in _on(store, branch, (visit.view.main, oid))
        ]
    except Fault as fault:
        return [], f"branches with requests cannot be read now: {fault.reason}"
    return [one for one in found if one.name not in known.slices and one.name not in known.workspaces], ""


def _on(store: Store, branch: str, span: tuple[str, str]) -> list[Asked]:
    main, oid = span
    bases = store.merge_bases(main, oid)
    paths = [entry.path for entry in store.diff(bases[0], oid)] if bases else []
    found = []
    for path in paths:
        document = (
            read_document(path, store.read_path(oid, path) or b"") if path.startswith("requests/") else None
        )
        if isinstance(document, WorkspaceRequest):
            found.append(Asked(branch, document.metadata.name, document))
    return found


# -- a new one ---------------------------------------------------------------------------------------------------------


@router.get(PAGE + "/new")
def new_workspace(visit: AdminVisiting) -> Response:
    """The form; the address fills it in, so that a request for a workspace becomes one."""
    form, query = _new(visit), visit.request.query_params
    given = {each.name: query[each.name][:MOST] for each in form.fields if query.get(each.name)}
    return form.shown(visit, {"clusters": " ".join(sorted(visit.view.wanted.clusters)[:1]), **given})


@router.post(PAGE + "/new")
async def make_workspace(visit: AdminVisiting, form: Sent) -> Response:
    """Checks it, or makes it."""

    async def act(on: Visit, named: Naming) -> Changed:
        fields = {
            "workspaceName": form.get("name", ""),
            "clusters": listed(form, "clusters"),
            "namespaces": listed(form, "namespaces"),
            "email": form.get("email", ""),
            "description": form.get("description", ""),
            "members": listed(form, "members"),
            "quotaGPUs": whole(form, "quota"),
        }
        body = filled(WorkspaceWish, fields)
        return (await workspaces.create(body, on.view, on.caller, on.parts, named.key)).data.change

    return await _new(visit).sent(visit, form, act)


def _new(visit: Visit) -> DocumentForm:
    return DocumentForm(
        "New workspace",
        "A slice with its people, clusters and namespaces.",
        f"{PAGE}/new",
        PAGE,
        (
            FormField("name", "Name", hint="Lower-case letters, digits and '-'.", is_required=True),
            FormField("email", "Owner's address", hint="Empty: you.", kind="email"),
            *_fields(visit),
        ),
    )


def _fields(visit: Visit) -> tuple[FormField, ...]:
    known = ", ".join(sorted(visit.view.wanted.clusters))
    return (
        FormField(
            "clusters", "Clusters", hint=f"In order of preference. There are: {known}.", is_required=True
        ),
        FormField("namespaces", "Namespaces", hint="Empty: one with its name."),
        FormField("quota", "GPUs of one request without approval", hint="Empty: any.", kind="number"),
        FormField("description", "What it is for"),
        FormField(
            "members", "Members", hint="Addresses, with spaces or lines between them.", kind="textarea"
        ),
    )


# -- one ---------------------------------------------------------------------------------------------------------------


@router.get(PAGE + "/{name}")
def edit_workspace(visit: AdminVisiting, name: str) -> Response:
    """The form of a workspace as it is in force."""
    return _one(visit, name).shown(visit)


@router.post(PAGE + "/{name}")
async def change_workspace(visit: AdminVisiting, form: Sent, name: str) -> Response:
    """Checks the change, or makes it."""

    async def act(on: Visit, named: Naming) -> Changed:
        fields = {
            "workspaceName": name,
            "clusters": listed(form, "clusters"),
            "namespaces": listed(form, "namespaces"),
            "description": form.get("description", ""),
            "members": listed(form, "members"),
            "owners": listed(form, "owners"),
            "quotaGPUs": whole(form, "quota"),
        }
        body = filled(WorkspaceEdit, fields)
        return (await workspaces.update(body, on.view, on.caller, on.parts, named)).data.change

    return await _one(visit, name).sent(visit, form, act)


@router.post(PAGE + "/{name}/delete")
async def delete_workspace(visit: AdminVisiting, form: Sent, name: str) -> Response:
    """Refused while one of its requests is not over."""

    async def act(on: Visit, named: Naming) -> Changed:
        body = WorkspaceNamed(workspace_name=name)
        return (await workspaces.delete(on.view, on.caller, on.parts, named, body, None)).data.change

    return await _one(visit, name).deleted(visit, form, act)


def _one(visit: Visit, name: str) -> DocumentForm:
    seen_slice(visit.view, visit.caller, name)
    found = workspace_of(visit.view, name)
    now: Form = {
        "clusters": " ".join(found.clusters),
        "namespaces": " ".join(each.namespace for each in found.namespaces),
        "quota": "" if found.quota is None or found.quota.gpus is None else str(found.quota.gpus),
        "description": found.slice_description,
        "members": "\n".join(found.members),
    }
    fields = [
        FormField(f.name, f.label, now[f.name], f.hint, f.kind, (), f.is_required) for f in _fields(visit)
    ]
    owners = FormField(
        "owners", "Owners", "\n".join(found.owners), "They may change its members.", "textarea"
    )
    return DocumentForm(
        f"Workspace {name}",
        f"{found.use.gpus_held} GPUs held, {found.use.waiting} requests wait.",
        f"{PAGE}/{name}",
        PAGE,
        (*fields, owners),
        f"{PAGE}/{name}/delete",
        DELETES,
        {"Limits": f"/admin/policies/{name}", "Templates": f"/admin/bindings/{name}"},
    )
