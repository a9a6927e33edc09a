"""Problems of a repository as values; quoted file content is made safe for terminals, logs and pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "notice"]

MOST_CHARACTERS = 500
"""Length limit of texts that quote a file; names and keys in a file can be as long as the file."""


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

    @property
    def advice(self) -> str:
        """What is wrong, and what to do."""
        return f"{self.message}; {self.fix}"

    @property
    def sentence(self) -> str:
        """Where, what, and what to do."""
        return f"{self.file}:{self.line}: {self.advice}"


def quoted(text: str) -> str:
    """The text as one printable line: other characters are escaped, and the end is cut off.

    Bytes of a file name that are not UTF-8 (Python keeps them as lone surrogates) become `\\xff`.
    """
    short = text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
    return short if short.isprintable() else "".join(map(_visible, short))


def _visible(letter: str) -> str:
    if letter.isprintable():
        return letter
    if "\udc80" <= letter <= "\udcff":
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")
