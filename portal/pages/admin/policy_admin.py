"""`/admin/policies`: the limits of each workspace, and the form that changes them."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from portal.http.context import Changed
from portal.http.errors import bad_parameters
from portal.identity.rights import seen_slice
from portal.pages.admin.rehearsal import DocumentForm, FormField, text_of
from portal.pages.forms import Form, Sent, filled, listed, whole
from portal.pages.visit import AdminVisiting, Visit
from portal.routes import policies
from portal.vendor.policy_models import CEILINGS, Policy, PolicyWish, policy_of
from portal.writes.replayed_answers import Naming

router = APIRouter(include_in_schema=False)

PAGE = "/admin/policies"


@router.get(PAGE)
def policy_list(visit: AdminVisiting) -> Response:
    """By workspace."""
    rows = [_policy(visit, name) for name in sorted(visit.view.wanted.slices)]
    return visit.page("admin/policies.html", rows=rows)


@router.get(PAGE + "/{name}")
def edit_policy(visit: AdminVisiting, name: str) -> Response:
    """The form of the limits in force."""
    return _form(visit, name).shown(visit)


@router.post(PAGE + "/{name}")
async def change_policy(visit: AdminVisiting, form: Sent, name: str) -> Response:
    """Checks the change, or makes it."""

    async def act(on: Visit, named: Naming) -> Changed:
        body = filled(PolicyWish, _wish(form))
        return (await policies.update(name, body, on.view, on.caller, on.parts, named)).data.change

    return await _form(visit, name).sent(visit, form, act)


def _wish(form: Form) -> dict[str, object]:
    """Empty fields remove a limit."""
    return {
        "priorityRange": form.get("range") or None,
        "maxGPRs": whole(form, "waiting") or 0,
        "maxExitDurationPerGPR": form.get("duration", ""),
        "gpuShapes": listed(form, "shapes"),
        "maxGpuPerGpr": whole(form, "gpus") or 0,
        "maxMemoryPerGpr": whole(form, "memory") or 0,
    }


def _policy(visit: Visit, name: str) -> Policy:
    spec = visit.view.wanted.slices.get(name)
    if spec is None:
        raise bad_parameters(f"there is no workspace {name}")
    return policy_of(name, spec.limits, visit.view.wanted.project)


def _form(visit: Visit, name: str) -> DocumentForm:
    seen_slice(visit.view, visit.caller, name)
    now = _policy(visit, name)
    gpus = now.global_gpu_constraints
    return DocumentForm(
        f"Limits of {name}",
        "Hard limits of its requests. No approval lifts them. An empty field is no limit.",
        f"{PAGE}/{name}",
        PAGE,
        (
            FormField(
                "range",
                "Priorities",
                now.priority_range,
                f"low to {CEILINGS['low']}, medium to {CEILINGS['medium']}, high to {CEILINGS['high']}.",
                "select",
                tuple(CEILINGS),
            ),
            FormField("waiting", "Requests in the queue", text_of(now.max_gprs), kind="number"),
            FormField(
                "duration",
                "Longest duration",
                text_of(now.max_exit_duration_per_gpr),
                "Such as 12h, 7d or 1W.",
            ),
            FormField("gpus", "GPUs of one request", text_of(gpus.max_gpu_per_gpr), kind="number"),
            FormField("memory", "GB per GPU", text_of(gpus.max_memory_per_gpr), kind="number"),
            FormField("shapes", "Shapes", " ".join(gpus.gpu_shapes), "With spaces between them; empty: all."),
        ),
        others={"Workspace": f"/admin/workspaces/{name}"},
    )
