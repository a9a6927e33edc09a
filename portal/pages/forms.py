"""Fields of a form that a browser sent, and the API's bodies made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from pydantic import BaseModel, ValidationError

from portal.http.errors import bad_parameters
from portal.http.validation_errors import mistake

Body = TypeVar("Body", bound=BaseModel)
MOST_FIELDS = 300
"""A list has 200 rows to pick from."""
MOST_MISTAKES = 10
"""Errors told of one form."""
Form = dict[str, str]


async def _form(request: Request) -> Form:
    """By name, without spaces around the values; of a name that comes twice the last one counts."""
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise bad_parameters("the body must be a form (application/x-www-form-urlencoded)")
    try:
        text = (await request.body()).decode()
        fields = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError as error:  # not UTF-8, or too many fields
        raise bad_parameters(
            f"the form cannot be read; it has at most {MOST_FIELDS} fields in UTF-8"
        ) from error
    return {name: _trimmed(value) for name, value in fields}


def _trimmed(value: str) -> str:
    """Without spaces around it; of several lines the first keeps its indentation, which YAML needs."""
    text = value.strip()
    return value.strip("\r\n").rstrip() if "\n" in text else text


Sent = Annotated[Form, Depends(_form)]
"""The form of a POST."""


def filled(kind: type[Body], fields: Mapping[str, Any]) -> Body:
    """The body of the API's route; ApiError 422 in the words of the API. Fields that are None are left out."""
    return stated(kind, {name: value for name, value in fields.items() if value is not None})


def stated(kind: type[Body], fields: Mapping[str, Any]) -> Body:
    """The same, but None is sent: in an edit it empties a field."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        found = [mistake({**one, "loc": ("form", *one["loc"])}) for one in error.errors()[:MOST_MISTAKES]]
        raise bad_parameters("; ".join(found)) from error


def whole(form: Form, name: str) -> int | None:
    """A whole number; None: the field is empty or absent. ApiError 422."""
    text = form.get(name, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise bad_parameters(f"{name}: this must be a whole number") from error


def listed(form: Form, name: str) -> list[str]:
    """Values with commas, spaces or new lines between them."""
    return form.get(name, "").replace(",", " ").split()
