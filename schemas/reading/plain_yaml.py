"""Read YAML without syntax that needs a parser: block mappings and lists in steps of two spaces, one value a line.

Our own files and most people's are of this form. `plain_value` gives what `strict_yaml.load` would, or None: then only
the parser can tell, and refuses with a place. A line is a value, so lines that files repeat are understood once.

Held by tests/schemas/reading/test_plain_yaml.py. Worth it: with libyaml's events a record takes five times as long.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from schemas.reading.scalars import Ambiguous, classify

_KEY = r"[A-Za-z][A-Za-z0-9_./-]*"
_QUOTED = r'"([ !#-\[\]-~]*)"'
_PLAIN = r"[A-Za-z0-9_/+(](?:[A-Za-z0-9_./+()@%=~^$, '-]|:(?=[^ ]))*(?<! )"
_LINE = re.compile(rf"((?:  )*)(- )?(?:({_KEY}):(?: (?=[^ ])|$))?(?:{_QUOTED}|({_PLAIN}))?")
_LONGEST = 500
"""libyaml looks for a key's colon within 1,024 bytes."""
_DEEPEST = 40
"""Spaces: a step may be a list of mappings, so this is less than `strict_yaml.MAX_DEPTH`."""
_KNOWN_LINES, _KNOWN_LENGTH = 8192, 64


class _Line(NamedTuple):
    indent: int  # -1: not plain
    is_item: bool
    key: str | None
    value: Any  # `_BELOW`: on the next lines


_BELOW = object()
_NOT_PLAIN = _Line(-1, is_item=False, key=None, value=None)


class _Lines(dict[str, _Line]):
    """Cache of lines; cleared when full, so that no input makes it grow."""

    def __missing__(self, line: str) -> _Line:
        if len(self) >= _KNOWN_LINES:
            self.clear()
        found = _understood(line)
        if len(line) <= _KNOWN_LENGTH:
            self[line] = found
        return found


_lines = _Lines()


def _understood(line: str) -> _Line:
    found = _LINE.fullmatch(line) if len(line) <= _LONGEST else None
    if found is None:
        return _NOT_PLAIN
    indent, dash, key, quoted, plain = found.groups()
    if key is None and quoted is None and plain is None:
        return _NOT_PLAIN
    try:
        if len(indent) > _DEEPEST or (key is not None and classify(key) != key):
            return _NOT_PLAIN
        value = classify(plain) if plain is not None else _BELOW if quoted is None else quoted
    except Ambiguous:
        return _NOT_PLAIN
    return _Line(len(indent), dash is not None, key, value)


def plain_value(text: str, max_lines: int) -> dict[str, Any] | None:  # noqa: C901 - one table of lines
    """The document's mapping. None: it is not of this form, has more lines, or may be refused.

    This loop runs for every line of a repository: it uses local names and calls little.
    """
    lines = text.split("\n")
    if lines.pop() or len(lines) > max_lines:
        return None
    top: dict[str, Any] = {}
    known, stack, at = _lines, list[tuple[Any, int]](), 0
    into: Any = top
    above: str | None = None  # a key whose value begins on this line
    for line in lines:
        indent, is_item, key, value = known[line]
        if above is not None:
            if indent != at + 2:
                return None
            below: Any = [] if is_item else {}
            into[above] = below
            stack.append((into, at))
            into, at, above = below, indent, None
        elif indent != at:
            if not 0 <= indent < at:
                return None
            while indent < at:
                into, at = stack.pop()
            if indent != at:
                return None
        if is_item:
            if type(into) is not list:
                return None
            if key is None:
                into.append(value)
                continue
            item: dict[str, Any] = {}
            into.append(item)
            stack.append((into, at))
            into, at = item, indent + 2
        elif key is None or type(into) is list or key in into:
            return None
        if value is _BELOW:
            above = key
        else:
            into[key] = value
    return None if above is not None else top or None
