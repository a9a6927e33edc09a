"""What a path may refuse, told in the OpenAPI document: status, key and sentence, each with an example.

Held by tests/portal/test_openapi.py: no path answers what it does not document, and every one has an example.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Header

from portal.serving import ErrorEnvelope

EVERYWHERE = (HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
"""What everything may answer that a caller is known for."""

_SAYINGS: dict[int, tuple[str, str, str]] = {
    400: ("What was sent cannot be read.", "BadRequest", "the body is no JSON"),
    401: (
        "Nobody is known to have asked.",
        "Unauthenticated",
        "give an API key or a session as `Authorization: Bearer …`",
    ),
    403: ("The caller sees it and may not do that.", "Forbidden", "only an admin of the project may do this"),
    404: (
        "It is not there, or not for the caller to see.",
        "NotFound",
        "there is no workspace nlp, or you may not see it",
    ),
    408: ("The body did not arrive.", "BodyTooSlow", "the body did not arrive within 15 s"),
    409: (
        "It is there already, is in another state, or somebody was faster.",
        "Conflict",
        "templates/small.yaml was changed meanwhile; look again",
    ),
    412: (
        "It was changed since the caller looked at it.",
        "PreconditionFailed",
        "it has changed since; look again",
    ),
    413: ("What was sent is too large.", "TooLarge", "a body has at most 1 MiB"),
    422: (
        "What was sent makes no sense here; the message says what would.",
        "BadParameters",
        "clusters: there is no cluster west; there are east, north",
    ),
    429: ("The caller asks too often.", "TooManyRequests", "too many requests; wait 2 seconds"),
    503: (
        "The repository or the cluster does not answer, or was not read yet.",
        "Unavailable",
        "the repository does not answer; try again in 5 seconds",
    ),
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """`responses` of a path: these, and what everything may answer."""
    return {int(status): _refusal(int(status)) for status in sorted({*EVERYWHERE, *statuses})}


def _refusal(status: int) -> dict[str, Any]:
    meaning, key, message = _SAYINGS[status]
    example = {
        "statusCode": status,
        "status": HTTPStatus(status).phrase,
        "message": message,
        "data": None,
        "error": {"errorKey": key, "message": message, "data": None},
    }
    return {
        "model": ErrorEnvelope,
        "description": meaning,
        "content": {"application/json": {"example": example}},
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
