"""Who talks to which server. A session is a value; what changes below it (token, connections) is its connection's.

Safe to share between threads and event loops. No key or token is in any repr, and a session cannot be pickled.

Held by tests/egs/test_sdk_sessions.py.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from egs.connection import NO_PICKLE, Connection
from egs.exceptions import Unauthorized

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True)
class AuthenticatedSession:
    """Somebody on a server, from `egs.authenticate`. Give it to every call, or make it the default of the process.

    Example:
        >>> auth.role
        'Owner'
    """

    endpoint: str
    email: str = ""
    name: str = ""
    role: str = ""
    workspaces: tuple[str, ...] | None = None
    """What it is good for; None: the whole project."""
    connection: Connection = field(repr=False, compare=False, kw_only=True)

    @property
    def client(self) -> httpx.Client:
        """The HTTP client below it, for what this package has no function for; it sends no token by itself."""
        from egs.transport import client_of

        return client_of(self.connection)

    def __reduce__(self) -> NoReturn:
        """Never: a pickle would be a copy of the key in a file or a pipe."""
        raise TypeError(NO_PICKLE)

    def __copy__(self) -> AuthenticatedSession:
        """Itself: it is a value, and its copies would share the connection anyway."""
        return self

    def __deepcopy__(self, _: object) -> AuthenticatedSession:
        """Itself."""
        return self

    def close(self) -> None:
        """Let go of its sockets; it can be used again and opens new ones."""
        from egs.transport import close

        close(self.connection)

    async def aclose(self) -> None:
        """Let go of the sockets that it has in the running event loop."""
        from egs.aio.transport import close

        await close(self.connection)

    def __enter__(self) -> AuthenticatedSession:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closed."""
        self.close()

    async def __aenter__(self) -> AuthenticatedSession:
        """Itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closed."""
        await self.aclose()


_default: AuthenticatedSession | None = None
_guard = threading.Lock()


def update_global_session(session: AuthenticatedSession | None) -> None:
    """Make it the session of every call that is given none; None: there is none any more.

    Example:
        >>> egs.update_global_session(auth)
        >>> egs.get_global_session() is auth
        True
    """
    global _default
    with _guard:
        _default = session


def get_global_session() -> AuthenticatedSession | None:
    """The session of calls that are given none."""
    with _guard:
        return _default


def get_authenticated_session(session: AuthenticatedSession | None = None) -> AuthenticatedSession:
    """The given one, else the default of the process. Raises Unauthorized: there is neither."""
    found = session or get_global_session()
    if found is None:
        raise Unauthorized(
            "No authenticated session found: call egs.authenticate(endpoint, api_key) and give its result as "
            "authenticated_session, or call it with sdk_default=True"
        )
    return found
