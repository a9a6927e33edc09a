"""Long lists, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from egs.calling import Ask, warned
from egs.data.records import Items
from egs.sessions import AuthenticatedSession
from egs.steps import Script

PAGE = 1000


def pages(
    session: AuthenticatedSession | None, path: str, params: Mapping[str, Any], most: int | None = None
) -> Script[Items[Any]]:
    """The rows of all pages; with `most`, only the pages needed for that many rows."""
    rows: Items[Any] = Items()
    cursor = None
    while most is None or len(rows) < most:
        size = PAGE if most is None else min(PAGE, most - len(rows))
        ask = Ask("GET", path, {**params, "limit": size, "cursor": cursor})
        told = yield from warned(session, ask)
        rows += told.data.get("items") or ()
        rows.message = rows.message or told.message
        cursor = told.data.get("next")
        if not cursor:
            break
    return rows
