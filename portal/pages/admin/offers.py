"""`/admin/templates` and `/admin/bindings`: presets for requests, and which workspace is offered which."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter
from starlette.responses import Response

from portal.http.context import Changed
from portal.http.errors import not_found
from portal.identity.rights import seen_slice
from portal.pages.admin.rehearsal import DocumentForm, FormField, text_of
from portal.pages.forms import Form, Sent, filled, listed, whole
from portal.pages.visit import AdminVisiting, Visit
from portal.routes import bindings, templates
from portal.vendor.binding_models import BindingNamed, BindingWish, binding_of
from portal.vendor.template_models import Template, TemplateNamed, TemplateWish, template_of
from portal.writes.replayed_answers import Naming

router = APIRouter(include_in_schema=False)

TEMPLATES, BINDINGS = "/admin/templates", "/admin/bindings"
YES_NO = ("", "yes", "no")


@router.get(TEMPLATES)
def template_list(visit: AdminVisiting) -> Response:
    """By name, with the workspaces that are offered each."""
    wanted = visit.view.wanted
    offered = {
        name: sorted(
            slice_
            for slice_, spec in wanted.bindings.items()
            if any(name in each.templates for each in spec.clusters)
        )
        for name in wanted.templates
    }
    rows = [template_of(name, spec) for name, spec in sorted(wanted.templates.items())]
    return visit.page("admin/templates.html", rows=rows, offered=offered)


@router.get(TEMPLATES + "/new")
def new_template(visit: AdminVisiting) -> Response:
    """The empty form."""
    return _template(None).shown(visit)


@router.post(TEMPLATES + "/new")
async def make_template(visit: AdminVisiting, form: Sent) -> Response:
    """Checks it, or makes it."""

    async def act(on: Visit, named: Naming) -> Changed:
        body = filled(TemplateWish, {"name": form.get("name", ""), **_wish(form, is_new=True)})
        return (await templates.create(body, on.view, on.caller, on.parts, named.key)).data.change

    return await _template(None).sent(visit, form, act)


@router.get(TEMPLATES + "/{name}")
def edit_template(visit: AdminVisiting, name: str) -> Response:
    """The form of a template."""
    return _template(_standing(visit, name)).shown(visit)


@router.post(TEMPLATES + "/{name}")
async def change_template(visit: AdminVisiting, form: Sent, name: str) -> Response:
    """Checks the change, or makes it."""

    async def act(on: Visit, named: Naming) -> Changed:
        body = filled(TemplateWish, {"name": name, **_wish(form, is_new=False)})
        return (await templates.update(body, on.view, on.caller, on.parts, named)).data.change

    return await _template(_standing(visit, name)).sent(visit, form, act)


@router.post(TEMPLATES + "/{name}/delete")
async def delete_template(visit: AdminVisiting, form: Sent, name: str) -> Response:
    """Refused while a binding names it."""

    async def act(on: Visit, named: Naming) -> Changed:
        body = TemplateNamed(gpr_template_name=name)
        return (await templates.delete(on.view, on.caller, on.parts, named, body, None)).data.change

    return await _template(_standing(visit, name)).deleted(visit, form, act)


def _standing(visit: Visit, name: str) -> Template:
    spec = visit.view.wanted.templates.get(name)
    if spec is None:
        raise not_found("template", name)
    return template_of(name, spec)


def _wish(form: Form, *, is_new: bool) -> dict[str, object]:
    """Absent fields stay in a change, so an emptied one is sent as "" or 0, which removes it."""
    removed: object = None if is_new else ""
    numbers = {
        "numberOfGPUNodes": whole(form, "nodes"),
        "numberOfGPUs": whole(form, "gpus"),
        "memoryPerGPU": whole(form, "memory"),
        "priority": whole(form, "priority"),
    }
    texts = {
        "clusterName": form.get("cluster") or removed,
        "gpuShape": form.get("shape") or removed,
        "instanceType": form.get("machine") or removed,
        "exitDuration": form.get("duration") or None,
        "idleTimeOutDuration": form.get("idle") or None,
    }
    flags = {"enableEviction": _flag(form, "eviction"), "requeueOnFailure": _flag(form, "requeue")}
    return {**numbers, **texts, **flags, "enforceIdleTimeOut": True if form.get("idle") else None}


def _flag(form: Form, name: str) -> bool | None:
    return {"yes": True, "no": False}.get(form.get(name, ""))


def _template(found: Template | None) -> DocumentForm:
    now: Mapping[str, object] = {} if found is None else found.model_dump()
    named = (FormField("name", "Name", hint="Lower-case letters, digits and '-'.", is_required=True),)
    fields = (
        FormField("nodes", "Nodes", text_of(now.get("number_of_gpu_nodes")), kind="number"),
        FormField("gpus", "GPUs per node", text_of(now.get("number_of_gpus")), kind="number"),
        FormField(
            "shape", "Shape", text_of(now.get("gpu_shape")), "Such as H100-80GB; empty: left to the request."
        ),
        FormField("memory", "Least GB per GPU", text_of(now.get("memory_per_gpu")), kind="number"),
        FormField("machine", "Machine type", text_of(now.get("instance_type"))),
        FormField("cluster", "Cluster", text_of(now.get("cluster_name"))),
        FormField(
            "duration", "Duration", text_of(now.get("exit_duration")), "Such as 6h; the end is strict."
        ),
        FormField("priority", "Priority", text_of(now.get("priority")), kind="number"),
        FormField(
            "idle", "Release after idling for", text_of(now.get("idle_time_out_duration")), "Such as 30m."
        ),
        FormField(
            "eviction", "May make room", _said(now.get("enable_eviction")), kind="select", options=YES_NO
        ),
        FormField(
            "requeue",
            "Queued again if nodes fail",
            _said(now.get("requeue_on_failure")),
            "",
            "select",
            YES_NO,
        ),
    )
    if found is None:
        note = "Fields that it leaves out are left to the requests that name it."
        return DocumentForm("New template", note, f"{TEMPLATES}/new", TEMPLATES, named + fields)
    path = f"{TEMPLATES}/{found.name}"
    note = "Accepted requests keep what they got."
    return DocumentForm(
        f"Template {found.name}",
        note,
        path,
        TEMPLATES,
        fields,
        f"{path}/delete",
        "Requests keep what they got.",
    )


def _said(value: object) -> str:
    return {True: "yes", False: "no"}.get(value is True, "") if value is not None else ""


# -- bindings ----------------------------------------------------------------------------------------------------------


@router.get(BINDINGS)
def binding_list(visit: AdminVisiting) -> Response:
    """Every workspace, with the templates that it is offered."""
    wanted = visit.view.wanted
    rows = {name: binding_of(name, spec, wanted) for name, spec in sorted(wanted.bindings.items())}
    return visit.page("admin/bindings.html", names=sorted(wanted.slices), rows=rows)


@router.get(BINDINGS + "/{name}")
def edit_binding(visit: AdminVisiting, name: str) -> Response:
    """The form of a workspace's binding; empty if it has none."""
    return _binding(visit, name).shown(visit)


@router.post(BINDINGS + "/{name}")
async def change_binding(visit: AdminVisiting, form: Sent, name: str) -> Response:
    """Checks the change, or makes it."""
    is_there = name in visit.view.wanted.bindings

    async def act(on: Visit, named: Naming) -> Changed:
        body = filled(BindingWish, {"workspaceName": name, "clusters": _clusters(on, form, name)})
        around = on.view, on.caller, on.parts
        if is_there:
            return (await bindings.update(body, *around, named)).data.change
        return (await bindings.create(body, *around, named.key)).data.change

    return await _binding(visit, name).sent(visit, form, act)


@router.post(BINDINGS + "/{name}/delete")
async def delete_binding(visit: AdminVisiting, form: Sent, name: str) -> Response:
    """From then on its requests may name every template."""

    async def act(on: Visit, named: Naming) -> Changed:
        body = BindingNamed(binding_name=name)
        return (await bindings.delete(on.view, on.caller, on.parts, named, body, None)).data.change

    return await _binding(visit, name).deleted(visit, form, act)


def _clusters(visit: Visit, form: Form, name: str) -> list[dict[str, object]]:
    """Those for which the form names templates; the first one is the default if it is marked."""
    found: list[dict[str, object]] = []
    for cluster in visit.view.wanted.slices[name].clusters:
        offered = listed(form, f"templates-{cluster}")
        if offered:
            default = form.get(f"default-{cluster}", "")
            found.append({"clusterName": cluster, "templates": offered, "defaultTemplateName": default})
    return found


def _binding(visit: Visit, name: str) -> DocumentForm:
    spec = seen_slice(visit.view, visit.caller, name)
    wanted = visit.view.wanted
    bound = wanted.bindings.get(name)
    shown = None if bound is None else binding_of(name, bound, wanted)
    now = {} if shown is None else {each.cluster_name: each for each in shown.clusters}
    names = sorted(wanted.templates)
    known, options = ", ".join(names) or "none yet", ("", *names)
    fields = []
    for cluster in spec.clusters:
        there = now.get(cluster)
        offered = "" if there is None else " ".join(there.templates)
        default = "" if there is None else there.default_template_name
        fields += [
            FormField(f"templates-{cluster}", f"Templates in {cluster}", offered, f"There are: {known}."),
            FormField(
                f"default-{cluster}",
                "Default there",
                default,
                "Empty: none.",
                "select",
                options,
            ),
        ]
    path = f"{BINDINGS}/{name}"
    return DocumentForm(
        f"Templates of {name}",
        "With a binding its requests name one of these templates, or none.",
        path,
        BINDINGS,
        fields,
        "" if bound is None else f"{path}/delete",
        "Its requests may then name every template.",
        {"Workspace": f"/admin/workspaces/{name}"},
    )
