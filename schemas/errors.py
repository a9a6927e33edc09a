"""Errors, by who must act.

`reason` is a stable CamelCase identifier for machines (docs/reference/reasons.md lists all); the text says where,
what, and what to do, and never contains a secret.
"""

from __future__ import annotations

from datetime import datetime


class EgsError(Exception):
    """Root of all errors that this project raises on purpose."""

    reason = "Error"

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        if reason is not None:
            self.reason = reason


class UserError(EgsError):
    """A person must change a file or a command line."""

    reason = "BadInput"


class Waiting(EgsError):  # noqa: N818 - nothing is wrong
    """Nothing is to be done before `until`; then the same call continues."""

    reason = "Busy"

    def __init__(self, message: str, until: datetime) -> None:
        super().__init__(message)
        self.until = until


class Fault(EgsError):  # noqa: N818 - the word of docs/reference/vocabulary.md
    """A failure of ours or of the world that may pass: retried with back-off, and reported if it stays."""

    reason = "Fault"
