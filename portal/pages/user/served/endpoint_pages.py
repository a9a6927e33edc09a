"""`/endpoints`: served models, how the traffic of each is shared, and other weights by a click.

Held by tests/portal/pages/test_endpoint_pages.py.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from portal.http.context import Changed, Envelope
from portal.http.errors import ApiError, bad_parameters
from portal.pages.forms import Sent
from portal.pages.outcome_page import elsewhere
from portal.pages.visit import Visit, Visiting
from portal.routes.serving.endpoints import Promotion, Weights, promote, rollback
from portal.views import table_rows
from portal.views.file_history import file_history
from portal.writes.replayed_answers import naming_of
from schemas.status.endpoint_status import RolloutStatus

router = APIRouter(include_in_schema=False)

Row = dict[str, Any]


@router.get("/endpoints")
def endpoint_list(visit: Visiting) -> Response:
    """Those of the workspace in view, or of all that the caller sees."""
    return visit.page(
        "user/endpoints.html", rows=table_rows.endpoints(visit.view, visit.caller, visit.workspace)
    )


@router.get("/endpoints/{slice_}/{name}")
def endpoint_page(visit: Visiting, slice_: str, name: str) -> Response:
    """One of them: its versions, objects and events."""
    return _page(visit, f"{slice_}/{name}")


def _page(visit: Visit, key: str, error: ApiError | None = None) -> Response:
    view, caller = visit.view, visit.caller
    row = table_rows.described_endpoint(view, caller, key)
    status = view.facts.endpoints.get(key)
    may_change = key in view.wanted.endpoints and row["slice"] in caller.actor.member_of
    answer = visit.page(
        "user/endpoint.html",
        row=row,
        key=key,
        before=None if status is None else _shares(status.rollout),
        may_change=may_change,
        history=file_history(visit.parts.store, view.main, row["file"]),
        ways=_ways(key),
        error=error,
    )
    if error is not None:
        answer.status_code = error.status
    return answer


def _shares(rollout: RolloutStatus) -> str:
    """The weights to which it can be rolled back; empty: there are none."""
    before = rollout.before or {}
    return ", ".join(f"{name} {weight} %" for name, weight in sorted(before.items()) if weight)


def _ways(key: str) -> list[tuple[str, str]]:
    """The same for other doors."""
    python = f"import egs\n\nendpoint = egs.endpoint({key!r})\nprint(endpoint.status, endpoint.versions)\n"
    return [("CLI", f"egs describe endpoint {key}\n"), ("Python", python)]


@router.post("/endpoints/{slice_}/{name}/weights")
async def change_weights(visit: Visiting, slice_: str, name: str, form: Sent) -> Response:
    """A version gets a share, or the weights from before come back; a refusal is shown on the page."""
    key = f"{slice_}/{name}"
    try:
        change = await _changed(visit, slice_, name, form)
    except ApiError as error:
        if (
            page := await elsewhere(visit, error, f"Change the weights of {key}", HTTPStatus.NOT_FOUND)
        ) is not None:
            return page
        return await run_in_threadpool(_page, visit, key, error)
    return visit.landed(f"/endpoints/{key}", change, did="weights")


async def _changed(visit: Visit, slice_: str, name: str, form: Sent) -> Changed:
    view, caller, parts = visit.view, visit.caller, visit.parts
    again = await naming_of(caller, parts, form.get("key", ""))
    done: Envelope[Weights]
    if form.get("do") == "rollback":
        done = await rollback(slice_, name, view, caller, parts, again)
    else:
        share = form.get("weight", "")
        if not (share.isascii() and share.isdigit() and 1 <= int(share[:4]) <= 100):
            raise bad_parameters("weight: give a whole number from 1 to 100")
        ask = Promotion(version=form.get("version", "")[:63], weight=int(share[:4]))
        done = await promote(slice_, name, ask, view, caller, parts, again)
    return done.data.change
