"""`/admin/approvals`: requests that wait for an admin; each is decided on the page that shows its terms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from portal.http.errors import ApiError, bad_parameters
from portal.pages.forms import Form, Sent, filled, whole
from portal.pages.plain_words import APPROVALS
from portal.pages.visit import AdminVisiting, Visit
from portal.routes import approvals
from portal.vendor.approval_models import Decision, Pending, decided, pending
from portal.vendor.gpr_answers import data_of
from portal.vendor.workspace_models import workspace_of
from portal.views.what_if import WhatIf, what_if
from portal.writes.gpr_changes import seen
from portal.writes.proposed_files import ProposedTree
from portal.writes.replayed_answers import naming_of
from reconciler.model.statuses import live
from reconciler.queries.policy_problems import NEEDS_APPROVAL
from schemas.errors import EgsError
from schemas.reading.reader import rule_of
from schemas.reading.units import format_instant
from schemas.rules.fit import admins_needed
from schemas.status.gpr_status import GPRStatus, Phase

router = APIRouter(include_in_schema=False)

PAGE = "/admin/approvals"
DAYS = (1, 7, 30, 90)
"""For how many days a word may count."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a request as it was shown, and as it is now."""

    name: str
    was: str
    now: str


@dataclass(frozen=True, slots=True)
class Extension:
    """A running request that wants more grace than the project allows."""

    name: str
    asked: timedelta
    granted: timedelta
    end: str


@router.get(PAGE)
def approval_list(visit: AdminVisiting) -> Response:
    """The longest waiting first, then extensions of running requests."""
    return visit.page(
        "admin/approvals.html",
        waiting=pending(visit.view, visit.caller),
        figures=_figures(visit),
        extensions=_extensions(visit),
        meanings=APPROVALS,
    )


@router.get(PAGE + "/{slice_}/{name}")
async def approval_page(visit: AdminVisiting, slice_: str, name: str) -> Response:
    """One request: what is asked for, which rule is broken, what an approval would do, and the form of the decision."""
    return await _page(visit, f"{slice_}/{name}")


@router.post(PAGE + "/{slice_}/{name}")
async def decide(visit: AdminVisiting, form: Sent, slice_: str, name: str) -> Response:
    """The word of the form; a refusal shows the request as it is now, with what was typed."""
    key = f"{slice_}/{name}"
    try:
        word = _word(key, form, visit)
        named = await naming_of(visit.caller, visit.parts, form.get("key", ""))
        done = await approvals.decide(word, visit.view, visit.caller, visit.parts, named)
    except EgsError as error:
        return await _page(visit, key, form, error)
    return visit.landed(PAGE, done.data.change)


def _word(key: str, form: Form, visit: Visit) -> Decision:
    decision, extend = form.get("decision", ""), form.get("extend", "")
    if decision == "reject" and not form.get("reason"):
        raise bad_parameters("reason: say in a sentence why it is rejected; the requester reads it")
    limit = {"gpus": whole(form, "gpus"), "nodes": whole(form, "nodes"), "extend": extend or None}
    given = {name: value for name, value in limit.items() if value is not None}
    days = whole(form, "days")
    fields = {
        "gprId": key,
        "decision": decision,
        "specDigest": form.get("digest", ""),
        "reason": form.get("reason", ""),
        "limit": given if given and decision == "approve" else None,
        "notAfter": None if days is None else format_instant(visit.now + timedelta(days=days)),
        "rule": "extension" if form.get("rule") == "extension" else "request",
    }
    return filled(Decision, fields)


async def _page(visit: Visit, key: str, form: Form | None = None, error: EgsError | None = None) -> Response:
    view, now = visit.view, visit.now
    found = seen(view, visit.caller, key)
    effect, hindrance = None, ""
    try:
        effect = await visit.parts.costly.answer(_approved, visit, key)
    except EgsError as refused:
        hindrance = str(refused) if refused.reason == "OwnRequest" else ""
    one = next((one for one in pending(view, visit.caller) if one.name == key), None)
    extension = next((one for one in _extensions(visit) if one.name == key), None)
    data = data_of(view, found, now, visit.redactor)
    newer = _newer(error)
    terms = {text: _said(getattr(data, field)) for field, text in _SHOWN.items()} | newer
    told = {
        "key": key,
        "one": one,
        "figures": _figures(visit).get(key, ""),
        "extension": extension,
        "request": data,
        "digest": _digest(error) or data.spec_digest,
        "terms": terms,
        "shown": json.dumps(terms),
        "changed": _changed(form, terms),
        "workspace": workspace_of(view, found.slice),
        "effect": effect,
        "hindrance": hindrance,
        "words": view.wanted.decisions.get(key, ()),
        "admins_needed": _admins_needed(visit, one),
        "meanings": APPROVALS,
        "days": DAYS,
        "form": form or {},
        "error": error,
    }
    status = error.status if isinstance(error, ApiError) else HTTPStatus.OK
    return visit.page("admin/approval.html", status if error else HTTPStatus.OK, **told)


def _approved(visit: Visit, key: str) -> WhatIf | None:
    """What the least approval would do; None: it needs none. ApiError 403 for one's own request."""
    view, store, now = visit.view, visit.parts.store, visit.now
    status = view.facts.requests.get(key)
    if status is None or status.phase is not Phase.PENDING_APPROVAL:
        return None
    word = Decision(gpr_id=key, decision="approve", spec_digest=status.spec_digest)
    files = decided(view, ProposedTree(view, store), key, word, visit.caller, now)
    return what_if(view, store, visit.caller, files, now)


_SHOWN: Mapping[str, str] = {
    "number_of_gpu_nodes": "Nodes",
    "number_of_gpus": "GPUs per node",
    "gpu_shapes": "Shapes",
    "preferred_clusters": "Clusters",
    "exit_duration": "Duration",
    "priority": "Priority",
    "memory_per_gpu": "Memory per GPU",
    "instance_type": "Machine type",
    "enable_eviction": "May be evicted",
    "extend": "Grace",
    "not_before": "Not before",
}
"""Terms on the page, by the fields of the API's answer."""


_ASKED: Mapping[str, str] = {
    "numberOfGPUNodes": "Nodes",
    "numberOfGPUs": "GPUs per node",
    "gpuShapes": "Shapes",
    "clusters": "Clusters",
    "exitDuration": "Duration",
    "priority": "Priority",
}
"""The same by the fields of a refusal."""


def _newer(error: EgsError | None) -> dict[str, str]:
    """The terms in the file, if the refusal names them: the controller may not have read it yet."""
    asked = (error.data or {}).get("asked") if isinstance(error, ApiError) else None
    return {} if asked is None else {text: _said(asked[field]) for field, text in _ASKED.items()}


def _digest(error: EgsError | None) -> str:
    """Of the request as the refusal knows it; empty: it says nothing about that."""
    told = error.data if isinstance(error, ApiError) else None
    return "" if not told else str(told.get("specDigest", ""))


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "any"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return {"0": "any", "": "any", "0h0m0s": "none", "0d0h0m": "none"}.get(str(value), str(value))


def _figures(visit: Visit) -> dict[str, str]:
    """By request, the sentence with the figures behind the rule."""
    found = {}
    for problem in visit.view.problems:
        rule = rule_of(problem.file)
        if problem.rule == NEEDS_APPROVAL and rule is not None and rule[0].kind == "GPR":
            found[f"{rule[1]['slice']}/{rule[1]['name']}"] = problem.message
    return found


def _changed(form: Form | None, terms: Mapping[str, str]) -> list[Term]:
    """How the terms differ from those that the form was made for."""
    try:
        before = json.loads((form or {}).get("shown", "{}"))
    except ValueError:
        return []
    if not isinstance(before, dict):
        return []
    return [
        Term(name, str(before[name]), now)
        for name, now in terms.items()
        if name in before and str(before[name]) != now
    ]


def _admins_needed(visit: Visit, one: Pending | None) -> int:
    """How many admins must approve it."""
    if one is None:
        return 1
    nodes = one.asked.number_of_gpu_nodes
    return admins_needed(visit.view.wanted.project, nodes, nodes * one.asked.number_of_gpus)


def _extensions(visit: Visit) -> list[Extension]:
    free = visit.view.wanted.project.max_extension
    return [
        Extension(key, status.accepted_spec.extend, status.extended_by, _end(status))
        for key, status in live(visit.view.facts.requests).items()
        if status.phase == "Provisioned"
        and status.accepted_spec.extend > max(free, status.extended_by)
        and visit.caller.may_see(key.partition("/")[0])
    ]


def _end(status: GPRStatus) -> str:
    return "" if status.end_time is None else format_instant(status.end_time)
