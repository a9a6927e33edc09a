"""The queue and the plan of a view: the rows of `egs get queue` and `egs plan`, computed once. Pure.

Held by tests/portal/test_queue.py: the same rows as the command prints, each with the request's id; callers see the
rows of their slices with their true rank and position.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from portal.identity.callers import Caller
from portal.views.view import View
from reconciler.queries import tables
from reconciler.queries.plans import unread_refusals
from reconciler.queries.schedule import Schedule, full_plan, schedule
from reconciler.queries.tables import Line
from scheduler.plan import plan
from scheduler.snapshot import Plan
from schemas.reading.units import parse_instant

Row = dict[str, Any]


def plan_of(view: View) -> Plan:
    """The current plan; call it through `view.once_planned`."""
    return plan(view.state.snapshot)


def line_of(view: View) -> Line:
    """All waiting requests in rank order; call it through `view.once_planned`."""
    return tables.line(view.state, view.once_planned(plan_of))


def queue(view: View, caller: Caller, slice_: str = "", cluster: str = "") -> list[str]:
    """Waiting requests that the caller may see, as slice/name in rank order."""
    return [
        key
        for key, turn in view.once_planned(line_of).turns.items()
        if caller.may_see(name := key.partition("/")[0])
        and slice_ in ("", name)
        and cluster in ("", turn.pool and turn.pool[0])
    ]


def queue_row(view: View, key: str, now: datetime) -> Row | None:
    """The row of a waiting request, with the remaining wait at `now`; None: it does not wait."""
    line = view.once_planned(line_of)
    if key not in line.turns:
        return None
    row = tables.queue_row(view.state, line, key)
    start = row["estimatedStartTime"]
    wait = None if start is None else max(0, int((parse_instant(start) - now).total_seconds()))
    return {"gprId": view.facts.requests[key].uid, **row, "estimatedWaitSeconds": wait}


def schedule_of(view: View) -> Schedule:
    """The whole schedule with refused requests; call it through `view.once`."""
    state = view.state
    planned = view.once_planned(plan_of)
    return schedule(state.facts.requests, state.snapshot, state.wanted, unread_refusals(state), planned)


def full_plan_of(view: View) -> Plan:
    """The current plan, with what would fit for requests that fit nowhere; call it through `view.once`."""
    state = view.state
    return full_plan(state.facts.requests, state.snapshot, state.wanted, view.once_planned(plan_of))
