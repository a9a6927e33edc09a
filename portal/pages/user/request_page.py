"""`/requests/<workspace>/<name>`: the truth about one request, and the forms that change it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from portal.http.errors import ApiError
from portal.http.paging import Portion
from portal.pages.plain_words import APPROVALS
from portal.pages.user.jobs.job_list import workspaces_to_file
from portal.pages.user.request_choices import choices_of, ends
from portal.pages.user.request_fields import EDITED, HELD, LABELS, fields_of, short
from portal.pages.visit import Visit, Visiting
from portal.routes.events import search_events
from portal.routes.gpr import why_gpr
from portal.vendor.gpr_answers import Found, data_of
from portal.views import table_rows
from portal.views.event_search import EventQuery
from portal.views.file_history import file_history
from portal.views.inventories import pools_for
from portal.views.view import View
from portal.views.why import Why
from portal.writes.gpr_changes import seen
from reconciler.deciding.extension import Room, room_for
from reconciler.queries.why import room_sentence
from reconciler.store.store_port import Commit
from schemas.documents.gpr import RequestSpec
from schemas.reading.units import format_instant
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import HOLDING, TERMINAL, Check, Phase, Slip

router = APIRouter(include_in_schema=False)

REMEMBERED = 1000
"""Most requests of a view whose longest extension is kept."""
EVENTS = 20
"""Latest events on the page."""
LOOKED_BACK = 300
"""Commits of the status branch in which the commits of slips are looked for; it is cut after a day anyway."""


@dataclass(frozen=True, slots=True)
class History:
    """Commits that tell how the request came to be as it is."""

    file: Sequence[Commit]
    """Commits of main that changed its file, newest first."""
    slips: Mapping[str, str]
    """Commit of the status branch by the time of the slip, as far as they are known."""


@router.get("/requests/{slice_}/{name}")
async def request_page(visit: Visiting, slice_: str, name: str) -> Response:
    """Its state, why, promises, checks, events and cost, all of one commit."""
    return await page_of(visit, f"{slice_}/{name}")


async def page_of(
    visit: Visit,
    key: str,
    error: Exception | None = None,
    typed: Mapping[str, str] | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> Response:
    """The page; `typed`: what a refused form had in its fields, `error`: why it was refused."""
    view, caller, parts, now = visit.view, visit.caller, visit.parts, visit.now
    found = seen(view, caller, key)
    row = data_of(view, found, now, visit.redactor)
    why: Why = (await why_gpr(key, view, caller, parts)).data
    events = await asyncio.to_thread(search_events, view, caller, parts, EventQuery(gpr=key), Portion(EVENTS))
    filed = on_main(visit, found)
    shown = fields_of(filed)
    return visit.page(
        "user/request_page.html",
        status,
        row=row,
        found=found,
        record=found.status,
        redact=visit.redactor.text,
        why=why,
        events=events.data.items,
        history=await asyncio.to_thread(_history, visit, found),
        checks=[] if found.status is None else [_veiled(visit, one) for one in found.status.checks],
        choices=choices_of(view, caller, found),
        is_ending=ends(view, found),
        pending=_differences(fields_of(found.spec), shown),
        version=version_of(filed),
        fields={**shown, **(typed or {})},
        labels=LABELS,
        approvals=APPROVALS,
        typed=typed,
        editable=HELD if found.status is not None and found.status.phase in HOLDING else EDITED,
        shapes=sorted({pool.gpu_shape for pool in pools_for(view, caller)}),
        clusters=view.wanted.slices[found.slice].clusters if found.slice in view.wanted.slices else (),
        extend=short(filed.extend),
        grace=view.wanted.project.max_extension,
        room=await _room(visit, found),
        jobs=_jobs(visit, found),
        may_run=found.slice in workspaces_to_file(view, caller) and row.phase not in TERMINAL,
        admins=[person.email for person in view.wanted.project.admins],
        ways=await asyncio.to_thread(_ways, visit, found, row.gpr_id),
        error=error,
        differences=_differences(shown, typed) if typed else [],
    )


@dataclass(frozen=True, slots=True)
class Longer:
    """The longest extension that would be granted now."""

    most: str
    """As a form takes it; empty: none that is longer than the present one."""
    told: str


async def _room(visit: Visit, found: Found) -> Longer | None:
    """None: it is not running, or too much is asked just now."""
    status = found.status
    if status is None or status.phase is not Phase.PROVISIONED:
        return None
    known = visit.view.once(_rooms)
    if found.key not in known:
        try:
            room = await visit.parts.costly.answer(_room_in, visit.view, found.key)
        except ApiError:
            return None
        if len(known) < REMEMBERED:
            known[found.key] = room
    else:
        room = known[found.key]
    if room is None:
        return None
    most = short(room.most) if room.most > status.extended_by else ""
    return Longer(most, visit.redactor.text(room_sentence(room, status)))


def _rooms(_: View) -> dict[str, Room | None]:
    return {}


def _room_in(view: View, key: str) -> Room | None:
    return room_for(key, view.facts, view.wanted, view.state.snapshot)


def _jobs(visit: Visit, found: Found) -> list[dict[str, Any]]:
    """Workloads that run on its nodes, or wait for them."""
    rows = table_rows.jobs(visit.view, visit.caller, found.slice)
    return [row for row in rows if row["gpr"] == found.name]


def on_main(visit: Visit, found: Found) -> RequestSpec:
    """What its file says; without a valid one, what is in force."""
    filed = visit.view.wanted.filed.get(found.key)
    return found.spec if filed is None or filed.spec is None else filed.spec


def _ways(visit: Visit, found: Found, id_: str) -> list[tuple[str, str]]:
    """The same for other doors."""
    text = visit.parts.store.read_path(visit.view.main, gpr_path(*found.key.split("/", 1)))
    asked = f"egs describe gpr {found.key}\negs why {found.key}\n"
    python = f"import egs\n\nrequest = egs.gpu_request_status({id_ or found.key!r})\nprint(request)\n"
    ways = [("CLI", asked), ("Python", python)]
    return ways if text is None else [("YAML", text.decode(errors="replace")), *ways]


def version_of(spec: RequestSpec) -> str:
    """Names what a form showed; an edit of another version is refused. `specDigest` leaves out many fields."""
    return hashlib.sha256(spec.model_dump_json().encode()).hexdigest()[:32]


def _differences(one: Mapping[str, str], other: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Label and both values of each field that differs."""
    return [
        (LABELS[name], one.get(name, ""), other[name])
        for name in EDITED
        if name in other and one.get(name, "") != other[name]
    ]


def _veiled(visit: Visit, check: Check) -> Check:
    """A log is any text; it may name another workspace's request."""
    redactor = visit.redactor
    return check.edited(value=redactor.text(check.value), log=redactor.text(check.log))


def _history(visit: Visit, found: Found) -> History:
    store, view = visit.parts.store, visit.view
    commits = file_history(store, view.main, gpr_path(*found.key.split("/", 1)))
    slips = () if found.status is None else found.status.slips
    return History(commits, _commits_of(visit, slips) if slips and view.status else {})


def _commits_of(visit: Visit, slips: Sequence[Slip]) -> dict[str, str]:
    """A slip is in the commit of its time."""
    wanted = {slip.at for slip in slips}
    log = visit.parts.store.log(visit.view.status, LOOKED_BACK)
    return {format_instant(commit.at): commit.oid for commit in log if commit.at in wanted}
