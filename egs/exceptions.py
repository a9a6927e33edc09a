"""What can go wrong, one class for each thing that a program would do differently about.

`EgsApplicationException` is the base of all: `message` says what is so and what to do, `status` is the HTTP status (0:
no answer came), `key` the server's stable word, `request_id` names the call in the server's log, `data` is what else
the server said, `exception` what lay underneath. No text holds a key or a token.

Held by tests/egs/test_sdk_faults.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class EgsApplicationException(Exception):  # noqa: N818 - the documented name
    """Anything that this package raises."""

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
        """What lay underneath; the exception itself when nothing did."""
        return self.__cause__ or self

    def __str__(self) -> str:
        """The sentence, and how to find the call in the server's log."""
        return f"{self.message} (request {self.request_id})" if self.request_id else self.message


class ServerUnreachable(EgsApplicationException):
    """Nobody answers for the server; `address` is where it was looked for. A write may have landed or not."""

    def __init__(self, address: str, message: str = "", **more: Any) -> None:
        super().__init__(
            message or f"no server answers at {address}; check the address and the network", **more
        )
        self.address = address


class Unauthorized(EgsApplicationException):
    """The caller may not do this, or nobody is logged in."""


class ApiKeyInvalid(EgsApplicationException):
    """The text is no API key at all."""


class ApiKeyNotFound(EgsApplicationException):
    """The server knows no such API key."""


class ApiKeyRevoked(ApiKeyNotFound):
    """The API key was taken back."""


class ApiKeyExpired(EgsApplicationException):
    """The API key was good once."""


class BadParameters(EgsApplicationException, ValueError):  # noqa: N818
    """What was asked makes no sense; the message says what would. Nothing was changed."""


class ResourceNotFound(EgsApplicationException, ValueError):  # noqa: N818
    """There is no such thing, or the caller may not see it. A ValueError too, as some documented functions raise."""

    def __init__(
        self, value: str, resource_type: str = "Resource", resource_id: str | None = None, **more: Any
    ) -> None:
        super().__init__(value, **more)
        self.resource_type = resource_type
        self.resource_id = resource_id


class Conflict(EgsApplicationException):
    """Somebody else was faster; `data` says what changed. Look again, and ask again."""


class WorkspaceAlreadyExists(Conflict):
    """There is a workspace of this name."""


class WrongState(EgsApplicationException):
    """The request is in a phase in which this cannot be done."""


class GpuAlreadyProvisioned(WrongState):
    """The request holds its nodes already."""


class GpuAlreadyReleased(WrongState):
    """The request gave its nodes back, or is over."""


class NotProvisioned(WrongState):
    """The request holds no nodes yet."""


class PhaseNotReached(WrongState):
    """The request is over and never reached the phase that was waited for; `request` is how it ended."""

    def __init__(self, message: str, request: Any) -> None:
        super().__init__(message)
        self.request = request


class WaitTimedOut(EgsApplicationException, TimeoutError):  # noqa: N818
    """The phase was not reached in time; `request` is how it was when last seen."""

    def __init__(self, message: str, request: Any) -> None:
        super().__init__(message)
        self.request = request


class TooManyRequests(EgsApplicationException):
    """The caller asks too often; `retry_after` is when to ask again, in seconds."""

    def __init__(self, message: str, retry_after: float = 0.0, **more: Any) -> None:
        super().__init__(message, **more)
        self.retry_after = retry_after


class UnhandledException(EgsApplicationException):
    """Something broke on the server, or its answer cannot be read."""


class PriorityClamped(UserWarning):
    """A priority above the documented 300 was taken as 300."""


class ServerMessage(UserWarning):
    """Something that the server told beside its answer: what it took otherwise than it was asked, or why it gave
    nothing.
    """
