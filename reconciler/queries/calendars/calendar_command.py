"""`egs get calendar` on a repository: the data of `GET calendar`, for a person who sees everything."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from reconciler.queries.arguments import time
from reconciler.queries.calendars.calendar_bars import bars_of, rows_of, waits_in
from reconciler.queries.calendars.calendar_rows import Data, Reader, Scene, Wanted, Window, calendar
from reconciler.queries.past.state_then import state_then
from reconciler.queries.state import State, clock, read_state
from reconciler.queries.tables import line
from reconciler.sources.command_errors import NotFound
from reconciler.sources.open_source import opened
from reconciler.sources.source import Source
from scheduler.plan import plan
from schemas.reading.units import seconds

Filters = Mapping[str, Any]


def calendar_of(repo: str | None, now: str | None, at: str | None, filters: Filters) -> Data:
    """All rows that match, with their bars in the window. Raises WrongUse and NotFound."""
    with opened(repo) as source:
        present = clock(now, source)
        if at is None:
            return _of_state(read_state(source, present), _tip(source), present, filters)
        then = state_then(source, at, present)
        return _of_state(then.state, then.kept.status, then.asked, filters)


def _tip(source: Source) -> str:
    """The status commit; empty: there is none."""
    found = source.status()
    return "" if found is None else found[1]


def _of_state(state: State, status: str, now: datetime, filters: Filters) -> Data:
    names = {name: filters[name] or "" for name in ("cluster", "pool", "shape", "slice")}
    if names["slice"] and names["slice"] not in state.wanted.slices:
        raise NotFound("slice", names["slice"], state.wanted.slices)
    since = time("--from", filters["from"]) or now
    window = Window(seconds(since), seconds(since + timedelta(hours=filters["hours"])))
    planned = plan(state.snapshot)
    bars = bars_of(state, planned)
    reader = Reader(frozenset(state.wanted.clusters))
    scene = Scene(state, rows_of(state, bars), line(state, planned).turns, waits_in(bars), reader)
    wanted = Wanted(**names, is_free=filters["free"])
    return calendar(scene, f"{status}.{state.commit or ''}", wanted, window)
