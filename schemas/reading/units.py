"""Values as people write them: durations, instants, memory. Invalid values are refused, never guessed.

`Duration`, `Lasting` (a duration above zero) and `Instant` are pydantic field types; in Python they are
`timedelta` and aware UTC `datetime` in whole seconds.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from ipaddress import ip_network
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

_PARTS = "([0-9]{1,4}w)?([0-9]{1,5}d)?([0-9]{1,6}h)?([0-9]{1,8}m)?$"
DURATION_PATTERN = f"^(?=[0-9]){_PARTS}"
LASTING_PATTERN = f"^(?=[0-9])(?=.*[1-9]){_PARTS}"
INSTANT_PATTERN = (
    "^(19[7-9][0-9]|2[01][0-9]{2})-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?"
    "([Zz]|[+-][0-9]{2}:[0-9]{2})$"
)
"""The years are limited so that an instant plus any duration still fits a `datetime`."""
NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
LONG_NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$"
NETWORK_PATTERN = r"^[0-9A-Fa-f:.]{2,45}/[0-9]{1,3}$"
LINE_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]*$"
"""The strict loader refuses the other line-breaking characters; patterns of API servers cannot name them."""
LONGEST_NAME = 253
"""Longest name with dots, as in Kubernetes."""
MIB_ABOVE = 4096
"""No GPU has more than 4 TB of memory, so a larger value must be MiB (the vendor's SDK passes 81920)."""

# `$` in a pattern matches before a final line break; `fullmatch` does not.
_DURATION = re.compile(DURATION_PATTERN)
_INSTANT = re.compile(INSTANT_PATTERN)
_NETWORK = re.compile(NETWORK_PATTERN)


def parse_duration(text: object) -> timedelta:
    """Accepts `0d6h0m`, `6h`, `90m`, `1w`; raises ValueError for anything else."""
    if isinstance(text, timedelta):
        return text
    found = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError("a duration reads like 0d6h0m, 6h, 90m or 1w")
    weeks, days, hours, minutes = (int(part[:-1]) if part else 0 for part in found.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes)


def parse_lasting(text: object) -> timedelta:
    value = parse_duration(text)
    if value <= timedelta():
        raise ValueError("it must be above zero; a duration reads like 0d6h0m, 6h, 90m or 1w")
    return value


def format_duration(value: timedelta) -> str:
    """The canonical form `0d6h0m`; seconds are dropped."""
    minutes = int(value.total_seconds()) // 60
    return f"{minutes // 1440}d{minutes % 1440 // 60}h{minutes % 60}m"


def parse_instant(text: object) -> datetime:
    """An RFC 3339 time with a zone, as aware UTC in whole seconds (fractions are dropped)."""
    if isinstance(text, datetime):
        return text
    if not isinstance(text, str) or not _INSTANT.fullmatch(text):
        raise ValueError("a time reads like 2026-11-21T08:00:00Z")
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"no such time: {text}; a time reads like 2026-11-21T08:00:00Z") from error


def whole_second(value: datetime) -> datetime:
    """The last whole second: what documents say of that time."""
    return value.replace(microsecond=0)


def next_second(value: datetime) -> datetime:
    """The first whole second that is not before it."""
    last = whole_second(value)
    return last if last == value else last + timedelta(seconds=1)


def format_instant(value: datetime) -> str:
    """RFC 3339 in UTC, whole seconds, `Z`."""
    return _format_utc(value.astimezone(UTC))


@lru_cache(maxsize=4096)
def _format_utc(value: datetime) -> str:
    # A commit writes the same few instants thousands of times.
    return f"{value.isoformat()[:19]}Z"


def wire(value: datetime | None) -> str | None:
    """A time for data; None stays None."""
    return None if value is None else format_instant(value)


def seconds(value: datetime) -> int:
    """Whole seconds since 1970, the planner's unit of time."""
    return int(value.timestamp())


def instant(value: int) -> datetime:
    """The inverse of `seconds`."""
    return datetime.fromtimestamp(value, UTC)


def memory_gb(value: int) -> int:
    """GB of one GPU; a value above `MIB_ABOVE` is taken as MiB."""
    return value // 1024 if value > MIB_ABOVE else value


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(
        {"type": "string", "pattern": DURATION_PATTERN, "examples": ["0d6h0m", "6h", "90m", "1w"]}
    ),
]
Lasting = Annotated[
    timedelta,
    BeforeValidator(parse_lasting),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": LASTING_PATTERN, "examples": ["0d6h0m", "6h", "90m", "1w"]}),
]
Instant = Annotated[
    datetime,
    BeforeValidator(parse_instant),
    PlainSerializer(format_instant, return_type=str),
    WithJsonSchema({"type": "string", "pattern": INSTANT_PATTERN, "examples": ["2026-11-21T08:00:00Z"]}),
]
Name = Annotated[
    str, Field(pattern=NAME_PATTERN, description="lower-case letters, digits and '-', at most 63")
]
Shape = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
        description="Name of a GPU product.",
        examples=["H100-80GB"],
    ),
]
Line = Annotated[str, Field(pattern=LINE_PATTERN)]
"""Text for one line of a table, log or message: without line breaks or other control characters."""


def parse_network(text: object) -> str:
    """An IP network in its canonical form; bits of a host are dropped. One that names every address is refused."""
    if not isinstance(text, str) or _NETWORK.fullmatch(text) is None:
        raise ValueError("a network reads like 10.8.0.0/14 or fd00:8::/32")
    found = ip_network(text, strict=False)
    if not found.prefixlen:
        raise ValueError(f"{text} names every address; name those of the cluster's pods")
    return str(found)


Network = Annotated[
    str,
    BeforeValidator(parse_network),
    WithJsonSchema({"type": "string", "pattern": NETWORK_PATTERN, "examples": ["10.8.0.0/14"]}),
]
LongName = Annotated[
    str,
    Field(
        pattern=LONG_NAME_PATTERN,
        max_length=LONGEST_NAME,
        description="lower-case letters, digits, '-' and '.', at most 253",
        examples=["ip-10-0-0-1.example.internal"],
    ),
]
"""Names that Kubernetes allows for nodes and Secrets."""


def counted(count: int, thing: str, many: str = "") -> str:
    """`1 error`, `2 errors`; `many`: the plural, if it is not `thing` with an s."""
    return f"{count} {thing}" if count == 1 else f"{count} {many or f'{thing}s'}"
