"""Refusals of the API as values: each has a status, a stable key and a sentence: docs/reference/api.md."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from schemas.errors import EgsError


class ApiError(EgsError):
    """An answer other than success. `reason` is the envelope's `errorKey`, the text its `message`."""

    def __init__(
        self,
        status: HTTPStatus,
        key: str,
        message: str,
        data: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, key)
        self.status = status
        self.data = data
        self.headers = headers


def unauthenticated(message: str, key: str = "Unauthenticated") -> ApiError:
    """401: the caller is unknown."""
    return ApiError(HTTPStatus.UNAUTHORIZED, key, message, headers={"WWW-Authenticate": "Bearer"})


def forbidden(message: str) -> ApiError:
    """403: the caller may not do this."""
    return ApiError(HTTPStatus.FORBIDDEN, "Forbidden", message)


def not_found(what: str, name: str, key: str = "NotFound") -> ApiError:
    """404. Also for what the caller may not see, so that guessing reveals nothing."""
    return ApiError(HTTPStatus.NOT_FOUND, key, f"there is no {what} {name}, or you may not see it")


def gone(message: str) -> ApiError:
    """410: a past state that is not kept."""
    return ApiError(HTTPStatus.GONE, "StateGone", message)


def conflict(message: str, key: str = "Conflict", data: Mapping[str, Any] | None = None) -> ApiError:
    """409: it exists already, is in another state, or changed meanwhile."""
    return ApiError(HTTPStatus.CONFLICT, key, message, data)


def bad_parameters(message: str, data: Mapping[str, Any] | None = None) -> ApiError:
    """422: the input makes no sense here; the message says what would."""
    return ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "BadParameters", message, data)


def unavailable(message: str) -> ApiError:
    """503: the repository does not answer, or was not read yet."""
    return ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "Unavailable", message, headers={"Retry-After": "5"})


def too_often(wait_s: int, message: str = "") -> ApiError:
    """429: too many requests from a caller or an unauthenticated address, or too much open, as `message` says."""
    said = message or f"too many requests; wait {wait_s} second{'' if wait_s == 1 else 's'}"
    return ApiError(
        HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", said, headers={"Retry-After": str(wait_s)}
    )
