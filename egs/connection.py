"""The connection to one server: its current token, and the transports' sockets.

Safe to share between threads and event loops. No key or token is in any repr, and a connection cannot be pickled.

Held by tests/egs/test_sdk_sessions.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import urlsplit

from egs.exceptions import BadParameters

CONNECT_S = 5.0
READ_S = 60.0
"""A write is answered when its push has landed, which may take a while in a queue."""
STREAM_S = 45.0
"""A live stream sends something every 15 s; three times nothing means it is dead."""
ATTEMPTS = 5


NO_PICKLE = (
    "a session cannot be pickled: it holds a key and open sockets; call egs.authenticate() in the other process, or "
    "give that process the endpoint and the key"
)


@dataclass(frozen=True, slots=True)
class Patience:
    """Timeouts and number of tries of a session."""

    connect_s: float = CONNECT_S
    read_s: float = READ_S
    stream_s: float = STREAM_S
    attempts: int = ATTEMPTS


@dataclass(frozen=True, slots=True)
class Token:
    """A token from the server."""

    text: str = field(repr=False)
    until_s: float
    """On the monotonic clock; renewed from then on."""


class Connection:
    """One server with one credential."""

    __slots__ = ("_closers", "_cond", "_pools", "address", "credential", "lock", "patience", "token", "url")

    def __init__(self, endpoint: str, credential: dict[str, str], patience: Patience) -> None:
        self.url = base_url(endpoint)
        self.address = address_of(self.url)
        self.credential = credential
        """Body of the login; empty: only a token is known, which cannot be renewed."""
        self.patience = patience
        self.token: Token | None = None
        """Replaced as a whole, so that readers never see a partial one."""
        self.lock = threading.Lock()
        """Held by the thread that renews the token."""
        self._cond = threading.Lock()
        self._pools: dict[object, Any] = {}

    def pool(self, key: object, make: Callable[[], Any]) -> Any:
        """What a transport keeps for `key` (a process or an event loop). Made once."""
        with self._cond:
            if key not in self._pools:
                self._pools[key] = make()
            return self._pools[key]

    def forget(self, key: object) -> Any:
        """Remove and return what was kept for `key`; None: nothing."""
        with self._cond:
            return self._pools.pop(key, None)

    def __repr__(self) -> str:
        return f"<connection to {self.address}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(NO_PICKLE)


def base_url(endpoint: str) -> str:
    """The address without credentials and trailing slash."""
    parts = urlsplit(endpoint.strip())
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise BadParameters(
            f"{address_of(endpoint)!r} is not the address of a server; write https://HOST[:PORT]"
        )
    if parts.username or parts.password:
        raise BadParameters("an address must not contain a user or password; give the API key separately")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def address_of(url: str) -> str:
    """An address for display: without user, password and query."""
    scheme, found, rest = url.partition("://")
    shown = f"{scheme}://{rest}" if found else url
    head, _, tail = shown.rpartition("@")
    return (f"{head.partition('://')[0]}://{tail}" if head else shown).partition("?")[0]
