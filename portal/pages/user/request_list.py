"""`/requests`: requests that the caller may see, by workspace, state, shape and text; several are cancelled at once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from portal.http.errors import ApiError, bad_parameters
from portal.http.headers import REQUEST_ORIGIN, RequestOrigin
from portal.http.names import listed
from portal.pages.forms import Sent
from portal.pages.user.request_rows import COLUMNS, WHICH, Chosen, Column, as_csv, chosen, rows
from portal.pages.visit import Visit, Visiting
from portal.routes.gpr import cancel_gpr
from portal.views.inventories import pools_for
from portal.views.queues import line_of
from portal.writes.replayed_answers import naming_of

router = APIRouter(include_in_schema=False)

SHOWN = 200
"""Rows of one page."""
PICK = "pick "
"""What names of checkboxes begin with; the request follows."""


def _asked(
    which: Annotated[str, Query(max_length=40)] = "open",
    shape: Annotated[str, Query(max_length=100)] = "",
    q: Annotated[str, Query(max_length=100)] = "",
    sort: Column = "",
    *,
    desc: bool = False,
) -> Chosen:
    return _checked(Chosen(which, shape, q, sort, desc))


def _checked(wanted: Chosen) -> Chosen:
    if wanted.which not in WHICH:
        raise bad_parameters(f"which: there is no {wanted.which}; choose from {listed(WHICH)}")
    return wanted


Asked = Annotated[Chosen, Depends(_asked)]


@router.get("/requests")
def request_list(
    visit: Visiting,
    wanted: Asked,
    first: Annotated[int, Query(ge=0)] = 0,
    cancelled: Annotated[int, Query(ge=0, le=SHOWN)] = 0,
) -> Response:
    """Waiting ones first, by their start; then running ones by their end, then finished ones."""
    return visit.page("user/request_list.html", **_data(visit, wanted, first) | {"cancelled": cancelled})


@router.get("/requests.csv")
def request_csv(visit: Visiting, wanted: Asked) -> Response:
    """Every row of the list, with the same filters and order."""
    keys = chosen(visit.view, _sees(visit), wanted, visit.now)
    text = as_csv(row for row, _ in rows(visit.view, keys, visit.now, visit.redactor))
    headers = {"Content-Disposition": 'attachment; filename="requests.csv"'}
    return Response(text, headers=headers, media_type="text/csv; charset=utf-8")


def _sees(visit: Visit) -> Callable[[str], bool]:
    caller, only = visit.caller, visit.workspace
    return lambda slice_: only in ("", slice_) and caller.may_see(slice_)


def _data(visit: Visit, wanted: Chosen, first: int = 0) -> dict[str, Any]:
    view, now = visit.view, visit.now
    keys = chosen(view, _sees(visit), wanted, now)
    shown = rows(view, keys[first : first + SHOWN], now, visit.redactor)
    waiting = view.once_planned(line_of).turns
    return {
        "rows": shown,
        "total": len(keys),
        "first": first,
        "shown": SHOWN,
        "wanted": wanted,
        "address": _address(wanted),
        "columns": COLUMNS,
        "whiches": tuple(WHICH),
        "shapes": sorted({pool.gpu_shape for pool in pools_for(view, visit.caller)}),
        "waiting": len(waiting),
        "hidden": sum(not visit.caller.may_see(key.partition("/")[0]) for key in waiting),
        "pick": PICK,
        "refused": {},
        "cancelled": 0,
    }


def _address(wanted: Chosen) -> dict[str, Any]:
    """The parameters of the page's address; what is usual is left out."""
    given = asdict(wanted) | {"desc": "true" if wanted.desc else ""}
    return {name: value for name, value in given.items() if value and (name, value) != ("which", "open")}


@router.post("/requests")
async def cancel_several(visit: Visiting, form: Sent) -> Response:
    """Cancels the requests that were picked, each by a change of its own; what is refused is listed with its reason."""
    wanted = _checked(
        Chosen(
            form.get("which", "open"),
            form.get("shape", ""),
            form.get("q", ""),
            cast("Column", form["sort"]) if form.get("sort") in COLUMNS else "",
            "desc" in form,
        )
    )
    one = form.get("one")
    picked = [one] if one else [name.removeprefix(PICK) for name in form if name.startswith(PICK)]
    answers = await asyncio.gather(
        *(_cancelled(visit, key, form.get("key", "")) for key in picked[:SHOWN]), return_exceptions=True
    )
    refused = dict[str, ApiError]()
    for key, answer in zip(picked, answers, strict=False):
        if isinstance(answer, ApiError):
            refused[key] = answer
        elif isinstance(answer, BaseException):
            raise answer
    if picked and not refused:
        return visit.go("/requests", **_address(wanted), cancelled=len(picked))
    data = _data(visit, wanted) | {"refused": refused, "cancelled": len(picked) - len(refused)}
    if not picked:
        data["refused"] = {"": bad_parameters("pick at least one request")}
    return visit.page("user/request_list.html", HTTPStatus.CONFLICT, **data)


async def _cancelled(visit: Visit, key: str, form_key: str) -> None:
    """One of several: with its own request id and idempotency key, by which the writer tells changes apart."""
    origin = REQUEST_ORIGIN.get()
    idempotency = ""
    if origin is not None:
        id_ = hashlib.sha256(f"{origin.id}\n{key}".encode()).hexdigest()[:32]
        REQUEST_ORIGIN.set(RequestOrigin(id_, origin.print))
    if form_key:
        idempotency = hashlib.sha256(f"{form_key}\n{key}".encode()).hexdigest()
    caller, parts = visit.caller, visit.parts
    again = await naming_of(caller, parts, idempotency)
    await cancel_gpr(visit.view, caller, parts, again, gpr_id=key)
