"""Refusals as pages: the API's sentence, its reason and the request id. Without a login: the login page."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from portal.http.context import parts_of
from portal.http.errors import ApiError
from portal.http.headers import REQUEST_ORIGIN
from portal.pages.frame import Frame, bare_frame, frame_of
from portal.pages.html import link
from portal.pages.visit import rendered

_OF_PROGRAMS = ("/api/", "/hooks/", "/healthz", "/readyz", "/openapi.json", "/static/")


def is_page(request: Request) -> bool:
    """Whether a browser asks for a page, and not a program for JSON."""
    if request.scope["path"].startswith(_OF_PROGRAMS):
        return False
    return "HX-Request" in request.headers or "text/html" in request.headers.get("Accept", "")


def error_page(request: Request, error: ApiError) -> Response:
    """A page that says what happened and what to do."""
    is_part = "HX-Request" in request.headers
    if error.status is HTTPStatus.UNAUTHORIZED and request.method == "GET" and not is_part:
        here = request.scope["path"] + (f"?{request.url.query}" if request.url.query else "")
        frame = bare_frame(request)
        return RedirectResponse(link(frame.prefix, "/login", {"next": here}), HTTPStatus.SEE_OTHER)
    origin = REQUEST_ORIGIN.get()
    told = {"error": error, "id": "" if origin is None else origin.id}
    answer = rendered(
        request, _frame(request), "error.html", error.status, {"now": parts_of(request).now(), **told}
    )
    for name, value in (error.headers or {}).items():
        answer.headers[name] = value
    return answer


def _frame(request: Request) -> Frame:
    """With the way to other pages, for a caller who is known."""
    parts = parts_of(request)
    try:
        view = parts.reads.view()
        if parts.logins.is_known(request, view):
            return frame_of(request, parts, view, parts.logins.recognise(request, view))
    except ApiError:
        pass  # nothing was read yet, or the form came from elsewhere
    return bare_frame(request)
