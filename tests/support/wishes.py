"""Changes asked of a portal's writer without HTTP, as `tests/portal` does: made, submitted all at once, looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from portal.http.errors import ApiError
from portal.views.view import View
from portal.writes.write_request import Landed, Make, Tree, WriteRequest
from tests.support import repos
from tests.support.portal import Replica, Site
from tests.support.world import gpr, gpr_path

Answer = Landed | BaseException


def files(**changes: str | None) -> Make:
    """Writes just these."""
    return lambda _view, _tree: {p: None if t is None else t.encode() for p, t in changes.items()}


def filing(key: str, **spec: Any) -> Make:
    """Files a request."""
    slice_name, _, name = key.partition("/")
    return files(**{gpr_path(key): gpr(slice_name, name, **spec)})


def wish(site: Site, who: str, key: str, idempotency: str = "", **spec: Any) -> WriteRequest:
    """Somebody files a request."""
    return WriteRequest(site.portal.caller(who), f"Request {key}", filing(key, **spec), idempotency)


def submit(replica: Replica, *wishes: WriteRequest) -> list[Answer]:
    """All at once; what each comes to, in order."""

    async def all_of_them() -> list[Answer]:
        return await asyncio.gather(*(replica.writer.submit(each) for each in wishes), return_exceptions=True)

    return asyncio.run(all_of_them())


def landed(what: Answer) -> Landed:
    """It is somewhere."""
    assert isinstance(what, Landed), what
    return what


def refused(what: Answer) -> ApiError:
    """It was refused."""
    assert isinstance(what, ApiError), what
    return what


def request_ids(site: Site, branch: str = "main") -> list[str]:
    """Of the commits that came through the API, newest first."""
    shown = repos.git(site.repo, "log", "--format=%(trailers:key=Request-Id,valueonly,separator=)", branch)
    return [line for line in shown.splitlines() if line]


def broken(error: Exception) -> Callable[[View, Tree], Mapping[str, bytes | None]]:
    """Makes nothing but that."""

    def make(_view: View, _tree: Tree) -> Mapping[str, bytes | None]:
        raise error

    return make
