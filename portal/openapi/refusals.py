"""The documented refusals of a path: each status with an example for every key.

Held by tests/portal/test_openapi.py: a path answers only what it documents, and every answer has an example.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Header

from portal.http.context import ErrorEnvelope
from portal.http.error_keys import SENTENCE, STATUS

KNOWING = ("Unauthenticated", "ApiKeyNotFound", "ApiKeyRevoked", "ApiKeyExpired", "SessionEnded")
"""Reasons why a caller is unknown."""
EVERYWHERE = (*KNOWING, "TooManyRequests", "Unavailable")
"""Refusals of every path that needs a caller."""
CHANGES = (
    "Forbidden", "CrossSite", "PushRefused", "Conflict", "AlreadyProposed", "BadParameters", "OutcomeUnknown",
)  # fmt: skip
"""Refusals of every change."""
NAMED = (*CHANGES, "IdempotencyKeyReused")
"""The same for changes with an Idempotency-Key."""

_MEANINGS: dict[int, str] = {
    400: "The request cannot be read.",
    401: "The caller is unknown.",
    403: "The caller may see it but may not do this.",
    404: "It does not exist, or the caller may not see it.",
    408: "The body did not arrive in time.",
    409: "It exists already, is in another state, or was changed meanwhile.",
    410: "That past state is not kept.",
    413: "The body is too large.",
    422: "The request is not valid here; the message says what would be.",
    429: "Too many requests.",
    503: "The repository or the cluster does not answer, or was not read yet.",
}
_USUAL = {
    400: "BadRequest", 403: "Forbidden", 404: "NotFound", 408: "BodyTooSlow", 409: "Conflict", 410: "StateGone",
    413: "TooLarge", 422: "BadParameters",
}  # fmt: skip


def refusals(*whats: int | str) -> dict[int | str, dict[str, Any]]:
    """`responses` of a path: these and the common ones. Give a key, or a status for its usual key."""
    found: dict[int, list[str]] = {}
    for what in (*EVERYWHERE, *whats):
        key = _USUAL[what] if isinstance(what, int) else what
        keys = found.setdefault(STATUS[key], [])
        if key not in keys:
            keys.append(key)
    return {status: _refusal(status, keys) for status, keys in sorted(found.items())}


def _refusal(status: int, keys: Sequence[str]) -> dict[str, Any]:
    examples = {key: {"summary": key, "value": _example(status, key)} for key in keys}
    return {
        "model": ErrorEnvelope,
        "description": _MEANINGS[status],
        "content": {"application/json": {"examples": examples}},
    }


def _example(status: int, key: str) -> dict[str, Any]:
    message = SENTENCE[key]
    return {
        "statusCode": status,
        "status": HTTPStatus(status).phrase,
        "message": message,
        "data": None,
        "error": {"errorKey": key, "message": message, "data": None},
    }


IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        pattern="^[!-~]*$",
        description="Your own id for this change: a repeated call gets the first answer and changes "
        "nothing, while the first commit is recent enough to be found.",
        examples=["7c29e338-ebda-4f0e-9d43-2f4d0d9a1f11"],
    ),
]
