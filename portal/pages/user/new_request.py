"""`/requests/new`: the form for a request, with quotes for every pool, and the file that it commits.

A form carries its idempotency key. The id, the name of the file and its text follow from the key, so that the page
shows exactly what will be committed, and a form that is sent twice files once.

Held by tests/portal/pages/test_new_request.py.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from portal.http.errors import ApiError
from portal.http.names import checked_name
from portal.identity.rights import check_member, seen_slice
from portal.pages.forms import Form, Sent, filled
from portal.pages.html import fresh_key
from portal.pages.outcome_page import REUSED, after, elsewhere
from portal.pages.user.request_fields import LABELS, WIRE, body_of, fields_of, minute_of
from portal.pages.visit import Visit, Visiting
from portal.routes.gpr import file_gpr
from portal.routes.waittime import wait_time
from portal.vendor.gpr_answers import found_in
from portal.vendor.gpr_filing import asked, file_name, gpr_file, nonce_of
from portal.vendor.gpr_models import GprAsk
from portal.views.inventories import pools_for
from portal.views.quotes import WaitAsk, WaitTime, wished
from portal.views.what_if import WhatIf, what_if
from portal.writes.gpr_changes import with_template
from schemas.documents.gpr import RequestSpec
from schemas.rules.view import gpr_path

router = APIRouter(include_in_schema=False)

_KEY = re.compile(r"[0-9a-f]{32}")
USUAL: Mapping[str, str] = {"nodes": "1", "duration": "6h", "priority": "101"}
"""What a new form has in its fields."""
MAIN = ("nodes", "shape", "duration", "priority", "cluster", "template")
MORE = (
    *("gpus", "memory", "instance", "rdma", "notBefore", "start", "prefer", "maxWait"),
    *("idle", "preemptible", "requeue", "model", "file"),
)
"""Fields that are folded away, unless one of them is filled."""
SENT_BEFORE = (
    "a request was filed with this form already; this is another one: send it once more to file it too"
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A quote, and what the whole request would cost there."""

    quote: WaitTime
    gpus: int
    cost: float | None
    """None: the pool has no price."""

    @property
    def pick(self) -> str:
        return f"{self.quote.cluster_name} {self.quote.gpu_shape}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the form would get now."""

    offers: tuple[Offer, ...] = ()
    message: str = ""
    error: ApiError | None = None
    ways: tuple[tuple[str, str], ...] = ()
    """The same request as text for other doors."""
    effect: WhatIf | None = None
    """Whom it would delay; None: unknown, because too much is asked just now."""
    is_asked: bool = False


@router.get("/requests/new")
async def new_request(visit: Visiting) -> Response:
    """The form, filled from the address; `from` names a request to file again.

    The form's key is in the address too, so that going back finds the same form, which files nothing twice.
    """
    query = visit.request.query_params
    key = query.get("key", "")
    if not _KEY.fullmatch(key):
        address = urlencode(dict(query) | {"key": fresh_key()})  # an empty field is an answer too
        return RedirectResponse(f"{visit.link('/requests/new')}?{address}", HTTPStatus.SEE_OTHER)
    form = {**USUAL, **_again(visit, query.get("from", "")), **_given(query)}
    form.setdefault("slice", visit.workspace or next(iter(_workspaces(visit)), ""))
    return await _page(visit, form, key, before="" if visit.is_part else await _filed_before(visit, key))


def _given(query: Mapping[str, str]) -> Form:
    names = {*WIRE, "pick"} & query.keys()
    return {name: minute_of(query[name]) if name == "notBefore" else query[name].strip() for name in names}


def _again(visit: Visit, key: str) -> Form:
    """The fields of that request, if the caller may see it; a start that has passed is left out."""
    found = found_in(visit.view, key) if key else None
    if found is None or not visit.caller.may_see(found.slice):
        return {}
    fields = fields_of(found.spec)
    if found.spec.not_before is not None and found.spec.not_before <= visit.now:
        fields["notBefore"] = ""
    return fields


def _workspaces(visit: Visit) -> list[str]:
    """Those for which the caller may file."""
    return sorted(visit.caller.actor.member_of & visit.view.wanted.slices.keys())


@router.post("/requests/new")
async def file_request(visit: Visiting, form: Sent) -> Response:
    """Files the request and shows its page. The picked offer's cluster and shape replace those of the form."""
    key = form.get("key", "") or fresh_key()
    doing = f"File {form.get('name') or 'a request'}"
    try:
        ask = filled(GprAsk, body_of(_picked(form)))
        answer = await file_gpr(ask, visit.view, visit.caller, visit.parts, key)
    except ApiError as error:
        if (page := await elsewhere(visit, error, doing)) is not None:
            return page
        if error.reason == REUSED:
            told = ApiError(error.status, error.reason, SENT_BEFORE)
            return await _page(visit, form, fresh_key(), told)
        return await _page(visit, form, key, error)
    return after(visit, answer.data.change, f"/requests/{answer.data.name}", f"File {answer.data.name}")


def _picked(form: Form) -> Form:
    cluster, _, shape = form.get("pick", "").partition(" ")
    return {**form, "cluster": cluster, "shape": shape} if cluster and shape else form


async def _filed_before(visit: Visit, key: str) -> str:
    """The request that was filed with this form, as slice/name; empty: none was."""
    try:
        landed = await visit.parts.writer.known(visit.caller, key)
    except ApiError:  # the key came with another call than this one: it was used
        return _by_key(visit, key)
    return "" if landed is None else _by_key(visit, key)


def _by_key(visit: Visit, key: str) -> str:
    nonce = nonce_of(visit.caller.email, key)
    return next((name for name, one in visit.view.wanted.filed.items() if one.nonce == nonce), "")


async def _page(
    visit: Visit, form: Form, key: str, error: ApiError | None = None, before: str = ""
) -> Response:
    view, caller = visit.view, visit.caller
    workspaces = _workspaces(visit)
    slices = [view.wanted.slices[name] for name in workspaces]
    answer = await answer_of(visit, form, key)
    picks = {offer.pick for offer in answer.offers}
    return visit.page(
        "user/new_request.html",
        HTTPStatus.OK if error is None else error.status,
        fields=form,
        key=key,
        error=error,
        before=before,
        anew={name: text for name, text in form.items() if name in WIRE},
        answer=answer,
        pick=form.get("pick", "") if form.get("pick", "") in picks else "",
        labels=LABELS,
        main=MAIN,
        more=MORE,
        more_open=any(form.get(name) for name in MORE if not _is_usual(visit, name, form)),
        workspaces=workspaces,
        shapes=sorted({pool.gpu_shape for pool in pools_for(view, caller)}),
        clusters=sorted({name for spec in slices for name in spec.clusters}),
        templates=sorted(view.wanted.templates),
        currency=view.wanted.project.currency,
        admins=[person.email for person in view.wanted.project.admins],
    )


def _is_usual(visit: Visit, name: str, form: Form) -> bool:
    """Whether a folded field says what it would say anyway: whole nodes of the shape."""
    shape, pools = form.get("shape", ""), pools_for(visit.view, visit.caller)
    whole = {str(pool.gpus_per_node) for pool in pools if shape in ("", pool.gpu_shape)}
    return name in ("start", "prefer") or (name == "gpus" and {form.get("gpus", "")} == whole)


async def answer_of(visit: Visit, form: Form, key: str) -> Answer:
    """The quotes and the file; a form that cannot be read, or is not filled yet, has none."""
    if not form.get("slice") or not (form.get("template") or (form.get("nodes") and form.get("duration"))):
        return Answer()
    view, caller = visit.view, visit.caller
    try:
        seen_slice(view, caller, form["slice"])
        check_member(caller, form["slice"], "file requests there")
        ask = filled(GprAsk, body_of(_picked(form)))
        body = body_of(form, leave_out=("name", "file", "model", "idle", "preemptible", "requeue"))
        told = await wait_time(filled(WaitAsk, body), view, caller, visit.parts)
        spec = wished(view, ask.slice_name, with_template(view, ask.slice_name, asked(ask).spec))
        path, text, fields = _file(visit, ask, key)
    except ApiError as error:
        return Answer(error=error, is_asked=True)
    ways = (("YAML", f"# {path}\n{text}"), ("CLI", _command(_key_of(path), fields)), ("Python", _python(ask)))
    offers = tuple(_offer(each, spec) for each in told.data.items)
    message = "" if told.message == "Success" else told.message
    return Answer(offers, message, None, ways, await _effect(visit, path, text), is_asked=True)


async def _effect(visit: Visit, path: str, text: str) -> WhatIf | None:
    """What the check of a pull request with that file would say."""
    changes = {path: text.encode()}
    try:
        return await visit.parts.costly.answer(
            what_if, visit.view, visit.parts.store, visit.caller, changes, visit.now
        )
    except ApiError:
        return None


def _offer(quote: WaitTime, spec: RequestSpec) -> Offer:
    """Whole nodes are paid, for the whole duration."""
    gpus = spec.nodes * quote.gpus_per_node
    hours = spec.duration.total_seconds() / 3600
    cost = gpus * hours * quote.price_per_gpu_hour if quote.price_per_gpu_hour else None
    return Offer(quote, gpus, cost)


# -- the same for other doors ------------------------------------------------------------------------------------------


def _file(visit: Visit, ask: GprAsk, key: str) -> tuple[str, str, Mapping[str, Any]]:
    """Path and text of the file that it commits, and the fields in it."""
    nonce = nonce_of(visit.caller.email, key)
    name = checked_name("file", file_name(ask, nonce))
    fields = with_template(visit.view, ask.slice_name, asked(ask).spec)
    return gpr_path(ask.slice_name, name), gpr_file(ask.slice_name, name, nonce, fields).decode(), fields


def _key_of(path: str) -> str:
    """slice/name of a request's file."""
    _, slice_, _, file = path.split("/")
    return f"{slice_}/{file.removesuffix('.yaml')}"


_OPTIONS: Mapping[str, str] = {
    "displayName": "--display-name",
    "nodes": "--nodes",
    "gpusPerNode": "--gpus-per-node",
    "gpuShape": "--shape",
    "memoryPerGpu": "--memory",
    "instanceType": "--instance-type",
    "clusters": "--cluster",
    "duration": "--duration",
    "priority": "--priority",
    "template": "--template",
    "notBefore": "--not-before",
    "start": "--start",
    "prefer": "--prefer",
    "maxWait": "--max-wait",
}
"""Options of `egs gpr create` by field of the file."""


def _command(key: str, fields: Mapping[str, Any]) -> str:
    """Fields that `create` has no option for are set by `edit` afterwards."""
    words, later = ["egs", "gpr", "create", key], []
    for field, value in fields.items():
        if field in _OPTIONS:
            for each in value if isinstance(value, list | tuple) else [value]:
                words += [_OPTIONS[field], str(each)]
        elif field == "network":
            words += ["--rdma"] * bool(value.get("rdma"))
        elif field == "model":
            words += ["--model", value["name"]]
        else:
            later.append(f"{field}={str(value).lower() if isinstance(value, bool) else value}")
    lines = [shlex.join(words)]
    if later:
        lines.append(shlex.join(["egs", "gpr", "edit", key, *later]))
    return "\n".join(lines) + "\n"


_ARGUMENTS: Mapping[str, str] = {
    "gprName": "request_name",
    "sliceName": "workspace_name",
    "numberOfGPUNodes": "node_count",
    "numberOfGPUs": "gpu_per_node_count",
    "exitDuration": "exit_duration",
    "memoryPerGPU": "memory_per_gpu",
    "instanceType": "instance_type",
    "gpuShape": "gpu_shape",
    "priority": "priority",
    "preferredClusters": "preferred_clusters",
    "templateName": "template_name",
    "notBefore": "not_before",
    "start": "start",
    "prefer": "prefer",
    "maxWait": "max_wait",
    "idleTimeOutDuration": "idle_timeout_duration",
    "enableEviction": "enable_eviction",
    "requeueOnFailure": "requeue_on_failure",
    "enableRDMA": "enable_rdma",
    "model": "model",
    "name": "name",
}
"""Arguments of `egs.request_gpu` by the API's name."""


def _python(ask: GprAsk) -> str:
    sent = ask.model_dump(mode="json", by_alias=True, exclude_unset=True)
    given = {"gprName": ask.gpr_name or "request", "numberOfGPUs": 1} | sent
    lines = [f"    {_ARGUMENTS[name]}={given[name]!r}," for name in _ARGUMENTS if name in given]
    return "\n".join(("import egs", "", "request_id = egs.request_gpu(", *lines, ")", ""))
