"""Write plain data as block YAML that `strictyaml.load` reads back as the same data.

The same data always gives the same text: keys keep their order, text is quoted only if necessary and never wrapped, so
a changed value is one changed line. Dicts with text keys, lists, tuples, str, int, float, bool and None are
supported; anything else raises TypeError. The loader's bounds (depth, size, forbidden characters) are not
checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
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
    lines = _block(data, "") if isinstance(data, dict | list | tuple) and data else [_scalar(data)]
    return "\n".join(lines) + "\n"


def _block(data: Any, indent: str) -> Iterator[str]:
    """The lines of a non-empty mapping or list."""
    deeper = f"{indent}  "
    if isinstance(data, dict):
        for key, value in data.items():
            head = _head(key, indent)
            if isinstance(value, dict | list | tuple) and value:
                yield head
                yield from _block(value, deeper)
            else:
                yield f"{head} {_scalar(value)}"
        return
    for item in data:
        if isinstance(item, dict | list | tuple) and item:
            lines = _block(item, deeper)
            yield f"{indent}- {next(lines)[len(deeper) :]}"
            yield from lines
        else:
            yield f"{indent}- {_scalar(item)}"


def _head(key: Any, indent: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"keys are text, this is {key!r}")
    text = _text(key)
    return f"{indent}{text}:" if len(text) <= _SIMPLE_KEY else f"{indent}? {text}\n{indent}:"


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
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
def _text(text: str) -> str:
    if _PLAIN.fullmatch(text):
        try:
            if classify(text) == text:
                return text
        except Ambiguous:
            pass
    return json.dumps(text, ensure_ascii=False)
