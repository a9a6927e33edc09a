"""API keys: from the presented text to its manifest and to a caller.

A key is looked up by its SHA-256, so response times reveal nothing about the text of any key. The manifest is the
view's: a revoked or deleted key is refused from the next fetched commit on.

Held by tests/portal/test_auth.py.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus

from portal.http.errors import ApiError, unauthenticated
from portal.identity.callers import EVERYWHERE, Caller, Grant, called, caller_of
from portal.views.view import View
from reconciler.model.evidence import Actor, Voucher
from schemas.documents.apikey import ApiKeySpec, digest_of

_TEXT = re.compile(r"[A-Za-z0-9_~+/=-]{16,256}")
"""Form of a key. It has no dot: a session has two."""


def digest_of_key(text: str) -> str:
    """The digest by which the view knows a key; ApiError 400 for what cannot be a key."""
    if _TEXT.fullmatch(text) is None:
        raise ApiError(
            HTTPStatus.BAD_REQUEST,
            "ApiKeyInvalid",
            "this is not an API key: a key has 16 to 256 letters, digits and _ ~ + / = -",
        )
    return digest_of(text)


def caller_by_key(view: View, digest: str, now: datetime) -> Caller:
    """The owner of the key with this digest; ApiError 401 if the key is not valid (any more)."""
    found = view.keys.get(digest)
    if found is None:
        raise unauthenticated("no manifest in keys/ has this API key", "ApiKeyNotFound")
    name, spec = found
    if spec.revoked:
        raise unauthenticated(f"the API key {name} is revoked", "ApiKeyRevoked")
    if spec.not_after is not None and now >= spec.not_after:
        raise unauthenticated("Api Key has expired", "ApiKeyExpired")  # the vendor's exact text
    person = listed(view, spec.email, now)
    caller = caller_of(
        person, called("", spec.email), (_grant(spec),), view.wanted.slices, name, spec.not_after
    )
    return replace(caller, again=lambda view, now: caller_by_key(view, digest, now))


def listed(view: View, email: str, now: datetime) -> Actor:
    """The rights that the manifests give that address; none if no manifest names it."""
    found = view.authority.actor(Voucher("signature", email=email), now)
    return Actor(email) if found is None else found


def _grant(spec: ApiKeySpec) -> Grant:
    return Grant(spec.role, frozenset(spec.slices) if spec.slices else EVERYWHERE)
