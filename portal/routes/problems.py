"""`/problems`: invalid documents, changes on main that do not count, and requests that break a policy now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from fastapi import APIRouter

from portal.http.context import Asking, Envelope, Looking, Of, Page, ok
from portal.http.paging import Portioned, portion
from portal.identity.rights import check_admin
from portal.openapi.refusals import refusals
from portal.views.view import View
from reconciler.queries.holds import held_rows
from reconciler.queries.policy_problems import broken_rows, without_rejected
from reconciler.store.store_port import Store
from schemas.documents.apikey import ApiKey
from schemas.reading.reader import read_document
from schemas.reading.strict_yaml import locate
from schemas.rules.offer_rules import expired
from schemas.rules.problems import Problem
from schemas.rules.view import key_path

router = APIRouter(tags=["problems"])
Row = dict[str, Any]


@router.get("/problems", responses=refusals(403, 422), summary="What is wrong. For admins.")
def problems(view: Looking, caller: Asking, of: Of, wanted: Portioned) -> Envelope[Page[Row]]:
    """The rows of `egs get problems -o json`, without the alarm that main is not followed: that one is an event."""
    check_admin(caller, "see what is wrong with the documents")
    found = rows(view, of.store, of.now())
    items, more = portion(found, wanted, lambda row: f"{row['file']} {row['rule']} {row['line']}")
    return ok(Page[Row](items=items, next=more))


def rows(view: View, store: Store, now: datetime) -> list[Row]:
    """Held changes, broken policies, then problems of the documents; each once."""
    broken = broken_rows(view.facts, view.wanted)
    of_documents = sorted([*view.problems, *_over(view, store, now)])
    found = map(asdict, without_rejected(of_documents, broken))
    return [*held_rows(view.facts.trust), *broken, *found]


def _over(view: View, store: Store, now: datetime) -> Iterator[Problem]:
    """Expired keys; they are few, so their files are read again for the line of the expiry."""
    for name, spec in view.wanted.keys.items():
        if spec.not_after is None or spec.not_after > now:
            continue
        path = key_path(name)
        data = store.read_path(view.main, path) or b""
        document = read_document(path, data)
        if isinstance(document, ApiKey):
            yield from (finding.problem(locate(data)) for finding in expired(path, document, now))
