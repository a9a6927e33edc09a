"""Long lists, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from egs.calling import Ask, call
from egs.sessions import AuthenticatedSession
from egs.steps import Script

PAGE = 1000


def pages(
    session: AuthenticatedSession, path: str, params: Mapping[str, Any], most: int | None = None
) -> Script[list[Any]]:
    """The rows of all pages; `most`: of no more than are needed for so many."""
    rows: list[Any] = []
    cursor = None
    while most is None or len(rows) < most:
        size = PAGE if most is None else min(PAGE, most - len(rows))
        ask = Ask("GET", path, {**params, "limit": size, "cursor": cursor})
        data = yield from call(session, ask)
        rows += data.get("items") or ()
        cursor = data.get("next")
        if not cursor:
            break
    return rows
