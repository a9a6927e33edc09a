"""`/jobs/new`: the form for a workload, on a new request or on one that exists. It shows the files that it commits.

A form carries its idempotency key, so that a form that is sent twice files once.

Held by tests/portal/pages/test_job_pages.py.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from portal.http.errors import ApiError
from portal.pages.forms import Form, Sent, filled
from portal.pages.html import fresh_key
from portal.pages.outcome_page import REUSED, after, elsewhere
from portal.pages.user.jobs.job_list import workspaces_to_file
from portal.pages.user.request_fields import LABELS, body_of
from portal.pages.visit import Visit, Visiting
from portal.routes.workloads import file_workload
from portal.vendor.workload_models import WorkloadAsk
from portal.views.inventories import pools_for
from portal.writes.replayed_answers import Naming, naming_of
from schemas.documents.workload import OBJECT_KINDS
from schemas.status.gpr_status import TERMINAL

router = APIRouter(include_in_schema=False)

USUAL = {"nodes": "1", "gpus": "8", "duration": "6h"}
"""What a new form has in its fields."""
TERMS = ("nodes", "gpus", "shape", "duration", "priority", "cluster")
SENT_BEFORE = "a workload was filed with this form already; send it once more to file this one too"


@router.get("/jobs/new")
async def new_job(visit: Visiting, gpr: str = "") -> Response:
    """The form; `gpr` names a request, as slice/name, on whose nodes it would run."""
    slice_ = gpr.partition("/")[0] or visit.workspace
    return _form(visit, {**USUAL, "slice": slice_, "gpr": gpr}, fresh_key())


@router.post("/jobs/new")
async def file_job(visit: Visiting, form: Sent) -> Response:
    """Files it and shows its page; with `try` it shows the files instead."""
    key, is_trial = form.get("key", "") or fresh_key(), "try" in form
    doing = f"Run {form.get('slice', '')}/{form.get('name', '')}"
    try:
        ask = filled(WorkloadAsk, _body(form) | {"dryRun": is_trial})
        again = Naming() if is_trial else await naming_of(visit.caller, visit.parts, key)
        answer = await file_workload(ask, visit.view, visit.caller, visit.parts, again)
    except ApiError as error:
        if (page := await elsewhere(visit, error, doing)) is not None:
            return page
        if error.reason == REUSED:
            return _form(visit, form, fresh_key(), ApiError(error.status, error.reason, SENT_BEFORE))
        return _form(visit, form, key, error)
    if answer.data.change is None:
        return _form(visit, form, key, text=answer.data.text)
    return after(visit, answer.data.change, f"/jobs/{answer.data.name}", f"Run {answer.data.name}")


def _body(form: Form) -> dict[str, Any]:
    """The body of the API; the workspace of a request that was picked is the workload's."""
    gpr = form.get("gpr", "")
    slice_ = gpr.partition("/")[0] if gpr else form.get("slice", "")
    terms = {name: form.get(name, "") for name in (*TERMS, "template")}
    body = {
        "name": form.get("name", ""),
        "sliceName": slice_,
        "manifests": form.get("manifests", ""),
        "namespace": form.get("namespace") or None,
    }
    return body | ({"gprId": gpr} if gpr else {"gprDetails": body_of(terms)})


def _form(visit: Visit, form: Form, key: str, error: ApiError | None = None, text: str = "") -> Response:
    view, workspaces = visit.view, workspaces_to_file(visit.view, visit.caller)
    slices = [view.wanted.slices[name] for name in workspaces]
    return visit.page(
        "user/job_new.html",
        HTTPStatus.OK if error is None else error.status,
        fields=form,
        key=key,
        error=error,
        text=text,
        labels=LABELS,
        terms=TERMS,
        workspaces=_options(workspaces),
        requests=_options(_open(visit, workspaces), "A new one, as below"),
        namespaces=_options(
            sorted({name for spec in slices for name in spec.namespaces}), "The workspace's first"
        ),
        shapes=sorted({pool.gpu_shape for pool in pools_for(view, visit.caller)}),
        clusters=sorted({name for spec in slices for name in spec.clusters}),
        templates=_options(sorted(view.wanted.templates), "None"),
        kinds=sorted(OBJECT_KINDS),
    )


def _options(names: list[str], absent: str = "") -> list[tuple[str, str]]:
    """Values and texts of a choice; `absent` is the text of no value, if that may be chosen."""
    return [*([("", absent)] if absent else []), *((name, name) for name in names)]


def _open(visit: Visit, workspaces: list[str]) -> list[str]:
    """Requests of these workspaces that may still run, as slice/name."""
    facts, filed = visit.view.facts.requests, visit.view.wanted.filed
    found = (
        key
        for key, file in filed.items()
        if file.spec is not None and (key not in facts or facts[key].phase not in TERMINAL)
    )
    return sorted(key for key in found if key.partition("/")[0] in workspaces)
