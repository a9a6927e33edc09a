"""Validation errors of a request as sentences that say what is expected. Pure.

They never repeat the input: it may be a secret. Held by tests/portal/http/test_validation_errors.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Sentence = Callable[[Mapping[str, Any]], str]
MOST_WHERE = 200
_WHATS: Mapping[str, str] = {
    "string": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "dict": "an object",
    "model": "an object",
    "model_attributes": "an object",
    "datetime": "a time such as 2026-11-21T08:00:00Z",
    "date": "a day such as 2026-11-21",
}
"""The expected type, by the prefix of pydantic's error type."""


def mistake(error: Mapping[str, Any]) -> str:
    """`field: what is expected`, for one error of pydantic."""
    where = ".".join(str(part) for part in error["loc"][1:]) or str(error["loc"][0])
    return f"{where[:MOST_WHERE]}: {_sentence(error)}"


def _sentence(error: Mapping[str, Any]) -> str:
    kind = str(error["type"])
    if kind in _SENTENCES:
        return _SENTENCES[kind](error.get("ctx") or {})
    begin, _, end = kind.rpartition("_")
    if end in ("type", "parsing") and begin in _WHATS:
        return f"this must be {_WHATS[begin]}"
    return str(error["msg"]).removeprefix("Value error, ")


def _is(word: str, key: str) -> Sentence:
    return lambda more: f"this must be {word}{more[key]}"


def _has(word: str, key: str, of: str) -> Sentence:
    return lambda more: f"this must have {word} {more[key]} {of}{'' if more[key] == 1 else 's'}"


_SENTENCES: Mapping[str, Sentence] = {
    "missing": lambda _: "this field is required",
    "extra_forbidden": lambda _: "there is no such field; leave it out, or correct its name",
    "greater_than_equal": _is("at least ", "ge"),
    "greater_than": _is("more than ", "gt"),
    "less_than_equal": _is("at most ", "le"),
    "less_than": _is("less than ", "lt"),
    "string_too_short": _has("at least", "min_length", "character"),
    "string_too_long": _has("at most", "max_length", "character"),
    "too_short": _has("at least", "min_length", "item"),
    "too_long": _has("at most", "max_length", "item"),
    "string_pattern_mismatch": lambda more: f"this must match {more['pattern']}",
    "literal_error": _is("", "expected"),
    "enum": _is("", "expected"),
    "int_from_float": lambda _: "this must be a whole number",
    "json_invalid": lambda _: "this is not valid JSON",
}
"""By pydantic's error type; the messages of our own validators pass unchanged."""
