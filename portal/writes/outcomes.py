"""Outcomes of accepted writes known to this process, for callers that follow them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from portal.writes.write_request import Landed

REMEMBERED = 10_000


@dataclass(slots=True)
class Outcomes:
    """By request id, with the caller's address."""

    found: OrderedDict[str, tuple[str, Landed | Exception]] = field(default_factory=OrderedDict)

    def keep(self, id_: str, email: str, what: Landed | Exception) -> None:
        self.found[id_] = (email, what)
        while len(self.found) > REMEMBERED:
            self.found.popitem(last=False)

    def of(self, id_: str, email: str) -> Landed | Exception | None:
        """The outcome of that caller's request; None: unknown."""
        whose, what = self.found.get(id_, ("", None))
        return what if whose == email else None


def is_accepted(what: Landed | Exception) -> bool:
    """Whether it is still pending."""
    return isinstance(what, Landed) and what.way == "accepted"
