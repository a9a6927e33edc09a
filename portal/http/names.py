"""Names in requests: which are allowed, and what to suggest instead. Pure.

The vendor allows more: dots, upper case, up to 253 characters. Here a name is a folder, a file and a Kubernetes
label at once. Held by tests/portal/http/test_names.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from fastapi import Query
from pydantic import TypeAdapter, ValidationError

from portal.http.errors import bad_parameters
from schemas.documents.base import Address
from schemas.reading.units import NAME_PATTERN
from schemas.rules.problems import quoted

_NAME = re.compile(NAME_PATTERN)
_ADDRESS: TypeAdapter[str] = TypeAdapter(Address)
SHOWN = 20
"""Most names listed in one sentence."""


def checked_name(field: str, text: str) -> str:
    """The name itself; ApiError 422 with a suggestion if it is not allowed."""
    if _NAME.fullmatch(text):
        return text
    suggested = nearest(text)
    hint = f"; {suggested} would be valid" if suggested else ""
    raise bad_parameters(
        f"{field}: {quoted(text) or 'an empty text'} is not a valid name: a name has 1 to 63 lower-case letters, "
        f"digits and '-', and begins and ends with a letter or digit{hint}"
    )


def nearest(text: str) -> str:
    """The closest valid name; empty if no character of the text can stay."""
    kept = re.sub(r"[^a-z0-9]+", "-", text.lower())
    return kept[:63].strip("-")


def checked_address(field: str, text: str) -> str:
    """The mail address itself; ApiError 422 if it is not one."""
    if is_address(text):
        return text
    raise bad_parameters(
        f"{field}: {quoted(text) or 'an empty text'} is not a mail address like bo@example.com"
    )


def is_address(text: str) -> bool:
    try:
        _ADDRESS.validate_python(text)
    except ValidationError:
        return False
    return "\n" not in text


def name_query(alias: str, what: str, example: str) -> Any:
    """A query parameter that names what a path is about."""
    return Query(alias=alias, min_length=1, max_length=253, description=what, examples=[example])


def name_query_or_body(alias: str, what: str) -> Any:
    """The same, if the body may name it instead."""
    return Query(alias=alias, max_length=253, description=what)


def listed(names: Iterable[str]) -> str:
    """Names for a sentence, sorted and shortened."""
    found = sorted(names)
    more = len(found) - SHOWN
    return (", ".join(found[:SHOWN]) or "none") + (f" and {more} more" if more > 0 else "")
