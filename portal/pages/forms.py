"""Fields of a form that a browser sent."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from portal.http.errors import bad_parameters

MOST_FIELDS = 200
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
    return {name: value.strip() for name, value in fields}


Sent = Annotated[Form, Depends(_form)]
"""The form of a POST."""
