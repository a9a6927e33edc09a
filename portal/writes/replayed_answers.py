"""Idempotency keys: the first answer again, if its change is on main already.

A route that looks up what it changes asks here first: the first try may have deleted what the second would look for.

Held by tests/portal/test_replays.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends

from portal.http.context import Asking, Of
from portal.openapi.refusals import IdempotencyKey
from portal.vendor.gpr_answers import found_in, id_of
from portal.views.view import View
from portal.writes.parsed_files import read_document
from portal.writes.write_request import Landed
from reconciler.store.store_port import Store
from schemas.documents.endpoint import Endpoint
from schemas.documents.gpr import GPR
from schemas.documents.identity import NONCE, uid_of
from schemas.rules.view import gpr_path


@dataclass(frozen=True, slots=True)
class Naming:
    """An idempotency key and its result, if known."""

    key: str = ""
    landed: Landed | None = None
    """The change is on main: nothing must be looked up or made any more."""


async def naming_of(caller: Asking, parts: Of, idempotency: IdempotencyKey = "") -> Naming:
    """The key of the HTTP request; ApiError 409 if it was used for something else."""
    return Naming(idempotency, await parts.writer.known(caller, idempotency))


Named = Annotated[Naming, Depends(naming_of)]


def weights_then(store: Store, commit: str, path: str) -> dict[str, int]:
    """The weights of an endpoint's file as this commit of main wrote them."""
    data = store.read_path(commit, path)
    document = None if data is None else read_document(path, data)
    assert isinstance(document, Endpoint), "the commit was found by its key and content"
    return dict(document.spec.weights)


def id_then(view: View, store: Store, commit: str, id_or_key: str) -> str:
    """The id of a request that this commit of main changed or deleted; `id_or_key`: as the caller named it."""
    if "/" not in id_or_key:
        return id_or_key
    path, parent = gpr_path(*id_or_key.split("/", 1)), store.parent(commit)
    data = None if parent is None else store.read_path(parent, path)
    document = None if data is None else read_document(path, data)
    seed = document.metadata.labels.get(NONCE) if isinstance(document, GPR) else None
    if seed:
        return uid_of(id_or_key, seed)
    found = found_in(view, id_or_key)
    return id_or_key if found is None else id_of(view, found) or id_or_key
