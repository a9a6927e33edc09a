"""The meaning of an unquoted YAML scalar on which all readers agree; any other is refused.

These are the scalars of YAML 1.2's core schema, except those that a YAML 1.1 reader understands differently: `no`
(false there), `010` (8), `1:30` (90), `1_000` (1000), `1e3` (text), `2026-11-21` (a date). An RFC 3339 date-time with a
zone is accepted all the same, as text: every field that holds one says so.
"""

from __future__ import annotations

import re
from math import isinf

MAX_INTEGER = 2**53
"""Readers that keep numbers as doubles round larger ones."""

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_AMBIGUOUS_WORDS = {
    **dict.fromkeys(("y", "yes", "n", "no", "on", "off"), "a truth value to some readers and text to others"),
    "<<": "a merge to some readers and text to others",
    "=": "a default value to some readers and text to others",
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?((0|[1-9][0-9]*)?[.][0-9]+|(0|[1-9][0-9]*)[.])")
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
# Possessive (`*+`) prevents backtracking: sixty thousand digits and a letter would take minutes.
_DIGITS = r"[0-9][0-9_]*+"
_AMBIGUOUS = tuple(
    (re.compile(pattern, re.IGNORECASE), meaning)
    for pattern, meaning in (
        (r"[-+]?0[0-9]+([.][0-9]*)?", "an octal number to some readers"),
        (r"[-+]?0x[0-9a-f_]+|[-+]?0o[0-7_]+|[-+]?0b[01_]+", "a number of another base to some readers"),
        (
            rf"(?=.*_)([-+]?{_DIGITS}([.][0-9_]*)?|[-+]?[.](?=_*[0-9])[0-9_]++)",
            "a number to readers that skip '_'",
        ),
        (rf"[-+]?({_DIGITS}([.][0-9_]*+)?|[.][0-9_]++)e[-+]?[0-9]+", "a number to some readers"),
        (rf"[-+]?{_DIGITS}(:[0-9_]+)+([.][0-9_]*)?", "a number to the base of 60 to some readers"),
        (r"[-+]?[.]inf|[.]nan", "not a number that can be computed with"),
        (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}", "a date to some readers"),
        (
            r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(t|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}([.][0-9]*)?"
            r"([ \t]*(z|[-+][0-9]{1,2}(:?[0-9]{2})?))?",
            "a time to some readers",
        ),
    )
)


class Ambiguous(ValueError):  # noqa: N818 - a refusal is an answer
    """A refused plain scalar; `rule` names the rule."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule, self.message = rule, message


def classify(text: str) -> str | int | float | bool | None:
    """The value of a plain scalar; raises `Ambiguous` if readers would disagree."""
    if text in _WORDS:
        return _WORDS[text]
    meaning = _AMBIGUOUS_WORDS.get(text.lower())
    if meaning is not None:
        raise Ambiguous("AmbiguousScalar", f"unquoted {text!r} is {meaning}")
    # Everything else that readers take for a number or a time starts with one of these.
    return text if text[0] not in "+-.0123456789" else _number_or_text(text)


def _number_or_text(text: str) -> str | int | float:
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    if _INTEGER.fullmatch(text):
        # Length first: converting thousands of digits is slow.
        if len(text) > 17 or abs(int(text)) > MAX_INTEGER:
            raise Ambiguous("NumberTooLarge", f"{shown} is beyond 2^53, where readers round differently")
        return int(text)
    if _FLOAT.fullmatch(text):
        if isinf(float(text)):
            raise Ambiguous("NumberTooLarge", f"{shown} is too large for a number")
        return float(text)
    if _DATE_TIME.fullmatch(text):
        return text
    for pattern, meaning in _AMBIGUOUS:
        if pattern.fullmatch(text):
            raise Ambiguous("AmbiguousScalar", f"unquoted {shown!r} is {meaning}")
    return text
