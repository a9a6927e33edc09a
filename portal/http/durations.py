"""Durations in the API: accepted as in files and as in answers (`1h0m0s`). Pure.

Held by tests/portal/vendor/test_template_models.py.
"""

from __future__ import annotations

import re
from datetime import timedelta

from portal.http.errors import bad_parameters
from schemas.reading.units import parse_lasting
from schemas.rules.problems import quoted

_WITH_SECONDS = re.compile(r"(.*[wdhm])0{1,2}s", re.DOTALL)


def checked_duration(field: str, text: str) -> timedelta:
    """Above zero, in whole minutes; ApiError 422 for anything else."""
    found = _WITH_SECONDS.fullmatch(text)
    try:
        return parse_lasting(found.group(1) if found else text)
    except ValueError as error:
        raise bad_parameters(
            f"{field}: {quoted(text) or 'an empty text'} is not a duration; write for example 0d6h0m, 6h, 90m or 1w, "
            "in whole minutes and above zero"
        ) from error
