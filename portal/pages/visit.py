"""A visit: one request for a page by a known caller, and how it is answered."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from portal.http.context import Changed, Parts, caller_of, parts_of, view_of
from portal.http.errors import conflict
from portal.http.past import At, view_at
from portal.identity.callers import Caller
from portal.identity.logins import READING
from portal.identity.redaction import Redactor
from portal.identity.rights import check_admin
from portal.pages.frame import WORKSPACE, Frame, frame_of
from portal.pages.html import asset, environment, link
from portal.pages.landed_change import landed_of, query_of
from portal.pages.static_files import CSP
from portal.views.view import View
from reconciler.sources.forge_choice import home_page

_SMALL = 1000
"""Bytes below which compressing saves no packet."""
_HEADERS = {
    "Content-Security-Policy": CSP,
    # A form's origin is checked; without a referrer a browser sends `Origin: null` with a plain form.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
    "Vary": "Cookie, Authorization, HX-Request, Accept-Encoding",
}


@dataclass(frozen=True, slots=True)
class Visit:
    """A request for a page."""

    request: Request
    parts: Parts
    view: View
    caller: Caller

    @property
    def now(self) -> datetime:
        return self.view.clock(self.parts.now())

    @property
    def redactor(self) -> Redactor:
        return Redactor(self.caller, self.view)

    @property
    def frame(self) -> Frame:
        return frame_of(self.request, self.parts, self.view, self.caller)

    @property
    def workspace(self) -> str:
        """The workspace in view; empty: all of the caller's."""
        return self.frame.workspace

    @property
    def is_part(self) -> bool:
        """Whether a script asks for a part of a page that is open already."""
        return "HX-Request" in self.request.headers

    def page(self, template: str, status: HTTPStatus = HTTPStatus.OK, **data: Any) -> Response:
        """The page; only its main part if a script of ours asks."""
        frame = self.frame
        forge = self.parts.settings.base.forge
        home = "" if forge is None else home_page(forge)
        shared = {"now": self.now, "landed": landed_of(self.request.query_params, home)}
        answer = rendered(self.request, frame, template, status, {**shared, **data})
        if "workspace" in self.request.query_params:
            answer.set_cookie(WORKSPACE, frame.workspace, max_age=31_536_000, path="/", samesite="lax")
        return answer

    def link(self, path: str, /, **query: Any) -> str:
        return linked(self.frame, path, query)

    def go(self, path: str, /, **query: Any) -> Response:
        """After a change: the browser opens that page with a GET, so that reloading changes nothing."""
        return RedirectResponse(self.link(path, **query), HTTPStatus.SEE_OTHER)

    def landed(self, path: str, change: Changed, /, **query: Any) -> Response:
        """The same, and that page says where the change is: `ui.landed(landed)`."""
        return self.go(path, **query, **query_of(change))


def linked(frame: Frame, path: str, query: Mapping[str, Any]) -> str:
    """A path of the portal; from the page of a past state it leads to the same state."""
    return link(frame.prefix, path, {"at": frame.at, **query})


def rendered(
    request: Request, frame: Frame, template: str, status: HTTPStatus, data: Mapping[str, Any]
) -> Response:
    """The HTML of a template: of its block `main` alone for htmx, which keeps the rest of the page."""
    found = environment().get_template(template)
    shared = {
        "frame": frame,
        "asset": partial(asset, frame.prefix),
        "link": lambda path, /, **query: linked(frame, path, query),
        "request": request,
    }
    context = found.new_context({**shared, **data})
    whole = found.root_render_func(context)
    if "HX-Request" in request.headers:
        next(whole)  # runs the template's imports, which its blocks use
        whole = found.blocks["main"](context)
    text = "".join(whole).encode()
    headers = dict(_HEADERS)
    if (
        len(text) > _SMALL
        and request.method == "GET"
        and "gzip" in request.headers.get("Accept-Encoding", "")
    ):
        # Only answers to GET: none of them has a secret, whose length compressing could give away.
        text = gzip.compress(text, 5, mtime=0)
        headers["Content-Encoding"] = "gzip"
    return Response(text, status, headers, "text/html; charset=utf-8")


async def _visit(
    request: Request,
    view: Annotated[View, Depends(view_of)],
    caller: Annotated[Caller, Depends(caller_of)],
    at: At = "",
) -> Visit:
    parts = parts_of(request)
    if at and request.method not in READING:
        raise conflict(
            "this page shows a past state, in which nothing can be changed; go back to now", "Conflict"
        )
    return Visit(request, parts, await view_at(request, view, parts, at), caller)


Visiting = Annotated[Visit, Depends(_visit)]
"""The visit; ApiError 401 leads to the login page."""


async def _admin_visit(visit: Visiting) -> Visit:
    check_admin(visit.caller, "see pages of the whole fleet")
    return visit


AdminVisiting = Annotated[Visit, Depends(_admin_visit)]
"""A visit by an admin; ApiError 403 for anybody else."""
