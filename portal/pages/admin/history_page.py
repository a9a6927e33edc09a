"""`/admin/history`: what differs between two states, who set what, and undo with its effect shown first."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from http import HTTPStatus
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.http.errors import ApiError
from portal.pages.forms import Sent, filled
from portal.pages.visit import AdminVisiting, Visit
from portal.routes import history, writes
from portal.views.past.differences import StateDiff
from portal.writes.undo import UndoAsk, UndoShown
from reconciler.status.past_states import PastState
from reconciler.store.store_port import Commit
from schemas.errors import EgsError, Fault

router = APIRouter(include_in_schema=False)

PAGE, UNDO = "/admin/history", "/admin/history/undo"
STATES = 300
"""Kept states on the slider, the newest."""
LATELY = timedelta(hours=12)
FIRST = 3
"""Kept states that are tried: the first one may be from before the first decision."""
COMMITS = 25
"""Of main, listed to be taken back."""
Text = Annotated[str, Query(max_length=300)]


@router.get(PAGE)
async def history_page(
    visit: AdminVisiting,
    from_: Annotated[str, Query(alias="from", max_length=80)] = "",
    to: Annotated[str, Query(max_length=80)] = "",
    path: Text = "",
    field: Text = "",
) -> Response:
    """The difference of two states, with blame of one document if the address names it."""
    view, caller, parts = visit.view, visit.caller, visit.parts
    found: StateDiff | None = None
    blame: history.Blame | None = None
    errors: list[EgsError] = []
    states, commits = await asyncio.to_thread(_kept, visit)
    for begin in [from_] if from_ else _beginnings(visit, states):
        from_ = begin
        try:
            found = (await history.get_diff(view, caller, parts, begin, to)).data
            errors.clear()
            break
        except EgsError as error:
            errors = [error]
    try:
        blame = await _blame(visit, path, field) if path else None
    except EgsError as error:
        errors.append(error)
    return visit.page(
        "admin/history.html",
        found=found,
        blame=blame,
        errors=errors,
        states=states,
        commits=commits,
        chosen={"from": from_, "to": to, "path": path, "field": field},
    )


async def _blame(visit: Visit, path: str, field: str) -> history.Blame:
    """Of a request by slice/name, or of a document by its path."""
    is_request = path.count("/") == 1 and not path.endswith(".yaml")
    named = (path, "") if is_request else ("", path)
    answer = await history.get_blame(visit.view, visit.caller, visit.parts, *named, field, 10)
    return answer.data


def _kept(visit: Visit) -> tuple[list[PastState], list[Commit]]:
    """States that can be gone back to, oldest first, and the newest commits of main."""
    try:
        states = visit.parts.past.states.states()
        commits = list(islice(visit.parts.store.log(visit.view.main, COMMITS), COMMITS))
    except Fault:
        return [], []
    return list(states[-STATES:]), commits


def _beginnings(visit: Visit, states: list[PastState]) -> list[str]:
    """Where a comparison may begin without a wish: half a day ago, or at one of the first kept states."""
    if states and states[0].at > visit.now - LATELY:
        return [state.status for state in states[:FIRST]]
    return ["12h"]


@router.get(UNDO)
async def undo_page(visit: AdminVisiting, commit: Annotated[str, Query(max_length=64)]) -> Response:
    """What taking that commit back would change and do."""
    return await _undo(visit, commit)


@router.post(UNDO)
async def file_undo(visit: AdminVisiting, form: Sent) -> Response:
    """Proposes what was shown; refused if the change differs now."""
    commit = form.get("commit", "")
    try:
        ask = filled(UndoAsk, {"commit": commit, "digest": form.get("digest") or None})
        done = await writes.file_undo(ask, visit.view, visit.caller, visit.parts, form.get("key", ""))
    except EgsError as error:
        return await _undo(visit, commit, error)
    return visit.landed(PAGE, done.data.change)


async def _undo(visit: Visit, commit: str, error: EgsError | None = None) -> Response:
    found: UndoShown | None = None
    try:
        found = (await writes.show_undo(visit.view, visit.caller, visit.parts, commit)).data
    except EgsError as refused:
        error = error or refused
    status = error.status if isinstance(error, ApiError) else HTTPStatus.OK
    return visit.page("admin/undo.html", status, found=found, commit=commit, error=error)
