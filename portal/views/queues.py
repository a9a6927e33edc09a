"""The queue and the plan of a view: the rows of `egs get queue` and `egs plan`, worked out once. Pure.

Held by tests/portal/test_queue.py: the same rows as the command gives, each with the request's id; people see those of
their slices with their true rank and position.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.views.view import View
from reconciler.model.request_files import read_filings
from reconciler.queries import tables
from reconciler.queries.schedule import Schedule, full_plan, refusal_json, schedule, unread_refusal
from reconciler.queries.tables import Line
from scheduler.plan import plan
from scheduler.snapshot import Plan, Refusal
from schemas.reading.units import parse_instant, wire

Row = dict[str, Any]


def plan_of(view: View) -> Plan:
    """The standing plan; ask by `view.once_planned`."""
    return plan(view.state.snapshot)


def line_of(view: View) -> Line:
    """Everybody who waits, in rank order; ask by `view.once_planned`."""
    return tables.line(view.state, view.once_planned(plan_of))


def queue(view: View, caller: Caller, slice_: str = "", cluster: str = "") -> list[str]:
    """Who waits, as slice/name in rank order, as far as the caller may see it."""
    return [
        key
        for key, turn in view.once_planned(line_of).turns.items()
        if caller.may_see(name := key.partition("/")[0])
        and slice_ in ("", name)
        and cluster in ("", turn.pool and turn.pool[0])
    ]


def queue_row(view: View, key: str, now: datetime) -> Row | None:
    """The row of somebody who waits, with the wait that is left at `now`; None: it does not wait."""
    line = view.once_planned(line_of)
    if key not in line.turns:
        return None
    row = tables.queue_row(view.state, line, key)
    start = row["estimatedStartTime"]
    wait = None if start is None else max(0, int((parse_instant(start) - now).total_seconds()))
    return {"gprId": view.facts.requests[key].uid, **row, "estimatedWaitSeconds": wait}


def schedule_of(view: View) -> Schedule:
    """The whole schedule, with who is refused; ask by `view.once`."""
    state = view.state
    planned = view.once_planned(plan_of)
    return schedule(state.facts.requests, state.snapshot, state.wanted, _unread(view), planned)


def full_plan_of(view: View) -> Plan:
    """The standing plan, with what would fit for whoever fits nowhere; ask by `view.once`."""
    state = view.state
    return full_plan(state.facts.requests, state.snapshot, state.wanted, view.once_planned(plan_of))


def plan_json(view: View, caller: Caller, now: datetime) -> dict[str, Any]:
    """The answer of `egs plan -o json`, without the requests of others."""
    found, ids, redactor = view.once(schedule_of), view.facts.requests, Redactor(caller, view)
    rows = (row for row in found.rows if caller.may_see(row.key.partition("/")[0]))
    refused = (one for one in found.refused if caller.may_see(one.key.partition("/")[0]))
    return {
        "now": wire(now),
        "commit": view.main,
        "requests": [{"gprId": ids[row.key].uid, **row.json(now)} for row in rows],
        "refused": [{"gprId": _id(view, one.key), **redactor.strings(refusal_json(one))} for one in refused],
    }


def _unread(view: View) -> Iterator[Refusal]:
    """Files that nobody can read as a request, and that nobody has on record."""
    for key, filed in sorted(read_filings(view.wanted.filed)):
        if filed.spec is None and key not in view.facts.requests:
            yield unread_refusal(key, filed, None, view.wanted, view.problems)


def _id(view: View, key: str) -> str | None:
    """Its id; a file that was never read has none."""
    status = view.facts.requests.get(key)
    return None if status is None else status.uid
