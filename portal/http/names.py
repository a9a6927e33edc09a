"""What may be a name here, and what to say of one that may not. Pure.

The vendor's names go further: dots, upper case, up to 253 characters. Here a name is a folder, a file and a label of
Kubernetes at once. Held by tests/portal/http/test_names.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pydantic import TypeAdapter, ValidationError

from portal.http.errors import bad_parameters
from schemas.documents.base import Address
from schemas.reading.units import NAME_PATTERN
from schemas.rules.problems import quoted

_NAME = re.compile(NAME_PATTERN)
_ADDRESS: TypeAdapter[str] = TypeAdapter(Address)
SHOWN = 20
"""Names that a sentence lists at most."""


def checked_name(field: str, text: str) -> str:
    """The name as it is; ApiError 422 with what would do where it can be none here."""
    if _NAME.fullmatch(text):
        return text
    near = nearest(text)
    hint = f"; {near} would do" if near else ""
    raise bad_parameters(
        f"{field}: {quoted(text) or 'an empty text'} can be no name here: a name has 1 to 63 lower-case letters, "
        f"digits and '-', and begins and ends with a letter or digit{hint}"
    )


def nearest(text: str) -> str:
    """A name like that text; empty where nothing of it can stay."""
    kept = re.sub(r"[^a-z0-9]+", "-", text.lower())
    return kept[:63].strip("-")


def checked_address(field: str, text: str) -> str:
    """The mail address as it is; ApiError 422 for what is none."""
    if is_address(text):
        return text
    raise bad_parameters(f"{field}: {quoted(text) or 'an empty text'} is no mail address like bo@example.com")


def is_address(text: str) -> bool:
    """Whether it names somebody."""
    try:
        _ADDRESS.validate_python(text)
    except ValidationError:
        return False
    return "\n" not in text


def listed(names: Iterable[str]) -> str:
    """Some names for a sentence, in order."""
    found = sorted(names)
    more = len(found) - SHOWN
    return (", ".join(found[:SHOWN]) or "none") + (f" and {more} more" if more > 0 else "")
