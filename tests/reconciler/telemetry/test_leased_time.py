"""A caller sees a GPU's values only of the time in which its node was leased to a slice of theirs (H5, H16)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.telemetry.leased_time import Interval, joined, visible_latest, visible_ranges
from reconciler.telemetry.telemetry_port import (
    GpuKey,
    GpuSample,
    Latest,
    Metric,
    Point,
    Ranges,
    Series,
    Silence,
)

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NODE, OTHER = ("east", "h100-1"), ("east", "h100-2")
GPU = GpuKey("east", "h100-1", "GPU-1")


def at(minute: float) -> datetime:
    return START + minute * MINUTE


def interval(since: float, until: float | None) -> Interval:
    return Interval(at(since), None if until is None else at(until))


def ranges(*minutes: int, window: timedelta = MINUTE) -> Ranges:
    return Ranges((Series(GPU, Metric.POWER, window, tuple(Point(at(m), 1.0) for m in minutes)),))


def seen_minutes(found: Ranges) -> list[int]:
    return [(p.at - START) // MINUTE for series in found.series for p in series.points]


@pytest.mark.parametrize(
    ("leases", "want"),
    [
        pytest.param([interval(0, 9)], [1, 2, 3, 4, 5], id="a lease over all of it shows all"),
        pytest.param([interval(2, 4)], [3], id="the first whole window, and nothing of the instant it ends"),
        pytest.param([interval(2.5, 4.5)], [4], id="a window that began before the lease is left out"),
        pytest.param([interval(3, None)], [4, 5], id="a lease that goes on"),
        pytest.param(
            [interval(0, 2.5), interval(2.5, 9)], [1, 2, 3, 4, 5], id="leases in a row leave no gap"
        ),
        pytest.param([interval(0, 2), interval(3, 9)], [1, 4, 5], id="another's lease between two of mine"),
        pytest.param([], [], id="no lease shows nothing"),
    ],
)
def test_points(leases, want) -> None:
    found = visible_ranges(ranges(1, 2, 3, 4, 5), {NODE: leases, OTHER: [interval(0, None)]})
    assert seen_minutes(found) == want


def test_a_series_without_visible_points_is_absent() -> None:
    assert visible_ranges(ranges(1, 2), {NODE: [interval(5, 6)]}).series == ()


@pytest.mark.parametrize(("minute", "seen"), [(1.9, False), (2, True), (3.9, True), (4, False)])
def test_a_sample_counts_when_it_was_measured_not_when_it_is_asked_for(minute, seen) -> None:
    latest = Latest((GpuSample(GPU, at(minute), {Metric.POWER: 1.0}),))
    assert bool(visible_latest(latest, {NODE: [interval(2, 4)]}).samples) is seen


def test_silences_name_only_nodes_of_the_caller() -> None:
    silences = tuple(
        Silence(cluster, "MetricsUnreachable", "…", node)
        for cluster, node in (("east", ""), ("west", ""), ("east", "h100-1"), ("east", "h100-2"))
    )
    leased = {NODE: [interval(0, None)]}
    for found in (visible_latest(Latest((), silences), leased), visible_ranges(Ranges((), silences), leased)):
        assert [(s.cluster, s.node) for s in found.silences] == [("east", ""), ("east", "h100-1")]


minutes = st.integers(0, 60)
intervals = st.builds(
    lambda since, lasts: interval(since, None if lasts is None else since + lasts),
    minutes,
    st.none() | st.integers(1, 20),
)


@given(st.lists(intervals, max_size=6), minutes, st.integers(1, 10))
def test_no_instant_outside_of_the_leases_has_a_part_in_what_is_seen(leases, minute, width) -> None:
    found = visible_ranges(ranges(minute, window=width * MINUTE), {NODE: leases})
    leased = all(
        any(i.covers(at(minute - half / 2), at(minute - half / 2)) for i in leases)
        for half in range(2 * width)
    )
    assert bool(found.series) is leased


@given(st.lists(intervals, max_size=6))
def test_joined_intervals_cover_the_same_time(leases) -> None:
    whole = joined(leases)
    assert all(a.until is not None and a.until < b.since for a, b in pairwise(whole))
    for half in range(170):
        instant = at(half / 2)
        assert any(i.covers(instant, instant) for i in leases) is any(
            i.covers(instant, instant) for i in whole
        )
