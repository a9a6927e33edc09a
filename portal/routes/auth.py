"""Logging in: with an API key, with an ID token (`egs login`), or in a browser through the identity provider."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import Field, model_validator

from portal.http.below_prefix import prefix_of
from portal.http.context import Asking, Envelope, Looking, Of, Parts, Wire, ok, optional
from portal.http.errors import ApiError
from portal.identity import oidc
from portal.identity.callers import Grant, rights_of
from portal.identity.logins import Logins, address_of, caller_in, session_by_key, session_by_login
from portal.identity.oidc import Returned
from portal.identity.oidc_provider import Provider
from portal.identity.session_cookies import forget_session, set_login, set_session
from portal.identity.sessions import issue, ticket
from portal.openapi.refusals import refusals

router = APIRouter(prefix="/auth", tags=["auth"])
TICKET_LIFE = timedelta(minutes=1)
"""Enough for a browser to open."""


class Presented(Wire):
    """Credentials: exactly one of the two."""

    api_key: str | None = optional(
        "Text of an API key.", max_length=1000, examples=["5067bd55-1aef-4c84-8987-3e966e917f07"]
    )
    id_token: str | None = optional(
        "ID token of the identity provider, for the client that `auth/config` names.", max_length=20_000
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.api_key is None) == (self.id_token is None):
            raise ValueError("give exactly one of apiKey and idToken")
        return self


class Right(Wire):
    """A role, and the workspaces where it holds."""

    role: Literal["Owner", "Editor", "Viewer"]
    workspaces: Sequence[str] | None = Field(description="Absent: everywhere.")


class Opened(Wire):
    """An open session."""

    token: str = Field(description="Send it as `Authorization: Bearer …`; every replica accepts it.")
    expires_at: datetime
    email: str
    name: str
    role: Literal["Owner", "Editor", "Viewer"] | None = Field(
        description="The strongest role in any workspace."
    )
    workspaces: Sequence[str] | None = Field(description="Visible workspaces; absent: all.")


class Myself(Wire):
    """The caller."""

    email: str
    name: str
    is_admin: bool
    grants: Sequence[Right] = Field(description="Their roles; each workspace is in one of them.")
    workspaces: Sequence[str] | None = Field(description="Visible workspaces; absent: all.")
    via: str = Field(description="`key NAME`, or `login`.")
    expires_at: datetime | None = optional("When it expires; absent: never.")


class Ticket(Wire):
    """A link that opens the portal for the caller."""

    url: str = Field(description="Open it in a browser before it ends; keep it secret until then.")
    expires_at: datetime


class LoginConfig(Wire):
    """How a program logs a person in; without an issuer only API keys work."""

    issuer: str | None = None
    client_id: str | None = None
    scopes: str | None = None


class LoggedOut(Wire):
    """The last step of logging out."""

    end_session_url: str | None = optional(
        "Where the browser also ends its session at the identity provider."
    )


@router.post(
    "",
    response_model=Envelope[Opened],
    responses=refusals(400, 422, "ApiKeyInvalid", "LoginFailed", "NoIdentityProvider"),
    summary="Open a session",
)
def open_session(presented: Presented, request: Request, view: Looking, parts: Of) -> Envelope[Opened]:
    """With an API key or an ID token. A session lasts an hour, or less if its key expires sooner."""
    logins, now = parts.logins, parts.now()
    where = address_of(request)
    try:
        if presented.api_key is not None:
            session = session_by_key(view, presented.api_key, now, logins.session_life)
        else:
            provider = provider_of(logins)
            logins.failures.check(where, now)  # before the provider is asked anything
            shown = oidc.verified(provider, presented.id_token or "", now)
            session = session_by_login(view, shown, now, logins.session_life, is_handed=True)
    except ApiError as error:
        if error.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED):
            logins.failures.take(where, now)
        raise
    caller = caller_in(session, view, now)
    rights = rights_of(caller)
    return ok(
        Opened(
            token=issue(logins.signer, session),
            expires_at=session.expires,
            email=caller.email,
            name=caller.name,
            role=rights[0].role if rights else None,
            workspaces=_sorted(caller.sees),
        )
    )


@router.get("", response_model=Envelope[Myself], responses=refusals(), summary="Who am I")
async def who_am_i(caller: Asking) -> Envelope[Myself]:
    """The caller with the rights that manifests, key and groups give now."""
    return ok(
        Myself(
            email=caller.email,
            name=caller.name,
            is_admin=caller.is_admin,
            grants=[_right(grant) for grant in rights_of(caller)],
            workspaces=_sorted(caller.sees),
            via=f"key {caller.key}" if caller.key else "login",
            expires_at=caller.expires,
        )
    )


def _right(grant: Grant) -> Right:
    return Right(role=grant.role, workspaces=_sorted(grant.slices))


def _sorted(slices: frozenset[str] | None) -> list[str] | None:
    return None if slices is None else sorted(slices)


@router.post(
    "/ticket",
    response_model=Envelope[Ticket],
    responses=refusals("CrossSite"),
    summary="A link that logs the caller in",
)
def make_ticket(request: Request, view: Looking, caller: Asking, parts: Of) -> Envelope[Ticket]:  # noqa: ARG001
    """For `egs portal`: the page opens without typing a key. The link lives for a minute."""
    logins, until = parts.logins, parts.now() + TICKET_LIFE
    text = ticket(logins.signer, logins.session(request, view), until)
    own = logins.origin or f"{str(request.base_url).rstrip('/')}{prefix_of(request)}"
    return ok(Ticket(url=f"{own}/login/with?ticket={text}", expires_at=until))


@router.get("/config", response_model=Envelope[LoginConfig], summary="How programs log a person in")
async def config(parts: Of) -> Envelope[LoginConfig]:
    """The identity provider for `egs login`; without one the fields are absent."""
    provider = parts.logins.provider
    if provider is None:
        return ok(LoginConfig())
    told = provider.settings
    return ok(
        LoginConfig(issuer=told.issuer, client_id=told.cli_client_id or told.client_id, scopes=told.scopes)
    )


def _sent_on(status: int, where: str) -> dict[int | str, dict[str, Any]]:
    """`responses` of a path that redirects a browser."""
    text = {"schema": {"type": "string"}}
    headers = {
        "Location": {"description": where, **text},
        "Set-Cookie": {"description": "The login under way, or the opened session.", **text},
    }
    return {status: {"description": where, "headers": headers}}


Next = Annotated[
    str, Query(alias="next", max_length=1000, description="Path of the portal to open afterwards.")
]


@router.get(
    "/login",
    status_code=302,
    response_class=RedirectResponse,
    responses={**refusals("NoIdentityProvider"), **_sent_on(302, "To the identity provider.")},
)
def login(request: Request, parts: Of, next_: Next = "/") -> Response:
    """Redirect the browser to the identity provider."""
    logins, now = parts.logins, parts.now()
    provider = provider_of(logins)
    logins.visits.take(address_of(request), now)
    logins.failures.check(address_of(request), now)
    begun = oidc.begin(provider, logins.signer, _redirect(request, logins), own_path(next_), now)
    answer = RedirectResponse(begun.url, HTTPStatus.FOUND)
    set_login(answer, logins, begun.cookie)
    return answer


Brought = Annotated[str, Query(max_length=5000, description="As sent by the identity provider.")]


@router.get(
    "/callback",
    status_code=303,
    response_class=RedirectResponse,
    responses={
        **refusals("NoIdentityProvider", "LoginFailed", 422),
        **_sent_on(303, "To `next` of the login, with a session."),
    },
)
def callback(
    request: Request, view: Looking, parts: Of, state: Brought = "", code: Brought = "", error: Brought = ""
) -> Response:
    """Where the identity provider sends the browser back to."""
    logins, now, where = parts.logins, parts.now(), address_of(request)
    provider = provider_of(logins)
    logins.failures.check(where, now)  # before the provider is asked about a made-up code
    returned = Returned(request.cookies.get(logins.login_cookie, ""), state, code, error)
    try:
        shown, next_ = oidc.finish(provider, logins.signer, _redirect(request, logins), returned, now)
    except ApiError as refusal:
        if refusal.status is HTTPStatus.UNAUTHORIZED:
            logins.failures.take(where, now)
        raise
    answer = RedirectResponse(prefix_of(request) + next_, HTTPStatus.SEE_OTHER)
    set_session(answer, logins, session_by_login(view, shown, now, logins.session_life))
    set_login(answer, logins, "")
    return answer


@router.post("/logout", response_model=Envelope[LoggedOut], responses=refusals("CrossSite"))
def logout(request: Request, response: Response, parts: Of) -> Envelope[LoggedOut]:
    """The browser forgets its session. A copied token would stay valid until its hour is over."""
    logins = parts.logins
    logins.visits.take(address_of(request), parts.now())  # it may ask the provider for its logout page
    if logins.cookie in request.cookies:
        logins.check_origin(request)
    forget_session(response, logins)
    return ok(LoggedOut(end_session_url=end_of_session(logins.provider, parts)))


def end_of_session(provider: Provider | None, parts: Parts) -> str | None:
    """Where a browser also ends its session at the identity provider; None: nowhere."""
    if provider is None:
        return None
    try:
        address = provider.metadata(parts.now()).end_session
    except ApiError:  # no answer; the session here has ended all the same
        return None
    return f"{address}?client_id={quote(provider.settings.client_id)}" if address else None


def provider_of(logins: Logins) -> Provider:
    """The identity provider; ApiError 404 if none is configured."""
    if logins.provider is None:
        text = "no identity provider is configured here; log in with an API key"
        raise ApiError(HTTPStatus.NOT_FOUND, "NoIdentityProvider", text)
    return logins.provider


def own_path(path: str) -> str:
    """That path if it stays on this portal, else `/`: a login link must not redirect elsewhere."""
    stays = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path if stays else "/"


def _redirect(request: Request, logins: Logins) -> str:
    own = logins.origin or str(request.base_url).rstrip("/")
    return f"{own}/api/v1/auth/callback"
