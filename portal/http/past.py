"""`?at=`: the view of a past state in place of the newest one, for paths that read. The rights are those of now."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request

from portal.http.context import Asking, Looking, Of, Parts
from portal.views.view import View

At = Annotated[
    str,
    Query(
        max_length=80,
        description="The state of then: a commit of the status branch (`EGS-Status-Commit`), an instant, or how long "
        "ago, such as `2h`. Empty: now.",
        examples=["2026-11-21T08:00:00Z"],
    ),
]


async def view_at(request: Request, newest: View, parts: Parts, at: str) -> View:
    """The view of then, which the answer's headers name; the newest one if `at` is empty. ApiError 410 or 422."""
    if not at:
        return newest
    view = await parts.costly.answer(parts.past.at, at, newest, parts.now())
    request.state.view = view
    return view


async def _then(request: Request, newest: Looking, _: Asking, parts: Of, at: At = "") -> View:
    """Only for known callers: reading a past state is costly."""
    return await view_at(request, newest, parts, at)


Then = Annotated[View, Depends(_then)]
