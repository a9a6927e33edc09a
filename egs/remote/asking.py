"""How commands call the server; every call goes through here.

A key or token is sent with every call as it is, so one command is one request.

Held by tests/egs/test_remote_asking.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from egs.commands import output
from egs.commands.errors import broken, not_allowed, of
from egs.connection import Connection, Patience, Token
from egs.exceptions import EgsApplicationException
from egs.modes import SERVER, Target
from egs.sessions import AuthenticatedSession

if TYPE_CHECKING:
    from egs.calling import Ask, Reply
    from egs.sse import Message
    from egs.steps import Feed

API = "/api/v1"
_ROWS = 200
"""Rows of one window: as many as the server gives."""
_TRIES = 5
"""How often a long answer is begun before a fleet that changes is told."""
_MOST = 1000
"""Items of one page: as many as the server gives."""


def target() -> Target:
    """The chosen server. Raises Said: none is chosen."""
    found = SERVER.get()
    if found is None:
        raise not_allowed("no server is named; `egs login SERVER` does that, or EGS_SERVER", "NoServer")
    return found


def get(path: str, params: Mapping[str, Any] | None = None) -> Any:
    """`data` of a read; parameters that are None or "" are not sent. Raises Said."""
    return _shown(_asked("GET", path, params=params))


def send(method: str, path: str, body: Mapping[str, Any]) -> Any:
    """`data` of a write, under an idempotency key of its own; None is not sent. Raises Said."""
    return _shown(told(method, path, body))


def told(method: str, path: str, body: Mapping[str, Any]) -> Reply:
    """The same with the server's message, which is not shown. Raises Said."""
    return _asked(method, path, body={name: value for name, value in body.items() if value is not None})


def send_as_is(method: str, path: str, body: Mapping[str, Any]) -> Any:
    """The same, but None is sent as null: for writes in which null has a meaning."""
    return _shown(_asked(method, path, body=dict(body)))


def pages(
    path: str, params: Mapping[str, Any] | None = None, most: int | None = None
) -> list[dict[str, Any]]:
    """The items of all pages, at most `most`. Raises Said."""
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        limit = _MOST if most is None else min(_MOST, most - len(found))
        page = get(path, {**(params or {}), "limit": limit, "cursor": cursor})
        found += page["items"]
        cursor = page.get("next")
        if not cursor or (most is not None and len(found) >= most):
            return found


def windows(path: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a path that gives windows of rows, with the rows of all of one state. Raises Said."""
    for _ in range(_TRIES):
        found: dict[str, Any] = get(path, {**params, "rows": _ROWS})
        while len(found["rows"]) < found["total"]:
            more = get(path, {**params, "rows": _ROWS, "first": len(found["rows"])})
            if more["id"] != found["id"] or not more["rows"]:
                break
            found["rows"] += more["rows"]
            found["requests"] |= more["requests"]
        else:
            return found
    raise broken("the fleet changes while it is read; ask for less, for example with --cluster")


def session_of(server: Target) -> AuthenticatedSession:
    """The SDK's session with that server. Raises Said."""
    try:
        connection = Connection(server.server, {}, Patience())
    except EgsApplicationException as error:
        raise of(error, _login(server)) from error
    credential = server.api_key or server.token
    if not credential:
        raise not_allowed(
            f"there is no key for {connection.address}: set EGS_API_KEY, or run `{_login(server)}`",
            "Unauthenticated",
        )
    connection.token = Token(credential, math.inf)
    return AuthenticatedSession(server.server, connection=connection)


def heard(path: str, params: Mapping[str, Any]) -> Iterator[Message]:
    """Server-sent events of a path, reopened when they break, until the caller stops. Raises Said."""
    from egs.calling import Ask
    from egs.transport import feed

    server = target()
    ask = Ask("GET", f"{API}/{path}", _given(params))
    try:
        yield from feed(_messages(session_of(server), ask))
    except EgsApplicationException as error:
        raise of(error, _login(server)) from error


def _messages(session: AuthenticatedSession, ask: Ask) -> Feed[Message]:
    from egs.asking.following import Stream
    from egs.steps import Give

    stream = Stream(session.connection, ask)
    while True:
        message = yield from stream.message()
        yield Give(message)


def _asked(
    method: str, path: str, *, params: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None
) -> Reply:
    from egs.calling import Ask, asked
    from egs.transport import run

    server = target()
    session = session_of(server)
    try:
        return run(asked(session, Ask(method, f"{API}/{path}", _given(params or {}), body)))
    except EgsApplicationException as error:
        raise of(error, _login(server)) from error
    finally:
        session.close()


def _shown(found: Reply) -> Any:
    """Its data; the server's message goes to stderr."""
    if found.message:
        output.note(found.message)
    return found.data


def _given(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value not in (None, "")}


def _login(server: Target) -> str:
    return f"egs login {server.server}" + (f" --context {server.context}" if server.context else "")
