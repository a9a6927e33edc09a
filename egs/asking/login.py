"""Log in: from a key or a token to a session.

Held by tests/egs/test_sdk_sessions.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from egs.calling import API, Ask, data_of, exchange, logged_in
from egs.connection import Connection, Patience, Token
from egs.exceptions import BadParameters
from egs.sessions import AuthenticatedSession, update_global_session
from egs.steps import Script


def authenticate(
    endpoint: str,
    api_key: str | None = None,
    sdk_default: bool | str | None = False,
    access_token: str | bool | None = None,
    *,
    patience: Patience | None = None,
) -> Script[AuthenticatedSession]:
    """Log in to the server at `endpoint`, with an API key, or a token of the server or the identity provider.

    `sdk_default=True` makes the session the default for calls of this process. The third and fourth argument may be
    swapped. `patience` has the timeouts and the number of tries.

    Raises:
        ServerUnreachable: no server answers; `.address` says where.
        ApiKeyInvalid, ApiKeyNotFound, ApiKeyRevoked, ApiKeyExpired: the key is not accepted, and why.
        Unauthorized: the token is not accepted.

    Example:
        >>> auth = egs.authenticate(endpoint, api_key, sdk_default=True)
        >>> auth.email
        'ada@example.com'
    """
    token: Any = access_token
    is_default: Any = sdk_default
    if isinstance(sdk_default, str) or isinstance(access_token, bool):
        token, is_default = sdk_default or None, bool(access_token)
    if (api_key is None) == (token is None):
        raise BadParameters("authenticate needs exactly one of api_key and access_token")
    if api_key is not None:
        return _by_key(endpoint, api_key, is_default, patience or Patience())
    return _by_token(endpoint, token, is_default, patience or Patience())


def _by_key(
    endpoint: str, api_key: str, is_default: bool, patience: Patience
) -> Script[AuthenticatedSession]:
    connection = Connection(endpoint, {"apiKey": api_key}, patience)
    said = yield from logged_in(connection)
    return _session(said, connection, is_default)


def _by_token(
    endpoint: str, token: str, is_default: bool, patience: Patience
) -> Script[AuthenticatedSession]:
    """Try it as a token of the server, then as one of its identity provider."""
    connection = Connection(endpoint, {}, patience)
    connection.token = Token(token, math.inf)
    answer = yield from exchange(connection, Ask("GET", f"{API}/auth"))
    if answer.status != 401:
        said = data_of(answer, connection.address)
        return _session(said, connection, is_default)
    connection = Connection(endpoint, {"idToken": token}, patience)
    said = yield from logged_in(connection)
    return _session(said, connection, is_default)


def _session(said: Mapping[str, Any], connection: Connection, is_default: bool) -> AuthenticatedSession:
    workspaces, grants = said.get("workspaces"), said.get("grants") or [{}]
    made = AuthenticatedSession(
        connection.url,
        said.get("email") or "",
        said.get("name") or "",
        said.get("role") or grants[0].get("role") or "",
        None if workspaces is None else tuple(workspaces),
        connection=connection,
    )
    if is_default:
        update_global_session(made)
    return made
