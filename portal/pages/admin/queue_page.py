"""`/admin/queue`: everything that waits, in order; a move or another priority is shown with its effect, then made."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.http.context import Changed
from portal.http.errors import ApiError, bad_parameters, conflict
from portal.pages.forms import Form, Sent, filled
from portal.pages.plain_words import WAITS_FOR
from portal.pages.visit import AdminVisiting, Visit
from portal.routes import gpr, queue, whatif
from portal.vendor.gpr_models import GprEdit
from portal.vendor.what_if_models import Moving, WhatIfAsk
from portal.views.fleet.queue_order import ahead_of, others_of
from portal.views.queues import queue as waiting_keys
from portal.views.queues import queue_row
from portal.views.what_if import WhatIf
from portal.writes.gpr_changes import seen
from portal.writes.replayed_answers import naming_of
from schemas.errors import EgsError

router = APIRouter(include_in_schema=False)

PAGE, CHANGE = "/admin/queue", "/admin/queue/change"
SHOWN = 300
"""Rows of one page."""
Key = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be done with a request: one of the three."""

    key: str
    before: str = ""
    to: str = ""
    priority: str = ""

    @property
    def is_one(self) -> bool:
        return bool(self.before or self.to or self.priority)

    @property
    def change(self) -> dict[str, Any]:
        """As an entry of `POST whatif`."""
        if self.priority:
            return {"do": "edit", "gprId": self.key, "priority": _number(self.priority)}
        return {"do": "move", "gprId": self.key, "before": self.before, "to": self.to}


@router.get(PAGE)
def queue_page(
    visit: AdminVisiting,
    cluster: Annotated[str, Query(max_length=63)] = "",
    q: Annotated[str, Query(max_length=100)] = "",
    first: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """In the order of the plan, with start, place and pool, and whose end each waits for."""
    view, now = visit.view, visit.now
    keys = [
        key for key in waiting_keys(view, visit.caller, visit.workspace, cluster) if q.lower() in key.lower()
    ]
    rows = [row for key in keys[first : first + SHOWN] if (row := queue_row(view, key, now)) is not None]
    return visit.page(
        "admin/queue.html",
        rows=rows,
        total=len(keys),
        first=first,
        shown=SHOWN,
        ahead=view.once(ahead_of),
        others=view.once_planned(others_of),
        waits_for=WAITS_FOR,
        clusters=sorted(view.wanted.clusters),
        chosen={"cluster": cluster, "q": q},
        can_drag=not q and not cluster and not visit.workspace,
    )


@router.get(CHANGE)
async def change_page(
    visit: AdminVisiting, gpr: Key, before: Key = "", to: Key = "", priority: Key = ""
) -> Response:
    """The forms of a change; with a change named, what it would do, and the button that makes it."""
    wish = Wish(gpr, before, to, priority)
    effect: WhatIf | None = None
    try:
        effect = await _effect(visit, wish) if wish.is_one else None
    except EgsError as error:
        return _change(visit, wish, None, error)
    return _change(visit, wish, effect)


@router.post(CHANGE)
async def change(visit: AdminVisiting, form: Sent) -> Response:
    """Makes the change if its effect is still what was shown; else shows the effect as it is now."""
    wish = Wish(*(form.get(name, "") for name in ("gpr", "before", "to", "priority")))
    effect: WhatIf | None = None
    try:
        effect = await _effect(visit, wish)
        if digest_of(effect) != form.get("shown"):
            raise conflict("the effect has changed since it was shown; look at it again, then decide")
        done = await _made(visit, wish, form)
    except EgsError as error:
        return _change(visit, wish, effect, error)
    return visit.landed(PAGE, done, did="priority" if wish.priority else "move")


async def _effect(visit: Visit, wish: Wish) -> WhatIf:
    ask = filled(WhatIfAsk, {"changes": [wish.change]})
    return (await whatif.ask_what_if(ask, visit.view, visit.caller, visit.parts)).data


async def _made(visit: Visit, wish: Wish, form: Form) -> Changed:
    named = await naming_of(visit.caller, visit.parts, form.get("key", ""))
    around = visit.view, visit.caller, visit.parts, named
    if wish.priority:
        edit = filled(GprEdit, {"gprId": wish.key, "priority": _number(wish.priority)})
        return (await gpr.edit_gpr(edit, *around)).data.change
    moving = filled(Moving, {"gprId": wish.key, "before": wish.before, "to": wish.to})
    return (await queue.move(moving, *around)).data.change


def digest_of(effect: WhatIf) -> str:
    """Of who is moved and by how much: what an admin decides on."""
    told = effect.model_dump_json(
        include={"verdict", "moved", "more_moved", "preempted", "problems", "denials"}
    )
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def _number(text: str) -> int:
    if not text.isdecimal():
        raise bad_parameters("priority: this must be a whole number")
    return int(text)


def _change(visit: Visit, wish: Wish, effect: WhatIf | None, error: EgsError | None = None) -> Response:
    view, now = visit.view, visit.now
    key = seen(view, visit.caller, wish.key).key
    row = queue_row(view, key, now)
    keys = waiting_keys(view, visit.caller)
    rows = [found for other in keys[:SHOWN] if (found := queue_row(view, other, now)) is not None]
    peers = [one for one in rows if row is not None and one["priority"] == row["priority"]]
    status = error.status if isinstance(error, ApiError) else HTTPStatus.UNPROCESSABLE_ENTITY
    return visit.page(
        "admin/queue_change.html",
        HTTPStatus.OK if error is None else status,
        key=key,
        row=row,
        wish=wish,
        peers=[f"{one['slice']}/{one['name']}" for one in peers if f"{one['slice']}/{one['name']}" != key],
        effect=effect,
        digest="" if effect is None else digest_of(effect),
        error=error,
    )
