"""API keys: from what is presented to the manifest that knows it, and to a caller.

A key's text is looked up by its SHA-256, so the time that takes tells nothing about any key's text. The manifest is
the view's: a key that is revoked or deleted opens nothing from the next fetched commit on.

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
"""What a key looks like. Without a dot: a session has two."""


def digest_of_key(text: str) -> str:
    """By what the view knows a key; ApiError 400 of what cannot be one."""
    if _TEXT.fullmatch(text) is None:
        raise ApiError(
            HTTPStatus.BAD_REQUEST,
            "ApiKeyInvalid",
            "this is no API key: one has 16 to 256 letters, digits and _ ~ + / = -",
        )
    return digest_of(text)


def caller_by_key(view: View, digest: str, now: datetime) -> Caller:
    """Whoever presents the key with this digest; ApiError 401 where it opens nothing (any more)."""
    found = view.keys.get(digest)
    if found is None:
        raise unauthenticated("no manifest below keys/ knows this API key", "ApiKeyNotFound")
    name, spec = found
    if spec.revoked:
        raise unauthenticated(f"the API key {name} is revoked", "ApiKeyRevoked")
    if spec.not_after is not None and now >= spec.not_after:
        raise unauthenticated("Api Key has expired", "ApiKeyExpired")  # the vendor's very words
    person = listed(view, spec.email, now)
    caller = caller_of(
        person, called("", spec.email), (_grant(spec),), view.wanted.slices, name, spec.not_after
    )
    return replace(caller, again=lambda view, now: caller_by_key(view, digest, now))


def listed(view: View, email: str, now: datetime) -> Actor:
    """What the manifests let that address do; nothing, where none names it."""
    found = view.authority.actor(Voucher("signature", email=email), now)
    return Actor(email) if found is None else found


def _grant(spec: ApiKeySpec) -> Grant:
    return Grant(spec.role, frozenset(spec.slices) if spec.slices else EVERYWHERE)
