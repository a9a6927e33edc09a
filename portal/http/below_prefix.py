"""A portal below a path of its host, such as https://example.com/egs.

A proxy may pass that path on or leave it out: both reach the same pages, and links have it either way.

Held by tests/portal/http/test_below_prefix.py.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

PREFIX = "egs.prefix"
"""In the scope; `root_path` is not used, because Starlette would cut it off a second time."""


def prefix_of(request: Request) -> str:
    """The path below which the portal is reached; empty: it has its host for itself."""
    prefix: str = request.scope.get(PREFIX, "")
    return prefix


class BelowPrefix:
    """ASGI middleware: paths below the prefix are those of the application."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        """`prefix` begins with a slash and ends without one; empty: the portal has its host for itself."""
        self._app, self._prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if self._prefix and scope["type"] == "http":
            path = scope["path"]
            if path == self._prefix or path.startswith(f"{self._prefix}/"):
                path = path[len(self._prefix) :] or "/"
            scope = {**scope, "path": path, PREFIX: self._prefix}
        await self._app(scope, receive, send)
