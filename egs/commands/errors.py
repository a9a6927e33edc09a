"""Refusals and faults of a command, with exit codes: 1 the answer is no, 2 wrong use, 3 something broke."""

from __future__ import annotations

from egs.exceptions import EgsApplicationException


class Said(Exception):  # noqa: N818 - a refusal is an answer
    """One sentence for stderr."""

    def __init__(self, sentence: str, reason: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.reason = reason
        self.exit_code = exit_code


def wrong_use(sentence: str) -> Said:
    """The command line makes no sense here."""
    return Said(sentence, "WrongUse", 2)


def not_allowed(sentence: str, reason: str = "NotAllowed") -> Said:
    """Understood, and the answer is no."""
    return Said(sentence, reason, 1)


def broken(sentence: str, reason: str = "Unavailable") -> Said:
    """The server does not answer, or a needed file cannot be read."""
    return Said(sentence, reason, 3)


def of(error: EgsApplicationException, login: str) -> Said:
    """The server's refusal or fault; `login` is the command that an unknown caller should run."""
    if error.status == 0 or error.status >= 500:
        return broken(str(error), error.key or "Unavailable")
    if error.status == 401:
        return not_allowed(f"{error}; `{login}` logs in again", error.key or "Unauthenticated")
    return not_allowed(str(error), error.key or "NotAllowed")
