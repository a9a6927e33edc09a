"""Untrusted text in Markdown: shown literally, without formatting, links, mentions or embeds. Pure.

The author of a pull request chooses file names, values and titles, and forges render them with the reader's
rights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

LONGEST = 300
"""Characters of one piece of such text; the rest is cut."""
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_REFERENCES = re.compile(r"([@#!~$%&^])(?=\S)|(gh)(?=\\-\d)|([0-9a-f]{6})(?=[0-9a-f])", re.IGNORECASE)
"""Forges turn these into mentions, references and commit links after rendering, where a backslash has no effect."""
_JOINER = "\u200b"


def plain(text: str) -> str:
    """Prose: every special character is escaped, invisible characters are made visible."""
    return _REFERENCES.sub(rf"\g<0>{_JOINER}", _PUNCTUATION.sub(r"\\\1", _visible(text)))


def code(text: str) -> str:
    """A name or a path in a code span, safe within a table cell."""
    return f"`{_visible(text).replace('`', chr(0x2019)).replace('|', chr(0xA6)) or ' '}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _visible(text: str) -> str:
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(text.split()))
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
