"""The exception for each refusal. Pure.

The server's key (`errorKey`) decides if it is known, otherwise the HTTP status, so that an older client understands a
newer server.

Held by tests/egs/test_sdk_faults.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from egs.exceptions import (
    ApiKeyExpired,
    ApiKeyInvalid,
    ApiKeyNotFound,
    ApiKeyRevoked,
    BadParameters,
    Conflict,
    EgsApplicationException,
    GpuAlreadyProvisioned,
    GpuAlreadyReleased,
    NotProvisioned,
    ResourceNotFound,
    ServerUnreachable,
    TooManyRequests,
    Unauthorized,
    UnhandledException,
    WorkspaceAlreadyExists,
)
from egs.steps import Answer

EXPIRED = "Api Key has expired"
"""The documented text; identifies a server that gives no key."""
GATEWAY = frozenset({502, 503, 504})
"""The server behind the address does not answer, or not yet."""

Kind = Callable[..., EgsApplicationException]

BY_KEY: Mapping[str, Kind] = {
    "ApiKeyInvalid": ApiKeyInvalid,
    "ApiKeyNotFound": ApiKeyNotFound,
    "ApiKeyRevoked": ApiKeyRevoked,
    "ApiKeyExpired": ApiKeyExpired,
    "GpuAlreadyProvisioned": GpuAlreadyProvisioned,
    "GpuAlreadyReleased": GpuAlreadyReleased,
    "NotProvisioned": NotProvisioned,
    "WorkspaceAlreadyExists": WorkspaceAlreadyExists,
    "BadParameters": BadParameters,
    "NoSuchPath": UnhandledException,  # an older server, or another one
}
BY_STATUS: Mapping[int, Kind] = {
    400: BadParameters,
    401: Unauthorized,
    403: Unauthorized,
    404: ResourceNotFound,
    409: Conflict,
    413: BadParameters,
    422: BadParameters,
}


@dataclass(frozen=True, slots=True)
class Said:
    """The content of a refusal."""

    message: str
    key: str
    data: Mapping[str, Any] | None


def refusal(answer: Answer, address: str) -> EgsApplicationException:
    """The exception for an answer that is not a success."""
    said = _said(answer)
    more: dict[str, Any] = {
        "status": answer.status,
        "key": said.key,
        "request_id": answer.headers.get("x-request-id", ""),
        "data": said.data,
    }
    if answer.status == 429:
        return TooManyRequests(said.message, retry_after(answer) or 0.0, **more)
    if answer.status in GATEWAY:
        return ServerUnreachable(
            address, f"the server at {address} cannot answer now: {said.message}", **more
        )
    kind = BY_KEY.get(said.key) or BY_STATUS.get(answer.status) or UnhandledException
    return kind(said.message, **more)


def login_refusal(answer: Answer, address: str) -> EgsApplicationException:
    """The exception for a failed login; without a key, status and text decide."""
    found = refusal(answer, address)
    more: dict[str, Any] = {name: getattr(found, name) for name in ("status", "key", "request_id", "data")}
    if answer.status not in {400, 401, 403, 422, 429}:
        return ServerUnreachable(address, f"no EGS server answers at {address}: {found.message}", **more)
    if found.key in BY_KEY or answer.status not in {400, 401}:
        return found
    if answer.status == 400:
        return ApiKeyInvalid(found.message, **more)
    return (ApiKeyExpired if found.message == EXPIRED else ApiKeyNotFound)(found.message, **more)


def retry_after(answer: Answer) -> float | None:
    """Seconds that the server asks to wait; None: not given. Dates are ignored, because clocks differ."""
    try:
        return max(0.0, float(answer.headers["retry-after"]))
    except (KeyError, ValueError):
        return None


def body_of(answer: Answer) -> Any:
    """The JSON of an answer. Raises UnhandledException if it is not JSON."""
    try:
        return json.loads(answer.text)
    except ValueError as error:
        raise UnhandledException(
            f"the server answered {answer.status} with something that is not JSON; is it an EGS server?",
            status=answer.status,
            request_id=answer.headers.get("x-request-id", ""),
        ) from error


def _said(answer: Answer) -> Said:
    try:
        body = json.loads(answer.text)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return Said(f"the server answered {answer.status}", "", None)
    error = body.get("error")
    error = error if isinstance(error, dict) else {}
    message = error.get("message") or body.get("message") or f"the server answered {answer.status}"
    return Said(str(message), str(error.get("errorKey") or ""), error.get("data"))
