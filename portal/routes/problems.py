"""`/problems`: what is wrong with the documents, what of main does not count, and which requests break a policy now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from fastapi import APIRouter

from portal.allowing import check_admin
from portal.documenting import refusals
from portal.paging import Portioned, portion
from portal.serving import Asking, Envelope, Looking, Of, Page, ok
from portal.view import View
from reconciler.commands.holds import held_rows
from reconciler.commands.policies import broken_rows, without_rejected
from reconciler.store.port import Store
from schemas.apikey import ApiKey
from schemas.offers import expired
from schemas.problems import Problem
from schemas.reading import read_document
from schemas.strictyaml import locate
from schemas.view import key_path

router = APIRouter(tags=["problems"])
Row = dict[str, Any]


@router.get("/problems", responses=refusals(403, 422), summary="What is wrong. For admins.")
def problems(view: Looking, caller: Asking, of: Of, wanted: Portioned) -> Envelope[Page[Row]]:
    """The rows of `egs get problems -o json`, but for the alarm of a main that is not followed: that is an event."""
    check_admin(caller, "see what is wrong with the documents")
    found = rows(view, of.store, of.now())
    items, more = portion(found, wanted, lambda row: f"{row['file']} {row['rule']} {row['line']}")
    return ok(Page[Row](items=items, next=more))


def rows(view: View, store: Store, now: datetime) -> list[Row]:
    """Held changes, broken policies, then what is wrong with the documents; each once."""
    broken = broken_rows(view.facts, view.wanted)
    of_documents = sorted([*view.problems, *_over(view, store, now)])
    found = map(asdict, without_rejected(of_documents, broken))
    return [*held_rows(view.facts.trust), *broken, *found]


def _over(view: View, store: Store, now: datetime) -> Iterator[Problem]:
    """Keys that open nothing any more; they are few, and where their end is written is read from their files."""
    for name, spec in view.wanted.keys.items():
        if spec.not_after is None or spec.not_after > now:
            continue
        path = key_path(name)
        data = store.read_path(view.main, path) or b""
        document = read_document(path, data)
        if isinstance(document, ApiKey):
            yield from (finding.problem(locate(data)) for finding in expired(path, document, now))
