"""What became of accepted writes, as far as this process knows: for those who follow them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from portal.writes.write_request import Landed

REMEMBERED = 10_000
"""Outcomes that are kept."""


@dataclass(slots=True)
class Outcomes:
    """By request id, with the address of whoever asked."""

    found: OrderedDict[str, tuple[str, Landed | Exception]] = field(default_factory=OrderedDict)

    def keep(self, id_: str, email: str, what: Landed | Exception) -> None:
        """Of the caller with that address."""
        self.found[id_] = (email, what)
        while len(self.found) > REMEMBERED:
            self.found.popitem(last=False)

    def of(self, id_: str, email: str) -> Landed | Exception | None:
        """Of that caller's request; None: nothing is known."""
        whose, what = self.found.get(id_, ("", None))
        return what if whose == email else None


def is_accepted(what: Landed | Exception) -> bool:
    """Whether nothing came of it yet."""
    return isinstance(what, Landed) and what.way == "accepted"
