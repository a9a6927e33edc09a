"""What became of a change: pushed, proposed, accepted for later, or unknown because the server did not answer.

Held by tests/portal/pages/test_outcomes.py: an unknown outcome is never called a failure, and sending the form again
changes something at most once.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import APIRouter, Path
from starlette.responses import Response

from portal.http.context import Changed, changed
from portal.http.errors import ApiError
from portal.pages.visit import Visit, Visiting

router = APIRouter(include_in_schema=False)

UNKNOWN, REUSED = "OutcomeUnknown", "IdempotencyKeyReused"


def after(visit: Visit, change: Changed, path: str, doing: str) -> Response:
    """Of a new request: its page if it is on main, else a page that says where it is. `doing`: as `File vision/x`."""
    if change.way == "pushed":
        return visit.landed(path, change, did="file")
    follow = (change.url or "").rpartition("/")[2] if change.way == "accepted" else ""
    admins = [person.email for person in visit.view.wanted.project.admins]
    return visit.page(
        "outcome.html",
        HTTPStatus.ACCEPTED,
        change=change,
        follow=follow,
        doing=doing,
        path=path,
        admins=admins,
    )


async def elsewhere(visit: Visit, error: ApiError, doing: str, *others: HTTPStatus) -> Response | None:
    """The page of a change whose outcome is unknown; None: the form's own page shows the error.

    Raises the error where the caller must log in, or its status is among `others`: it has a page of its own.
    """
    if error.reason == UNKNOWN:
        return await _unknown(visit, error, doing)
    if error.status in (HTTPStatus.UNAUTHORIZED, *others):
        raise error
    return None


async def _unknown(visit: Visit, error: ApiError, doing: str) -> Response:
    """Asks what to do; the same form again has the same key, so that it changes something once."""
    fields = parse_qsl((await visit.request.body()).decode(), keep_blank_values=True)
    id_ = str((error.data or {}).get("id", ""))
    return visit.page(
        "outcome_unknown.html",
        error.status,
        error=error,
        id=id_,
        fields=fields,
        doing=doing,
        path=visit.request.scope["path"],
    )


@router.get("/writes/{id}")
async def followed_page(visit: Visiting, id: Annotated[str, Path(pattern="^[0-9a-f]{32}$")]) -> Response:
    """Where the change with that request id is now; a refusal is shown as such."""
    landed = await asyncio.to_thread(visit.parts.writer.follow, id, visit.caller)
    change = None if landed is None else changed(landed)
    status = HTTPStatus.NOT_FOUND if change is None else HTTPStatus.OK
    return visit.page("write.html", status, change=change, id=id)
