"""`/promises`: the ledger of promised starts, for everybody: counts and causes. Names need a login and rights."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from portal.http.context import Looking, Of
from portal.pages.frame import bare_frame, frame_of
from portal.pages.plain_words import CAUSES
from portal.pages.visit import rendered
from reconciler.queries.past.promise_rows import promises_json

router = APIRouter(include_in_schema=False)

MONTHS = 12
RECENT = 50
"""Starts that the page lists by name."""


@router.get("/promises")
def promise_ledger(request: Request, view: Looking, parts: Of) -> Response:
    """The same for a stranger, without the bar and without names."""
    caller = parts.logins.identify(request, view) if parts.logins.is_known(request, view) else None
    sees = frozenset[str]() if caller is None else caller.sees
    ledger = promises_json(view.facts, MONTHS, sees)
    frame = bare_frame(request) if caller is None else frame_of(request, parts, view, caller)
    total: dict[str, Any] = ledger["total"]
    causes = _causes(total["causes"])
    told = {
        "now": parts.now(),
        "words": CAUSES,
        "ledger": ledger,
        "causes": causes,
        "recent": ledger["recent"][:RECENT],
    }
    return rendered(request, frame, "promises.html", HTTPStatus.OK, told)


def _causes(found: Mapping[str, int]) -> list[tuple[str, str, int]]:
    """Name, words and count, the most frequent first."""
    return [
        (name, CAUSES.get(name, name), count)
        for name, count in sorted(found.items(), key=lambda one: (-one[1], one[0]))
    ]
