"""The one door of the commands to the server: who is asked as whom, and what comes back.

A key or token goes with every call as it is, so that one command is one request.

Held by tests/egs/test_remote_asking.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from egs.commands import output
from egs.commands.errors import not_allowed, of
from egs.connection import Connection, Patience, Token
from egs.exceptions import EgsApplicationException
from egs.modes import SERVER, Target
from egs.sessions import AuthenticatedSession

if TYPE_CHECKING:
    from egs.calling import Ask, Reply
    from egs.sse import Message
    from egs.steps import Feed

API = "/api/v1"
_MOST = 1000
"""Items of one page: as many as the server gives."""


def target() -> Target:
    """The chosen server. Raises Said: none is chosen."""
    found = SERVER.get()
    if found is None:
        raise not_allowed("no server is named; `egs login SERVER` does that, or EGS_SERVER", "NoServer")
    return found


def get(path: str, params: Mapping[str, Any] | None = None) -> Any:
    """`data` of a read; what is None or empty is not sent. Raises Said."""
    return _shown(_asked("GET", path, params=params))


def send(method: str, path: str, body: Mapping[str, Any]) -> Any:
    """`data` of a write, under an idempotency key of its own; what is None is not sent. Raises Said."""
    return _shown(told(method, path, body))


def told(method: str, path: str, body: Mapping[str, Any]) -> Reply:
    """The same with what the server says beside it, which is not shown yet. Raises Said."""
    return _asked(method, path, body={name: value for name, value in body.items() if value is not None})


def send_as_is(method: str, path: str, body: Mapping[str, Any]) -> Any:
    """The same, null and all: for writes in which null means something."""
    return _shown(_asked(method, path, body=dict(body)))


def pages(
    path: str, params: Mapping[str, Any] | None = None, most: int | None = None
) -> list[dict[str, Any]]:
    """The items of every page, at most so many. Raises Said."""
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        limit = _MOST if most is None else min(_MOST, most - len(found))
        page = get(path, {**(params or {}), "limit": limit, "cursor": cursor})
        found += page["items"]
        cursor = page.get("next")
        if not cursor or (most is not None and len(found) >= most):
            return found


def session_of(server: Target) -> AuthenticatedSession:
    """The SDK's session with that server. Raises Said."""
    try:
        connection = Connection(server.server, {}, Patience())
    except EgsApplicationException as error:
        raise of(error, _login(server)) from error
    credential = server.api_key or server.token
    if not credential:
        raise not_allowed(
            f"nothing opens {connection.address}: give EGS_API_KEY, or `{_login(server)}`", "Unauthenticated"
        )
    connection.token = Token(credential, math.inf)
    return AuthenticatedSession(server.server, connection=connection)


def heard(path: str, params: Mapping[str, Any]) -> Iterator[Message]:
    """Server-sent events of a path, reopened where they break off, until the caller stops. Raises Said."""
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
    """Its data; what the server says beside it goes to stderr."""
    if found.message:
        output.note(found.message)
    return found.data


def _given(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value not in (None, "")}


def _login(server: Target) -> str:
    return f"egs login {server.server}" + (f" --context {server.context}" if server.context else "")
