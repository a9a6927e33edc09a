"""What is wrong with a repository, as values; what they quote of a file can steer no terminal, log or page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "notice"]

MOST_CHARACTERS = 500
"""Of a text that quotes what somebody wrote; names and keys of a file can be as long as the file."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One finding: where, what, and what to do. Lines and columns count from 1."""

    file: str
    line: int
    column: int
    rule: str
    severity: Severity
    message: str
    fix: str


def quoted(text: str) -> str:
    """The text as one line that shows what it holds: whatever does not print is written as an escape, the end cut.

    Bytes of a file's name that are no UTF-8 (Python keeps them as lone surrogates) come out as `\\xff`.
    """
    short = text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
    return short if short.isprintable() else "".join(map(_visible, short))


def _visible(letter: str) -> str:
    if letter.isprintable():
        return letter
    if "\udc80" <= letter <= "\udcff":
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")
