"""Durations, instants, memory and handles as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.documents.base import Person
from schemas.reading.units import (
    format_duration,
    format_instant,
    instant,
    memory_gb,
    parse_duration,
    parse_instant,
    parse_lasting,
    seconds,
)

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("0d6h0m", 6 * HOUR, id="the canonical form"),
        pytest.param("6h", 6 * HOUR, id="hours alone"),
        pytest.param("90m", 1.5 * HOUR, id="more minutes than an hour has"),
        pytest.param("1w", 168 * HOUR, id="a week"),
        pytest.param("1w2d3h4m", timedelta(weeks=1, days=2, hours=3, minutes=4), id="all units"),
        pytest.param("0m", timedelta(), id="nothing"),
    ],
)
def test_a_duration_reads_as_written(text: str, want: timedelta) -> None:
    assert parse_duration(text) == want


@pytest.mark.parametrize(
    "text", ["", "6", "h", "6 h", "1h2d", "-6h", "6h\n", "1.5h", "6H", "٦h", "6s", None, 6, True]
)
def test_anything_else_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="a duration reads like"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["0m", "0d0h0m", "0w"])
def test_a_lease_lasts_longer_than_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="above zero"):
        parse_lasting(text)


@given(st.integers(0, 10**8))
def test_a_written_duration_is_read_back(minutes: int) -> None:
    value = timedelta(minutes=minutes)
    assert parse_duration(format_duration(value)) == value


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("2026-11-21T08:00:00Z", datetime(2026, 11, 21, 8, tzinfo=UTC), id="UTC"),
        pytest.param("2026-11-21t08:00:00z", datetime(2026, 11, 21, 8, tzinfo=UTC), id="small letters"),
        pytest.param(
            "2026-11-21T10:00:00.9+02:00",
            datetime(2026, 11, 21, 8, tzinfo=UTC),
            id="an offset, a fraction cut",
        ),
    ],
)
def test_an_instant_reads_as_written(text: str, want: datetime) -> None:
    assert parse_instant(text) == want


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2026-11-21",
            "2026-11-21T08:00:00",
            "2026-11-21 08:00:00Z",
            "2026-02-30T00:00:00Z",
            "2026-11-21T25:00:00Z",
        ),
        *(
            "1969-12-31T23:59:59Z",
            "2200-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "2026-11-21T08:00:00Z\n",
            "now",
            0,
        ),
    ],
)
def test_anything_else_is_no_instant(text: object) -> None:
    with pytest.raises(ValueError, match="a time reads like"):
        parse_instant(text)


@given(st.integers(0, seconds(datetime(2199, 12, 31, tzinfo=UTC))))
def test_a_written_instant_is_read_back(at: int) -> None:
    assert seconds(parse_instant(format_instant(instant(at)))) == at


def test_memory_above_4096_is_mib() -> None:
    assert [memory_gb(value) for value in (80, 4096, 81920)] == [80, 4096, 80]


@pytest.mark.parametrize(
    ("email", "name", "want"),
    [
        pytest.param("ada@example.com", None, "ada", id="what stands before the at sign"),
        pytest.param("Ada.Lovelace@example.com", None, "ada-lovelace", id="in small letters, dots as dashes"),
        pytest.param("ada@example.com", "countess", "countess", id="a name of one's own"),
    ],
)
def test_the_handle_of_a_person(email: str, name: str | None, want: str) -> None:
    assert Person(email=email, name=name).handle == want
