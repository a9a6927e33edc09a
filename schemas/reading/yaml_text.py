"""Write plain data as block YAML that `strict_yaml.load` reads back as the same data.

The same data always gives the same text: keys keep their order, text is quoted only if necessary and never wrapped, so
a changed value is one changed line. Anything but dicts with text keys, lists, tuples, str, int, float, bool and None
raises TypeError. The loader's bounds (depth, size, forbidden characters) are not checked.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import Any

from schemas.reading.scalars import Ambiguous, classify

_PLAIN = re.compile(r"[A-Za-z0-9_/+(](?:[A-Za-z0-9_./+()@%=~^$, '-]|:(?=[^ ]))*(?<! )")
"""Texts without any YAML syntax; cautious rather than complete."""

_SIMPLE_KEY = 200
"""A longer key takes YAML's explicit form, because libyaml looks for the colon within 1,024 bytes only."""


def dump(data: Any) -> str:
    """One document as text, with a final line break."""
    lines: list[str] = []
    if isinstance(data, dict | list | tuple) and data:
        add_block(lines, data, "", "")
    else:
        lines.append(scalar_text(data))
    lines.append("")
    return "\n".join(lines)


def add_block(lines: list[str], data: Any, begin: str, indent: str) -> None:
    """Adds the lines of a non-empty mapping or list; the first one begins with `begin`, the others with `indent`.

    A flood of requests writes a million values, so this calls as little as possible.
    """
    deeper = f"{indent}  "
    if isinstance(data, dict):
        for key, value in data.items():
            head = _head(key, begin, indent)
            if isinstance(value, str):
                lines.append(f"{head} {string_text(value)}")
            elif isinstance(value, dict | list | tuple) and value:
                lines.append(head)
                add_block(lines, value, deeper, deeper)
            else:
                lines.append(f"{head} {scalar_text(value)}")
            begin = indent
        return
    for item in data:
        if isinstance(item, dict | list | tuple) and item:
            add_block(lines, item, f"{begin}- ", deeper)
        else:
            lines.append(f"{begin}- {scalar_text(item)}")
        begin = indent


def _head(key: Any, begin: str, indent: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"keys are text, this is {key!r}")
    text = string_text(key)
    return f"{begin}{text}:" if len(text) <= _SIMPLE_KEY else f"{begin}? {text}\n{indent}:"


def scalar_text(value: Any) -> str:
    """A value on one line: no list or mapping, unless it is empty."""
    if isinstance(value, str):
        return string_text(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and isfinite(value):
        # Exponents are refused as ambiguous, so all digits are written.
        digits = format(Decimal(repr(value)), "f")
        return digits if "." in digits else f"{digits}.0"
    if value in ({}, [], ()):
        return "{}" if isinstance(value, dict) else "[]"
    raise TypeError(f"this is not plain data: {value!r}")


@lru_cache(maxsize=8192)
def string_text(text: str) -> str:
    """Quoted if necessary."""
    if _PLAIN.fullmatch(text):
        try:
            if classify(text) == text:
                return text
        except Ambiguous:
            pass
    return json.dumps(text, ensure_ascii=False)
