"""What a path may refuse, told in the OpenAPI document: each status with an example for every key.

Held by tests/portal/test_openapi.py: no path answers what it does not document, and every one has an example.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Header

from portal.http.context import ErrorEnvelope
from portal.http.error_keys import SENTENCE, STATUS

KNOWING = ("Unauthenticated", "ApiKeyNotFound", "ApiKeyRevoked", "ApiKeyExpired", "SessionEnded")
"""Why nobody is known to have asked."""
EVERYWHERE = (*KNOWING, "TooManyRequests", "Unavailable")
"""What everything may answer that a caller is known for."""
CHANGES = (
    "Forbidden", "CrossSite", "PushRefused", "Conflict", "AlreadyProposed", "BadParameters", "OutcomeUnknown",
)  # fmt: skip
"""What every change may answer."""
NAMED = (*CHANGES, "IdempotencyKeyReused")
"""The same of those that take the caller's own name for them."""

_MEANINGS: dict[int, str] = {
    400: "What was sent cannot be read.",
    401: "Nobody is known to have asked.",
    403: "The caller sees it and may not do that.",
    404: "It is not there, or not for the caller to see.",
    408: "The body did not arrive.",
    409: "It is there already, is in another state, or somebody was faster.",
    413: "What was sent is too large.",
    422: "What was sent makes no sense here; the message says what would.",
    429: "The caller asks too often.",
    503: "The repository or the cluster does not answer, or was not read yet.",
}
_USUAL = {
    400: "BadRequest", 403: "Forbidden", 404: "NotFound", 408: "BodyTooSlow", 409: "Conflict", 413: "TooLarge",
    422: "BadParameters",
}  # fmt: skip


def refusals(*whats: int | str) -> dict[int | str, dict[str, Any]]:
    """`responses` of a path: these, and what everything may answer. A key, or a status for its usual key."""
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
        description="Your own name for this change: the same again within reach gives the first answer again, "
        "and changes nothing.",
        examples=["7c29e338-ebda-4f0e-9d43-2f4d0d9a1f11"],
    ),
]
