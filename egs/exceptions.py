"""The exceptions: one class for each failure that a program would handle differently.

`EgsApplicationException` is the base of all: `message` says what happened and what to do, `status` is the HTTP status
(0: no answer), `key` the server's stable identifier, `request_id` names the call in the server's log, `data` has
further details, `exception` is the cause. No text contains a key or a token.

Held by tests/egs/test_sdk_faults.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class EgsApplicationException(Exception):  # noqa: N818 - the documented name
    """Base of all exceptions of this package."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        key: str = "",
        request_id: str = "",
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.key = key
        self.request_id = request_id
        self.data = data

    @property
    def exception(self) -> BaseException:
        """The cause; without one the exception itself."""
        return self.__cause__ or self

    def __str__(self) -> str:
        """The message, and the call's id in the server's log."""
        return f"{self.message} (request {self.request_id})" if self.request_id else self.message


class ServerUnreachable(EgsApplicationException):
    """No server answers; `address` is where it was expected. A write may have landed or not."""

    def __init__(self, address: str, message: str = "", **more: Any) -> None:
        super().__init__(
            message or f"no server answers at {address}; check the address and the network", **more
        )
        self.address = address


class Unauthorized(EgsApplicationException):
    """The caller may not do this, or is not logged in."""


class ApiKeyInvalid(EgsApplicationException):
    """The text cannot be an API key."""


class ApiKeyNotFound(EgsApplicationException):
    """The server does not know this API key."""


class ApiKeyRevoked(ApiKeyNotFound):
    """The API key was revoked."""


class ApiKeyExpired(EgsApplicationException):
    """The API key has expired."""


class BadParameters(EgsApplicationException, ValueError):  # noqa: N818
    """An argument is not valid; the message says what would be. Nothing was changed."""


class ResourceNotFound(EgsApplicationException, ValueError):  # noqa: N818
    """It does not exist, or the caller may not see it. Also a ValueError, as some documented functions raise."""

    def __init__(
        self, value: str, resource_type: str = "Resource", resource_id: str | None = None, **more: Any
    ) -> None:
        super().__init__(value, **more)
        self.resource_type = resource_type
        self.resource_id = resource_id


class Conflict(EgsApplicationException):
    """It was changed meanwhile; `data` says what changed. Look again, then try again."""


class WorkspaceAlreadyExists(Conflict):
    """A workspace with this name exists."""


class WrongState(EgsApplicationException):
    """The request is in a phase that does not allow this."""


class GpuAlreadyProvisioned(WrongState):
    """The request holds its nodes already."""


class GpuAlreadyReleased(WrongState):
    """The request has given its nodes back, or is over."""


class NotProvisioned(WrongState):
    """The request holds no nodes yet."""


class PhaseNotReached(WrongState):
    """The request ended without reaching the awaited phase; `request` is its last state."""

    def __init__(self, message: str, request: Any) -> None:
        super().__init__(message)
        self.request = request


class WaitTimedOut(EgsApplicationException, TimeoutError):  # noqa: N818
    """The phase was not reached in time; `request` is its last seen state."""

    def __init__(self, message: str, request: Any) -> None:
        super().__init__(message)
        self.request = request


class TooManyRequests(EgsApplicationException):
    """Too many calls; `retry_after` is the time to wait, in seconds."""

    def __init__(self, message: str, retry_after: float = 0.0, **more: Any) -> None:
        super().__init__(message, **more)
        self.retry_after = retry_after


class UnhandledException(EgsApplicationException):
    """An error in the server, or an unreadable answer."""


class PriorityClamped(UserWarning):
    """A priority above the documented 300 was set to 300."""


class ServerMessage(UserWarning):
    """A message of the server beside its answer: what it changed in the call, or why the result is empty."""
