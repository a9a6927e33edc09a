"""The way to one server: the token of the moment and the transports' sockets.

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
"""A write is answered when its push has landed, which may take a while behind others."""
STREAM_S = 45.0
"""A live stream says something every 15 s; three times nothing is a dead one."""
ATTEMPTS = 5


NO_PICKLE = (
    "a session is not for pickling: it holds a key and open sockets; call egs.authenticate() in the other process, or "
    "give that process the endpoint and the key"
)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a session waits for its server, and how often it tries."""

    connect_s: float = CONNECT_S
    read_s: float = READ_S
    stream_s: float = STREAM_S
    attempts: int = ATTEMPTS


@dataclass(frozen=True, slots=True)
class Token:
    """What the server gave for the credential."""

    text: str = field(repr=False)
    until_s: float
    """On the monotonic clock; it is renewed from then on."""


class Connection:
    """To one server with one credential: the token of the moment, and the transports' sockets."""

    __slots__ = ("_closers", "_cond", "_pools", "address", "credential", "lock", "patience", "token", "url")

    def __init__(self, endpoint: str, credential: dict[str, str], patience: Patience) -> None:
        self.url = base_url(endpoint)
        self.address = address_of(self.url)
        self.credential = credential
        """Body of the login; empty: the token is all there is, and is not renewed."""
        self.patience = patience
        self.token: Token | None = None
        """Replaced as a whole, so that a reader never sees half of one."""
        self.lock = threading.Lock()
        """Held by the thread that renews the token."""
        self._cond = threading.Lock()
        self._pools: dict[object, Any] = {}

    def pool(self, key: object, make: Callable[[], Any]) -> Any:
        """What a transport keeps for `key`: a process, an event loop. Made once."""
        with self._cond:
            if key not in self._pools:
                self._pools[key] = make()
            return self._pools[key]

    def forget(self, key: object) -> Any:
        """What was kept for `key`, no longer kept; None: nothing."""
        with self._cond:
            return self._pools.pop(key, None)

    def __repr__(self) -> str:
        """Where it leads to; nothing that opens it."""
        return f"<connection to {self.address}>"

    def __reduce__(self) -> NoReturn:
        """Never: it holds what opens the server."""
        raise TypeError(NO_PICKLE)


def base_url(endpoint: str) -> str:
    """The address without what nobody may see in a log, and without a slash at its end."""
    parts = urlsplit(endpoint.strip())
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise BadParameters(f"{address_of(endpoint)!r} is no address of a server; write https://HOST[:PORT]")
    if parts.username or parts.password:
        raise BadParameters("an address holds no user and no password; give the API key by itself")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def address_of(url: str) -> str:
    """How an address is shown: without user, password, query."""
    scheme, found, rest = url.partition("://")
    shown = f"{scheme}://{rest}" if found else url
    head, _, tail = shown.rpartition("@")
    return (f"{head.partition('://')[0]}://{tail}" if head else shown).partition("?")[0]
