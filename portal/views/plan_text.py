"""The plan of a view as JSON text: what does not tick is written once per view, the remaining waits at each question.

Pure. Held by tests/portal/test_plan_text.py: the same text as pydantic's of the same rows, at any time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic_core import to_json

from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.views.queues import schedule_of
from portal.views.view import View
from reconciler.queries.schedule import STARTED, Row, refusal_json

TICKING = "estimatedWaitSeconds"


@dataclass(frozen=True, slots=True)
class RowText:
    """A row of the plan, before and after its remaining wait."""

    slice: str
    before: str
    after: str
    start: datetime | None
    """None: the wait does not tick, and is part of `before`."""

    def at(self, now: datetime) -> str:
        """The row at that time."""
        if self.start is None:
            return self.before + self.after
        wait = int((self.start - now).total_seconds())
        return f"{self.before}{max(wait, 0)}{self.after}"


@dataclass(frozen=True, slots=True)
class PlanText:
    """The rows that one caller may see, and the refused requests."""

    commit: str
    rows: tuple[RowText, ...]
    refused: list[dict[str, Any]]

    def requests(self, now: datetime) -> str:
        """The rows at that time, as the text of a list."""
        return f"[{','.join([row.at(now) for row in self.rows])}]"

    def digest(self) -> str:
        """Of everything that does not tick."""
        found = hashlib.sha256(to_json([self.commit, self.refused]))
        found.update("\n".join([row.before + row.after for row in self.rows]).encode())
        return found.hexdigest()[:32]


def plan_text(view: View, caller: Caller) -> PlanText:
    """The plan without other workspaces' requests."""
    found, ids, redactor = view.once(schedule_of), view.facts.requests, Redactor(caller, view)
    refused = (one for one in found.refused if caller.may_see(one.key.partition("/")[0]))
    seen = {name: caller.may_see(name) for name in {row.slice for row in view.once(row_texts)}}
    return PlanText(
        view.main,
        tuple(row for row in view.once(row_texts) if seen[row.slice]),
        [
            {"gprId": ids[one.key].uid if one.key in ids else None, **redactor.strings(refusal_json(one))}
            for one in refused
        ],
    )


def row_texts(view: View) -> tuple[RowText, ...]:
    """Every row of the plan; call it through `view.once`."""
    ids = view.facts.requests
    return tuple(row_text(ids[row.key].uid, row, view.facts.at) for row in view.once(schedule_of).rows)


def row_text(uid: str, row: Row, now: datetime) -> RowText:
    pairs = [("gprId", uid), *row.json(now).items()]
    ticks = row.start is not None and row.phase not in STARTED
    place = 1 + [name for name, _ in pairs].index(TICKING)
    before, after = _fields(pairs[: place - ticks]), _fields(pairs[place:])
    hole = f',"{TICKING}":' if ticks else ""
    start = row.start if ticks else None
    return RowText(row.key.partition("/")[0], f"{{{before}{hole}", f",{after}}}", start)


def _fields(pairs: Iterable[tuple[str, Any]]) -> str:
    """Without the braces around them."""
    return to_json(dict(pairs)).decode()[1:-1]
