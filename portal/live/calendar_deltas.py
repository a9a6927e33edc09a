"""What differs between two calendars, by whole rows, so that telling it twice does no harm. Pure.

Held by tests/portal/live/test_calendar_rows.py: the calendar before, with its changed rows replaced, is the calendar
after.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from portal.http.context import Wire
from portal.identity.callers import Caller
from portal.live.calendar_rows import (
    At,
    CalendarRequest,
    CalendarRow,
    bars_of,
    rows_of,
    rows_with_requests,
    waits_for,
)
from portal.live.live_changes import id_of
from portal.views.queues import line_of
from portal.views.table_rows import clusters_seen
from portal.views.view import View
from reconciler.model.facts import NodeKey
from reconciler.queries.calendars.calendar_bars import Row, is_free
from schemas.reading.units import seconds

MOST_ROWS = 400
"""Most rows of one delta; beyond that a client asks for what it shows."""


class PoolFree(Wire):
    """Free nodes of a pool."""

    cluster: str
    pool: str
    free: int


class CalendarDelta(Wire):
    """Rows to draw anew."""

    before: str = Field(description="The calendar that it changes; with any other, ask again.")
    now: At = Field(description="When the plan was made, in seconds since 1970.")
    all: bool = Field(description="Anything may have changed; no rows are given.")
    rows: list[CalendarRow] = Field(description="Whole rows, with all their bars.")
    requests: dict[str, CalendarRequest]
    pools: list[PoolFree]


def delta(before: View, after: View, caller: Caller) -> CalendarDelta:
    """For callers who see the same as this one."""
    found, seen = changed_rows(before, after), clusters_seen(after, caller)
    rows = [] if found is None else [row for row in found.values() if row.pool[0] in seen]
    is_all = found is None or len(rows) > MOST_ROWS
    shown, known = rows_with_requests(after, caller, [] if is_all else rows)
    return CalendarDelta(
        before=id_of(before),
        now=seconds(after.facts.at),
        all=is_all,
        rows=shown,
        requests=known,
        pools=[
            PoolFree(cluster=key[0], pool=key[1], free=free)
            for key, free in after.once(_free).items()
            if key[0] in seen and not is_all
        ],
    )


def _free(view: View) -> Mapping[tuple[str, str], int]:
    now, found = seconds(view.facts.at), dict[tuple[str, str], int]()
    for row in view.once(rows_of):
        found[row.pool] = found.get(row.pool, 0) + is_free(row.bars, now)
    return found


def changed_rows(before: View, after: View) -> Mapping[NodeKey, Row] | None:
    """Rows whose bars or requests differ; None: the rows themselves do, or what is known of clusters."""
    old, new = before.once(rows_of), after.once(rows_of)
    is_alike = [row.key for row in old] == [row.key for row in new]
    if (
        not is_alike
        or before.facts.clusters != after.facts.clusters
        or before.wanted.pools != after.wanted.pools
    ):
        return None
    touched = _touched(before, after)
    return {
        row.key: row
        for was, row in zip(old, new, strict=True)
        if was.bars != row.bars
        or before.facts.nodes.get(row.key) != after.facts.nodes.get(row.key)
        or any(bar.key in touched for bar in row.bars)
    }


def _touched(before: View, after: View) -> set[str]:
    """Requests whose shown words changed."""
    turns = [view.once_planned(line_of).turns for view in (before, after)]
    waits = [view.once_planned(waits_for) for view in (before, after)]
    shown = {bar.key for bars in after.once_planned(bars_of).values() for bar in bars} - {""}
    old, new = before.facts.requests, after.facts.requests
    return {
        key
        for key in shown
        if old.get(key) != new.get(key)
        or turns[0].get(key) != turns[1].get(key)
        or waits[0].get(key) != waits[1].get(key)
    }
