"""The forms of a request's page: edit, extend, release, cancel, stop, start, restore.

Each sends what the API's route takes, and is refused for the same reasons. A form that was made for another version of
the request is shown again with the difference, and what was typed stays.

Held by tests/portal/pages/test_request_changes.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from portal.http.context import Changed, Envelope
from portal.http.errors import ApiError, conflict, not_found
from portal.pages.forms import Form, Sent, stated
from portal.pages.outcome_page import elsewhere
from portal.pages.user.request_fields import EDITED, changes_of, fields_of
from portal.pages.user.request_page import on_main, page_of, version_of
from portal.pages.visit import Visit, Visiting
from portal.routes.gpr import cancel_gpr, edit_gpr, restore_gpr
from portal.vendor.gpr_models import GprChanged, GprEdit, GprNamed
from portal.writes.gpr_changes import seen
from portal.writes.replayed_answers import Naming, naming_of
from schemas.documents.gpr import RequestSpec

router = APIRouter(include_in_schema=False)

Act = Callable[[Visit, str, Form, Naming], Awaitable[Envelope[GprChanged]]]
EDITED_MEANWHILE = (
    "this request was changed since you opened the form; look at what is different, then save again"
)


async def _edited(visit: Visit, key: str, form: Form, again: Naming) -> Envelope[GprChanged]:
    if again.landed is not None:  # sent twice: the first answer, whatever the form would change now
        return await _edit(visit, key, {"priority": None}, again)
    spec = on_main(visit, seen(visit.view, visit.caller, key))
    if form.get("version") != version_of(spec):
        raise conflict(EDITED_MEANWHILE)
    return await _edit(visit, key, _with_model(changes_of(form, fields_of(spec)), spec), again)


def _with_model(changes: dict[str, Any], spec: RequestSpec) -> dict[str, Any]:
    """The form has the model's name only; its other fields stay."""
    if changes.get("model"):
        changes["model"] = {
            "name": changes["model"],
            "framework": spec.model.framework,
            "parameters": dict(spec.model.parameters),
        }
    return changes


async def _edit(visit: Visit, key: str, fields: Mapping[str, Any], again: Naming) -> Envelope[GprChanged]:
    if not fields:
        raise conflict(f"{key} has these values already; nothing to change", "Unchanged")
    edit = stated(GprEdit, {"gprId": key, **fields})
    return await edit_gpr(edit, visit.view, visit.caller, visit.parts, again)


async def _extended(visit: Visit, key: str, form: Form, again: Naming) -> Envelope[GprChanged]:
    return await _edit(visit, key, {"extend": form.get("extend", "")}, again)


async def _released(visit: Visit, key: str, _: Form, again: Naming) -> Envelope[GprChanged]:
    return await _edit(visit, key, {"earlyRelease": True}, again)


async def _stopped(visit: Visit, key: str, _: Form, again: Naming) -> Envelope[GprChanged]:
    return await _edit(visit, key, {"stopped": True}, again)


async def _started(visit: Visit, key: str, _: Form, again: Naming) -> Envelope[GprChanged]:
    return await _edit(visit, key, {"stopped": False}, again)


async def _cancelled(visit: Visit, key: str, _: Form, again: Naming) -> Envelope[GprChanged]:
    return await cancel_gpr(visit.view, visit.caller, visit.parts, again, gpr_id=key)


async def _restored(visit: Visit, key: str, _: Form, again: Naming) -> Envelope[GprChanged]:
    return await restore_gpr(GprNamed(gpr_id=key), visit.view, visit.caller, visit.parts, again)


ACTS: Mapping[str, tuple[str, Act]] = {
    "edit": ("Edit", _edited),
    "extend": ("Extend", _extended),
    "release": ("Release", _released),
    "stop": ("Stop", _stopped),
    "start": ("Start", _started),
    "cancel": ("Cancel", _cancelled),
    "restore": ("Restore", _restored),
}
"""By the last part of the address."""


@router.post("/requests/{slice_}/{name}/{act}")
async def change_request(visit: Visiting, slice_: str, name: str, act: str, form: Sent) -> Response:
    """The page of the request again; with the reason and what was typed if the change is refused."""
    key = f"{slice_}/{name}"
    seen(visit.view, visit.caller, key)
    if act not in ACTS:
        raise not_found("action", act)
    verb, carry = ACTS[act]
    try:
        again = await naming_of(visit.caller, visit.parts, form.get("key", ""))
        change: Changed = (await carry(visit, key, form, again)).data.change
    except ApiError as error:
        if (page := await elsewhere(visit, error, f"{verb} {key}", HTTPStatus.NOT_FOUND)) is not None:
            return page
        return await _refused(visit, key, error, form if act == "edit" else {})
    return visit.landed(f"/requests/{key}", change, did=act)


async def _refused(visit: Visit, key: str, error: ApiError, form: Form) -> Response:
    """With the newest version: after a conflict the change of the other person is there."""
    if error.status is HTTPStatus.CONFLICT:
        visit = replace(visit, view=await visit.parts.reads.asked())
    typed = {name: form[name] for name in EDITED if name in form}
    return await page_of(visit, key, error, typed, error.status)
