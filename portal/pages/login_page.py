"""`/login` and `/logout`: by API key or through the identity provider, without a script."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from portal.http.context import Looking, Of, Parts
from portal.http.errors import ApiError
from portal.identity.logins import address_of, caller_in, session_by_key
from portal.identity.session_cookies import forget_session, set_session
from portal.identity.sessions import ends
from portal.pages.forms import Sent
from portal.pages.frame import bare_frame
from portal.pages.html import link
from portal.pages.visit import rendered
from portal.routes.auth import end_of_session, own_path

router = APIRouter(include_in_schema=False)


@router.get("/login")
def login_page(
    request: Request,
    parts: Of,
    next_: Annotated[str, Query(alias="next", max_length=1000)] = "/",
    ended: bool = False,
) -> Response:
    """The form for an API key, and the way to the identity provider where there is one."""
    return _form(request, parts, own_path(next_), ended=ended)


def _form(
    request: Request, parts: Parts, next_: str, error: ApiError | None = None, *, ended: bool = False
) -> Response:
    provider = parts.logins.provider
    told = {
        "next": next_,
        "has_provider": provider is not None,
        "ended": ended,
        "provider_end": end_of_session(provider, parts) if ended else None,
        "error": error,
    }
    status = HTTPStatus.OK if error is None else error.status
    return rendered(request, bare_frame(request), "login.html", status, told)


@router.post("/login")
def log_in(request: Request, form: Sent, view: Looking, parts: Of) -> Response:
    """With the key of the form; the next page is the one that was wanted."""
    logins, now, where = parts.logins, parts.now(), address_of(request)
    logins.check_origin(request)  # a page of another site must not log a visitor in
    next_ = own_path(form.get("next", "/"))
    try:
        logins.failures.check(where, now)
        session = session_by_key(view, form.get("key", ""), now, logins.session_life)
    except ApiError as error:
        if error.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED):
            logins.failures.take(where, now)
        return _form(request, parts, next_, error)
    prefix = bare_frame(request).prefix
    answer = RedirectResponse(prefix + next_, HTTPStatus.SEE_OTHER)
    set_session(answer, logins, session)
    return answer


@router.get("/login/with")
def log_in_with_ticket(
    request: Request,
    view: Looking,
    parts: Of,
    ticket: Annotated[str, Query(max_length=4000)],
    next_: Annotated[str, Query(alias="next", max_length=1000)] = "/",
) -> Response:
    """Where the link of `egs portal` leads: a session without typing a key."""
    logins, now, where = parts.logins, parts.now(), address_of(request)
    logins.failures.check(where, now)
    try:
        found = logins.from_ticket(ticket, now)
        caller_in(found, view, now)  # its key may be revoked since
    except ApiError as error:
        logins.failures.take(where, now)
        return _form(request, parts, own_path(next_), error)
    session = replace(found, expires=ends(now, logins.session_life, found.expires))
    answer = RedirectResponse(bare_frame(request).prefix + own_path(next_), HTTPStatus.SEE_OTHER)
    set_session(answer, logins, session)
    return answer


@router.post("/logout")
def log_out(request: Request, parts: Of) -> Response:
    """The browser forgets its session; the next page links to where the identity provider ends its own."""
    logins = parts.logins
    logins.visits.take(address_of(request), parts.now())
    logins.check_origin(request)
    to = link(bare_frame(request).prefix, "/login", {"ended": "true"})
    answer = RedirectResponse(to, HTTPStatus.SEE_OTHER)
    forget_session(answer, logins)
    return answer
