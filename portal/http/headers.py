"""Middleware around every answer: request id, size limits of bodies, entity tags, and security headers.

Answers to GET name their commits (`EGS-Commit`, `EGS-Status-Commit`) and the seconds since the remote last
answered (`Age`); a caller that has the same answer already (`If-None-Match`) gets 304 without a body. An internal
error is logged; the caller gets 500 with the request id only.

Held by tests/portal/http/test_app.py and tests/portal/http/test_headers.py.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from http import HTTPStatus
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from portal.http.context import ErrorBody, ErrorEnvelope, Parts
from portal.http.errors import ApiError, unavailable
from portal.http.etags import STANDS, Stands
from portal.views.view import View

log = logging.getLogger(__name__)

MOST_BODY = 1 << 20
"""Bytes of a body. The largest document has 256 KiB."""
MOST_OF_STRANGERS = 32 << 10
"""Limit for an unauthenticated body, which is parsed before the caller is known; an ID token fits in it."""
COUNTED = 2 << 10
"""This many bytes of such a body count as one more request of its address."""
PROBES = frozenset({"/healthz", "/readyz"})
"""Asked by kubelets and load balancers; their bodies are not parsed, and they are never refused."""
SIGNED = frozenset({"/hooks/push"})
"""Paths whose body is verified by its signature before it is parsed."""
MOST_BODIES = 64 << 20
"""Bytes of bodies held at a time, over all connections."""
BODY_S = 15.0
"""Longest time in which a body must arrive."""
_SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"vary", b"Authorization, Cookie"),
)
"""Headers of every answer, unless its path sets its own."""


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """What the writer needs to know of the HTTP request behind a change."""

    id: str
    """Request id: in `X-Request-Id` of the answer, and in the commit's trailer."""
    print: str = ""
    """Digest of method, path and body: one idempotency key must not come with two of them."""


Refusal = Callable[[Request, ApiError], Response]
"""How a refusal is answered: as JSON, or as a page."""
REQUEST_ORIGIN: ContextVar[RequestOrigin | None] = ContextVar("request_origin", default=None)
"""The HTTP request being served."""


def error_answer(error: ApiError) -> Response:
    """The envelope of a refusal."""
    body = ErrorEnvelope(
        status_code=error.status.value,
        status=error.status.phrase,
        message=str(error),
        error=ErrorBody(
            error_key=error.reason, message=str(error), data=None if error.data is None else dict(error.data)
        ),
    )
    text = body.model_dump_json(by_alias=True)
    return Response(text, error.status.value, dict(error.headers or {}), "application/json")


def _as_json(_: Request, error: ApiError) -> Response:
    return error_answer(error)


class Around:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, parts: Parts, refusal: Refusal = _as_json) -> None:
        self._app, self._parts, self._refusal, self._held = app, parts, refusal, _Held()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer, body = _Answer(scope, self._parts, send, uuid4().hex), _Body(self._held)
        try:
            most = self._admitted(scope)
            if not await body.read(scope, receive, most):
                return
            if most == MOST_OF_STRANGERS and len(body.whole) >= COUNTED:
                self._parts.logins.count_stranger(Request(scope), len(body.whole) // COUNTED)
            REQUEST_ORIGIN.set(RequestOrigin(answer.id, _print(scope, body.whole)))
            await self._app(scope, _again(body.whole, receive), answer.send)
        except ApiError as error:
            await self._refusal(Request(scope), error)(scope, receive, answer.send)
        except Exception:
            log.exception("request failed id=%s path=%s; please report it", answer.id, scope["path"])
            if answer.is_begun:
                raise
            text = f"an error in the server; its log has details under the request id {answer.id}"
            broken = ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", text)
            await self._refusal(Request(scope), broken)(scope, receive, answer.send)
        finally:
            body.drop()

    def _admitted(self, scope: Scope) -> int:
        """Size limit for its body. ApiError 429: too many unauthenticated requests from this address."""
        request, logins = Request(scope), self._parts.logins
        if scope["path"] in PROBES or self._is_known(request):
            return MOST_BODY
        logins.count_stranger(request)
        return MOST_BODY if scope["path"] in SIGNED else MOST_OF_STRANGERS

    def _is_known(self, request: Request) -> bool:
        try:
            return self._parts.logins.is_known(request, self._parts.reads.view())
        except ApiError:  # nothing was read yet, so no caller can be known
            return False


@dataclass(slots=True)
class _Held:
    """Bytes of all bodies held now; counted by one event loop."""

    count: int = 0


class _Body:
    """The body of one request, counted in the total until it is dropped."""

    def __init__(self, held: _Held) -> None:
        self._held, self._count = held, 0
        self.whole = b""

    async def read(self, scope: Scope, receive: Receive, most: int) -> bool:
        """Read all of it; False: the client left. ApiError 413: too large, 408: too slow, 503: too many bodies."""
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return True
        length = Headers(scope=scope).get("content-length", "")
        if length.isdigit() and int(length) > most:
            raise _too_large(most)
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(BODY_S):
                while (message := await receive())["type"] != "http.disconnect":
                    parts.append(message.get("body", b""))
                    self._add(len(parts[-1]), most)
                    if not message.get("more_body", False):
                        self.whole = b"".join(parts)
                        return True
        except TimeoutError as error:
            text = f"the body did not arrive within {BODY_S:g} s"
            raise ApiError(HTTPStatus.REQUEST_TIMEOUT, "BodyTooSlow", text) from error
        return False

    def _add(self, count: int, most: int) -> None:
        self._count += count
        self._held.count += count
        if self._count > most:
            raise _too_large(most)
        if self._held.count > MOST_BODIES:
            raise unavailable("too many request bodies are arriving; try again later")

    def drop(self) -> None:
        self._held.count -= self._count
        self._count = 0


def _too_large(most: int) -> ApiError:
    text = f"a body has at most {most} bytes"
    if most == MOST_OF_STRANGERS:
        text += f" from an unknown caller, and {MOST_BODY} with an API key or a session"
    return ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "TooLarge", text)


def _again(body: bytes, receive: Receive) -> Receive:
    """Replays the body that was read already, then continues with `receive`."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return left.pop() if left else await receive()

    return next_message


def _print(scope: Scope, body: bytes) -> str:
    about = f"{scope['method']} {scope['path']}?".encode() + scope.get("query_string", b"")
    return hashlib.sha256(about + b"\n" + body).hexdigest()[:16]


class _Answer:
    def __init__(self, scope: Scope, parts: Parts, send: Send, id_: str) -> None:
        self._scope, self._parts, self._send = scope, parts, send
        self.id = id_
        self.is_begun = False
        self._stands = Stands()
        STANDS.set(self._stands)
        self._held: Message | None = None  # the start message, held until the body is complete
        self._body: list[bytes] = []

    async def send(self, message: Message) -> None:
        """Pass it on; an answer that gets an entity tag waits until it is complete."""
        if message["type"] == "http.response.start":
            self._dress(message)
            if self._is_tagged(message):
                self._held = message
                return
        elif self._held is not None:
            self._body.append(message.get("body", b""))
            if not message.get("more_body", False):
                await self._send_tagged(self._held, b"".join(self._body))
            return
        self.is_begun = True
        await self._send(message)

    def _dress(self, start: Message) -> None:
        given = {name.lower() for name, _ in start["headers"]}
        own = [(b"x-request-id", self.id.encode()), *_SECURITY]
        if b"cache-control" not in given:
            own.append((b"cache-control", b"private, no-cache" if self._is_reading else b"no-store"))
        view = self._scope.get("state", {}).get("view")
        if isinstance(view, View) and self._is_reading:
            own.append((b"egs-commit", view.main.encode()))
            own.append((b"egs-status-commit", view.status.encode()))
            own.append((b"age", b"%d" % max(0, int(self._parts.reads.age_s))))
        start["headers"] = [*start["headers"], *((name, value) for name, value in own if name not in given)]

    @property
    def _is_reading(self) -> bool:
        return self._scope["method"] in ("GET", "HEAD")

    def _is_tagged(self, start: Message) -> bool:
        kind = Headers(raw=start["headers"]).get("content-type", "")
        return self._is_reading and start["status"] == HTTPStatus.OK and kind.startswith("application/json")

    async def _send_tagged(self, start: Message, body: bytes) -> None:
        digest = self._stands.digest
        tag = f'W/"{digest}"' if digest else f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = MutableHeaders(scope=start)
        headers["ETag"] = tag
        if has_tag(Headers(scope=self._scope).get("if-none-match", ""), tag):
            start["status"], body = HTTPStatus.NOT_MODIFIED.value, b""
            del headers["content-length"]
            del headers["content-type"]
        self.is_begun = True
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def has_tag(header: str, tag: str) -> bool:
    """Whether `If-None-Match` names that tag, weak or strong, or `*`."""
    named = [one.strip().removeprefix("W/") for one in header.split(",")]
    return tag.removeprefix("W/") in named or named == ["*"]
