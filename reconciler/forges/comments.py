"""Posts on a forge, and avoids repeating them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from reconciler.forges.forge_http import Api
from reconciler.forges.forge_port import CommitState
from reconciler.forges.json_fields import Row
from schemas.errors import Fault

LONGEST_DESCRIPTION = 140
"""Characters of a commit status: the strictest forge's limit."""
LONGEST_COMMENT = 60_000
"""Characters of a comment: slightly below the strictest forge's limit."""
CUT_OFF = "\n\n… the rest is omitted, because the comment would be too long. `egs check-pr` prints all of it."
MOST_KEPT = 2000


@dataclass(frozen=True, slots=True)
class Said:
    """The present content of one commit status."""

    state: CommitState
    description: str
    url: str


@dataclass(slots=True)
class Posted:
    """What this process knows to be on the forge; the oldest entries are dropped, and looked up again if needed."""

    statuses: OrderedDict[tuple[str, str], Said] = field(default_factory=OrderedDict)  # by commit, context

    def note_status(self, commit: str, context: str, said: Said) -> None:
        self.statuses[commit, context] = said
        while len(self.statuses) > MOST_KEPT:
            self.statuses.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Where:
    """API paths of pull request comments."""

    listing: Callable[[int], str]  # path of the comments of one pull request
    one: Callable[[int, int], str]  # path of one comment, by pull request and id
    verb: Literal["PATCH", "PUT"]  # the method to change one
    is_own: Callable[[Row], bool]  # identifies our own: anyone may write the marker
    asked: Mapping[str, str] = field(default_factory=dict)


class Comments:
    """Our single comment on each pull request, identified by a marker line."""

    def __init__(self, api: Api, where: Where) -> None:
        self._api, self._where = api, where
        self._known: OrderedDict[tuple[int, str], tuple[int, str]] = OrderedDict()

    def put(self, number: int, marker: str, body: str) -> None:
        text = commented(body)
        found = self._found(number, marker)
        if found is not None and found[1].strip() == text.strip():  # some forges trim comments
            return
        made = None if found is None else self._changed(number, found[0], text)
        if made is None:
            made = self._api.send("POST", self._where.listing(number), {"body": text})
        self._keep(number, marker, made.number("id"), text)

    def _found(self, number: int, marker: str) -> tuple[int, str] | None:
        """Its id and text; looked up once."""
        if (number, marker) not in self._known:
            for row in self._api.rows(self._where.listing(number), self._where.asked):
                body = row.maybe_text("body").replace("\r\n", "\n")
                if marker in body.split("\n") and self._where.is_own(row):
                    self._keep(number, marker, row.number("id"), body)
                    break
        return self._known.get((number, marker))

    def _changed(self, number: int, comment: int, text: str) -> Row | None:
        """None if it was deleted, or was not ours after all."""
        try:
            return self._api.send(self._where.verb, self._where.one(number, comment), {"body": text})
        except Fault as fault:
            if fault.reason != "ForgeRefused":
                raise
            return None

    def _keep(self, number: int, marker: str, comment: int, text: str) -> None:
        self._known[number, marker] = (comment, text)
        while len(self._known) > MOST_KEPT:
            self._known.popitem(last=False)


def described(text: str) -> str:
    """A description within every forge's limits."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_DESCRIPTION else line[: LONGEST_DESCRIPTION - 1] + "…"


def commented(body: str) -> str:
    """A comment within every forge's limits."""
    return body if len(body) <= LONGEST_COMMENT else body[: LONGEST_COMMENT - len(CUT_OFF)] + CUT_OFF
