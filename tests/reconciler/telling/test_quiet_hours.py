"""Quiet hours by the clocks of people: nights that pass midnight, weekends, and clocks that are set (H12)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.telling.quiet_hours import free_from, is_quiet
from schemas.documents.notifications import QuietHours
from tests.support.profile import law

CLOCKS = st.times().map(lambda t: f"{t:%H:%M}")
ZONES = st.sampled_from(
    [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "No/Where",
    ]
)
QUIET = st.builds(QuietHours, begin=CLOCKS, end=CLOCKS, time_zone=ZONES, weekends=st.booleans())
INSTANTS = st.datetimes(
    datetime.fromisoformat("2026-01-01"),
    datetime.fromisoformat("2027-12-31"),
    timezones=st.just(UTC),
)
NIGHT = QuietHours(begin="22:00", end="07:00", time_zone="Europe/Berlin", weekends=True)


@pytest.mark.parametrize(
    ("at", "free"),
    [
        pytest.param("2026-11-18T20:59", "2026-11-18T20:59", id="the last minute of the evening"),
        pytest.param("2026-11-18T21:00", "2026-11-19T06:00", id="the night begins at ten in Berlin"),
        pytest.param("2026-11-19T02:00", "2026-11-19T06:00", id="after midnight"),
        pytest.param("2026-11-20T21:30", "2026-11-23T06:00", id="Friday night is over on Monday"),
        pytest.param("2026-11-22T12:00", "2026-11-23T06:00", id="Sunday noon"),
        pytest.param("2026-07-15T21:30", "2026-07-16T05:00", id="summer time"),
        pytest.param("2026-03-29T00:30", "2026-03-30T05:00", id="the Sunday on which clocks are set"),
    ],
)
def test_nights_and_weekends(at: str, free: str) -> None:
    assert free_from(NIGHT, _utc(at)) == _utc(free)


def test_hours_that_end_when_they_begin_are_none() -> None:
    none = QuietHours(begin="08:00", end="08:00")
    assert not any(is_quiet(none, _utc("2026-11-18T00:00") + timedelta(minutes=m)) for m in range(1440))
    assert not is_quiet(None, _utc("2026-11-18T00:00"))


@given(quiet=QUIET, at=INSTANTS)
@law(200)
def test_what_waits_for_the_end_of_quiet_hours_never_disturbs_and_waits_no_longer(
    quiet: QuietHours, at: datetime
) -> None:
    free = free_from(quiet, at)
    assert not is_quiet(quiet, free)
    assert free >= at
    if not is_quiet(quiet, at):
        assert free == at
    # Where clocks are set forward at the very end, it may be an hour late.
    steps = range(0, max(0, int((free - at).total_seconds()) // 60 - 60), 7)
    assert all(is_quiet(quiet, at + timedelta(minutes=m)) for m in steps)


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
