"""What can go wrong, by who must act.

A `UserError` is mended by editing a file or a command line, a `Waiting` mends itself at a known
instant, a `Fault` is our or the world's trouble and is retried with back-off. `reason` is a stable
CamelCase word for machines (all are listed in docs/operations.md); the text says where, what, and
what to do, and never holds a secret.
"""

from __future__ import annotations

from datetime import datetime


class EgsError(Exception):
    """Root of every error this project raises on purpose."""

    reason = "Error"

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        if reason is not None:
            self.reason = reason


class UserError(EgsError):
    """Somebody has to change a file or a command line."""

    reason = "BadInput"


class Waiting(EgsError):  # noqa: N818 - nothing is wrong
    """Nothing to do before `until`; the same call then goes on where it was."""

    reason = "Busy"

    def __init__(self, message: str, until: datetime) -> None:
        super().__init__(message)
        self.until = until


class Fault(EgsError):  # noqa: N818 - the word of docs/vocabulary.md
    """Trouble that may pass: retried with back-off, alarmed when it stays."""

    reason = "Fault"
