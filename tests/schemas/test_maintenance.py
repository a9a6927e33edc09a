"""When a maintenance window covers an instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.pools import occurrences
from schemas.documents.maintenance import Maintenance
from schemas.reading.units import seconds

BEGIN = datetime(2026, 11, 21, 8, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize(
    ("more", "at", "want"),
    [
        ({}, -HOUR, False),
        ({}, timedelta(0), True),
        ({}, HOUR, True),
        ({}, 2 * HOUR, False),
        ({"every": DAY}, 3 * DAY + HOUR, True),
        ({"every": DAY}, 3 * DAY + 2 * HOUR, False),
        ({"every": DAY, "until": BEGIN + 2 * DAY}, DAY + HOUR, True),
        ({"every": DAY, "until": BEGIN + 2 * DAY}, 2 * DAY + HOUR, False),
    ],
)
def test_a_window_covers_its_time(more, at, want):
    window = Maintenance(begin=BEGIN, end=BEGIN + 2 * HOUR, **more)
    assert window.covers(BEGIN + at) is want


@given(st.integers(-100, 2000), st.sampled_from([None, 24, 36, 168]), st.sampled_from([None, 30, 200]))
def test_it_covers_what_the_planner_leaves_free(hour: int, every: int | None, until: int | None):
    """One meaning of a window, for the agent and for the plan."""
    window = Maintenance(
        begin=BEGIN,
        end=BEGIN + 5 * HOUR,
        every=None if every is None else every * HOUR,
        until=None if every is None or until is None else BEGIN + until * HOUR,
    )
    now = BEGIN + hour * HOUR
    planned = any(w.begin <= seconds(now) < w.end for w in occurrences(window, seconds(now)))
    assert window.covers(now) is planned
