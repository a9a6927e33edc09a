"""Sessions with a server. A session is a value; its connection holds what changes (token, sockets).

Safe to share between threads and event loops. Keys and tokens are in no repr, and a session cannot be pickled.

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
    """A logged-in caller on a server, from `egs.authenticate`. Pass it to every call, or make it the default.

    Example:
        >>> auth.role
        'Owner'
    """

    endpoint: str
    email: str = ""
    name: str = ""
    role: str = ""
    workspaces: tuple[str, ...] | None = None
    """The workspaces it is valid for; None: the whole project."""
    connection: Connection = field(repr=False, compare=False, kw_only=True)

    @property
    def client(self) -> httpx.Client:
        """The underlying HTTP client, for anything this package has no function for; it sends no token by itself."""
        from egs.transport import client_of

        return client_of(self.connection)

    def __reduce__(self) -> NoReturn:
        """Refused: a pickle would copy the key into a file or a pipe."""
        raise TypeError(NO_PICKLE)

    def __copy__(self) -> AuthenticatedSession:
        """Sessions are values, and copies would share the connection anyway."""
        return self

    def __deepcopy__(self, _: object) -> AuthenticatedSession:
        return self

    def close(self) -> None:
        """Close its sockets; using it again opens new ones."""
        from egs.transport import close

        close(self.connection)

    async def aclose(self) -> None:
        """Close its sockets in the running event loop."""
        from egs.aio.transport import close

        await close(self.connection)

    def __enter__(self) -> AuthenticatedSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> AuthenticatedSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


_default: AuthenticatedSession | None = None
_guard = threading.Lock()


def update_global_session(session: AuthenticatedSession | None) -> None:
    """Make it the default session of this process; None: remove the default.

    Example:
        >>> egs.update_global_session(auth)
        >>> egs.get_global_session() is auth
        True
    """
    global _default
    with _guard:
        _default = session


def get_global_session() -> AuthenticatedSession | None:
    """The default session of this process."""
    with _guard:
        return _default


def get_authenticated_session(session: AuthenticatedSession | None = None) -> AuthenticatedSession:
    """The given session, else the default. Raises Unauthorized if there is neither."""
    found = session or get_global_session()
    if found is None:
        raise Unauthorized(
            "No authenticated session found: call egs.authenticate(endpoint, api_key) and pass its result as "
            "authenticated_session, or call it with sdk_default=True"
        )
    return found
