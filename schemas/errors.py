"""Errors, by who must act.

For a `UserError` a person must change a file or a command line, a `Waiting` ends by itself at a known instant, a
`Fault` is a failure of ours or of the world and is retried with back-off. `reason` is a stable CamelCase identifier
for machines (docs/operations.md lists all); the text says where, what, and what to do, and never contains a
secret.
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
    """Nothing to do before `until`; then the same call continues."""

    reason = "Busy"

    def __init__(self, message: str, until: datetime) -> None:
        super().__init__(message)
        self.until = until


class Fault(EgsError):  # noqa: N818 - the word of docs/vocabulary.md
    """A failure that may pass: retried with back-off, alarmed if it stays."""

    reason = "Fault"
