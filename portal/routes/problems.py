"""`/problems`: what is wrong with the documents, what of main does not count, and which requests break a policy now."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from portal.allowing import check_admin
from portal.documenting import refusals
from portal.paging import Portioned, portion
from portal.serving import Asking, Envelope, Looking, Page, ok
from portal.view import View
from reconciler.commands.holds import held_rows
from reconciler.commands.policies import broken_rows

router = APIRouter(tags=["problems"])
Row = dict[str, Any]


@router.get("/problems", responses=refusals(403, 422), summary="What is wrong. For admins.")
def problems(view: Looking, caller: Asking, wanted: Portioned) -> Envelope[Page[Row]]:
    """The rows of `egs get problems -o json`, but for the alarm of a main that is not followed: that is an event."""
    check_admin(caller, "see what is wrong with the documents")
    items, more = portion(view.once(rows), wanted, lambda row: f"{row['file']} {row['rule']} {row['line']}")
    return ok(Page[Row](items=items, next=more))


def rows(view: View) -> list[Row]:
    """Held changes, broken policies, then what is wrong with the documents; each once."""
    broken = broken_rows(view.facts, view.wanted)
    known = {(row["file"], row["rule"]) for row in broken}
    found = (asdict(one) for one in view.problems if (one.file, one.rule) not in known)
    return [*held_rows(view.facts.trust), *broken, *found]
