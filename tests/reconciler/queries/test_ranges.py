"""Ranges of values: steps, bounds, marks (H5)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.queries.running.ranges import MOST_GPUS, Span, check_count, marks, metrics_of, span_of
from reconciler.sources.command_errors import WrongUse
from reconciler.telemetry.telemetry_port import MOST_POINTS, GpuKey, Metric, Point, Query, Series
from tests.reconciler.workloads.gpus import NOW

MINUTE = timedelta(minutes=1)
KEY = GpuKey("east", "h100-1", "GPU-1")


@pytest.mark.parametrize("minutes", [1, 30, 60, 360, 1440, 7 * 1440])
def test_a_step_gives_a_chart_about_as_many_points_as_it_needs(minutes: int) -> None:
    span = span_of(NOW, NOW - minutes * MINUTE, None)
    points = minutes * 60 / span.pace.total_seconds()
    assert points <= 240
    assert points <= MOST_POINTS
    Query(frozenset(), span.metrics, span.since, span.until, span.pace)


def test_without_bounds_it_is_the_last_hour() -> None:
    span = span_of(NOW, None, None)
    assert (span.since, span.until) == (NOW - timedelta(hours=1), NOW)
    assert span_of(NOW, None, NOW + MINUTE).until == NOW, "the future has no values"


@pytest.mark.parametrize(
    ("since", "until"),
    [(NOW, NOW), (NOW + MINUTE, None), (NOW - timedelta(days=8), None), (NOW, NOW - MINUTE)],
)
def test_an_empty_or_too_long_range_is_refused(since: object, until: object) -> None:
    with pytest.raises(WrongUse, match="a range"):
        span_of(NOW, since, until)  # type: ignore[arg-type]


def test_metrics_by_name() -> None:
    assert metrics_of(["xid", "temp_c", "xid"]) == (Metric.XID, Metric.TEMPERATURE)
    assert Span(NOW - MINUTE, NOW).metrics == metrics_of([])
    with pytest.raises(WrongUse, match="metrics are utilisation_percent"):
        metrics_of(["speed"])


def test_an_answer_has_a_bounded_number_of_gpus() -> None:
    check_count(MOST_GPUS)
    with pytest.raises(WrongUse, match="name a GPU or a workload"):
        check_count(MOST_GPUS + 1)


def line(metric: Metric, *values: float) -> Series:
    return Series(
        KEY, metric, MINUTE, tuple(Point(NOW + n * MINUTE, value) for n, value in enumerate(values))
    )


def test_marks_are_new_errors_and_beginnings_of_slowdowns() -> None:
    assert [mark["what"] for mark in marks(line(Metric.XID, 13, 13, 0, 79, 79, 31))] == ["Xid 79", "Xid 31"]
    slow = marks(line(Metric.THROTTLE, 0x20, 0x20, 0, 0x40, 0x40, 0x04, 0x80))
    assert [mark["what"] for mark in slow] == [
        "slowed down by heat",
        "slowed down by heat",
        "slowed down by the power brake",
    ]
    assert slow[0]["at"] == "2026-11-23T14:30:00Z"
    assert marks(line(Metric.TEMPERATURE, 99)) == []
