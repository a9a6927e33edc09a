"""Lists in pages: `?limit=` items, and a `cursor` that continues after the last of them. Pure.

A cursor names the last item of the page and its position. Items added before it neither repeat nor hide others. If
that item is gone, the list continues at its position.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Query

from portal.http.errors import bad_parameters

Item = TypeVar("Item")
MOST_ITEMS = 1000
USUAL_ITEMS = 100


@dataclass(frozen=True, slots=True)
class Portion:
    """Which page of a list is requested."""

    limit: int = USUAL_ITEMS
    cursor: str = ""


async def portion_of(
    limit: Annotated[
        int, Query(ge=1, le=MOST_ITEMS, description="Most items to return.", examples=[100])
    ] = USUAL_ITEMS,
    cursor: Annotated[
        str, Query(max_length=1000, description="`next` of the previous page; empty: from the beginning.")
    ] = "",
) -> Portion:
    """Dependency of paths that return lists."""
    return Portion(limit, cursor)


Portioned = Annotated[Portion, Depends(portion_of)]


def portion(
    items: Sequence[Item], wanted: Portion, key: Callable[[Item], str]
) -> tuple[Sequence[Item], str | None]:
    """That page of a list, and the cursor of the next page; `key` identifies items. ApiError 422."""
    begin = _begin(items, wanted.cursor, key) if wanted.cursor else 0
    end = begin + wanted.limit
    more = cursor_of(end - 1, key(items[end - 1])) if end < len(items) else None
    return items[begin:end], more


def cursor_of(at: int, key: str) -> str:
    """The cursor after the item with that key at that position."""
    return base64.urlsafe_b64encode(json.dumps([at, key]).encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> tuple[int, str]:
    """Position and key. ApiError 422 for a text that is not a cursor."""
    try:
        at, key = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True))
        if isinstance(at, int) and not isinstance(at, bool) and isinstance(key, str) and at >= 0:
            return at, key
    except (binascii.Error, ValueError, TypeError):
        pass
    raise bad_parameters("cursor: pass `next` of the previous page unchanged, or leave it out")


def _begin(items: Sequence[Item], cursor: str, key: Callable[[Item], str]) -> int:
    at, last = read_cursor(cursor)
    if at < len(items) and key(items[at]) == last:
        return at + 1
    found = next((place for place, item in enumerate(items) if key(item) == last), None)
    return min(at, len(items)) if found is None else found + 1
