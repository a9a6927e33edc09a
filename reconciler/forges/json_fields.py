"""Reads a forge's JSON: if a field has another type than requested, the whole answer is refused. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from schemas.errors import Fault

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_OID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
MOST_ID = 2**63


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON object of the answer to `where`. A field of the wrong type raises Fault `ForgeRefused`."""

    values: Mapping[str, Json]
    where: str

    @staticmethod
    def of(value: Json, where: str) -> Row:
        if not isinstance(value, dict):
            raise _odd(where, "is not an object")
        return Row(value, where)

    @staticmethod
    def list_of(value: Json, where: str) -> list[Row]:
        if not isinstance(value, list):
            raise _odd(where, "is not a list")
        return [Row.of(item, where) for item in value]

    def has(self, name: str) -> bool:
        return self.values.get(name) is not None

    def text(self, name: str) -> str:
        """A string, which may be empty."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise _odd(self.where, f"has no text {name!r}")
        return value

    def maybe_text(self, name: str) -> str:
        """A string; empty if absent."""
        return self.text(name) if self.has(name) else ""

    def number(self, name: str) -> int:
        """A whole number, 0 or more."""
        value = self.values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < MOST_ID:
            raise _odd(self.where, f"has no number {name!r}")
        return value

    def flag(self, name: str) -> bool:
        """A boolean; false if absent."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            raise _odd(self.where, f"has {name!r} that is neither true nor false")
        return value is True

    def oid(self, name: str) -> str:
        """A full object id of Git."""
        value = self.text(name)
        if not _OID.fullmatch(value):
            raise _odd(self.where, f"has no object id {name!r}")
        return value

    def maybe_oid(self, name: str) -> str:
        """A full object id of Git; empty if absent."""
        return self.oid(name) if self.maybe_text(name) else ""

    def row(self, name: str) -> Row:
        return Row.of(self.values.get(name), f"{self.where} {name}")

    def maybe_row(self, name: str) -> Row | None:
        """A nested object; None if absent."""
        return self.row(name) if self.has(name) else None

    def rows(self, name: str) -> list[Row]:
        """Objects of a nested list; empty if absent."""
        return Row.list_of(self.values[name], f"{self.where} {name}") if self.has(name) else []

    def texts(self, name: str) -> list[str]:
        """Strings of a nested list; empty if absent."""
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise _odd(self.where, f"has no list {name!r}")
        return [item for item in value if isinstance(item, str)]

    def when(self, name: str) -> datetime:
        """An instant, UTC."""
        try:
            found = datetime.fromisoformat(self.text(name))
        except ValueError:
            raise _odd(self.where, f"has no time {name!r}") from None
        if found.tzinfo is None:
            raise _odd(self.where, f"has a time {name!r} without a time zone")
        return found.astimezone(UTC)


def plain(text: str, most: int) -> str:
    """Untrusted text as one line, cut at `most` characters and without terminal control characters."""
    clean = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def _odd(where: str, what: str) -> Fault:
    return Fault(
        f"the forge's answer to {where.partition('?')[0]} {what}; is --forge the right kind?", "ForgeRefused"
    )
