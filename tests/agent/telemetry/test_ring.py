"""An agent remembers six hours of its GPUs, finely for an hour, and never more than fits (H5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agent.telemetry.ring import COARSE_SLOTS, FINE_SLOTS, Ring
from reconciler.telemetry.telemetry_port import Metric

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
START_S = int(START.timestamp())
HOUR_S = 3600
POWER, HEAT, XID = Metric.POWER, Metric.TEMPERATURE, Metric.XID


def filled(seconds: int, every_s: int = 10, first_s: int = 0) -> Ring:
    """Power is the number of the second, for as long as told."""
    ring = Ring()
    for second in range(first_s, seconds + 1, every_s):
        ring.put({"GPU-a": {POWER: float(second), HEAT: float(second)}}, START + timedelta(seconds=second))
    return ring


def asked(
    ring: Ring, since_s: int, until_s: int, step_s: int, window_s=60, metric=POWER
) -> list[float | None]:
    instants = range(START_S + since_s, START_S + until_s + 1, step_s)
    return ring.points("GPU-a", metric, instants, window_s)


def test_a_point_summarises_its_window_in_the_metrics_own_way() -> None:
    ring = filled(120)
    assert asked(ring, 60, 120, 60) == [35.0, 95.0]  # the mean of 10…60, of 70…120
    assert asked(ring, 60, 120, 60, metric=HEAT) == [60.0, 120.0]  # the highest


def test_the_last_hour_is_fine_and_the_rest_is_one_sample_a_minute() -> None:
    ring = filled(3 * HOUR_S)
    fine = asked(ring, 3 * HOUR_S - 100, 3 * HOUR_S, 10, window_s=10)
    assert fine == [float(second) for second in range(3 * HOUR_S - 100, 3 * HOUR_S + 1, 10)]
    assert asked(ring, HOUR_S, HOUR_S + 180, 60) == [
        HOUR_S - 35.0,
        HOUR_S + 25.0,
        HOUR_S + 85.0,
        HOUR_S + 145.0,
    ]


def test_six_hours_are_remembered_and_no_more() -> None:
    ring = filled(8 * HOUR_S)
    points = asked(ring, 0, 8 * HOUR_S, 60)
    known = [number for number, value in enumerate(points) if value is not None]
    assert known == list(range(known[0], 8 * 60 + 1))
    assert 6 * 60 - 1 <= len(known) <= 6 * 60 + 1


def test_there_is_no_gap_and_no_doubt_where_fine_becomes_coarse() -> None:
    ring = filled(2 * HOUR_S)
    points = asked(ring, HOUR_S - 600, HOUR_S + 600, 60, metric=HEAT)
    assert None not in points
    assert points == sorted(points)


def test_what_was_not_read_is_absent() -> None:
    ring = filled(600)
    for second in range(900, 1200, 10):
        ring.put({"GPU-a": {HEAT: 50.0}}, START + timedelta(seconds=second))
    assert asked(ring, 720, 1140, 60) == [None] * 8
    assert asked(ring, 960, 1140, 60, metric=HEAT) == [50.0] * 4


def test_an_unknown_gpu_or_metric_has_no_values() -> None:
    ring = filled(60)
    assert ring.points("GPU-b", POWER, range(START_S, START_S + 60, 30), 60) == [None, None]
    assert asked(ring, 0, 60, 60, metric=XID) == [None, None]


def test_points_after_the_last_reading_are_not_invented() -> None:
    assert asked(filled(60), 60, 240, 60) == [35.0, None, None, None]


def test_a_clock_that_is_set_back_adds_nothing() -> None:
    ring = filled(120)
    ring.put({"GPU-a": {POWER: 9999.0}}, START + timedelta(seconds=60))
    assert asked(ring, 60, 120, 60) == [35.0, 95.0]


def test_a_gpu_that_is_gone_is_forgotten_after_six_hours() -> None:
    ring = Ring()
    ring.put({"GPU-old": {POWER: 1.0}}, START)
    ring.put({"GPU-new": {POWER: 1.0}}, START + timedelta(hours=5))
    assert ring.uuids() == ("GPU-new", "GPU-old")
    ring.put({"GPU-new": {POWER: 1.0}}, START + timedelta(hours=6, seconds=1))
    assert ring.uuids() == ("GPU-new",)


def test_a_gpu_that_does_not_answer_leaves_no_sample() -> None:
    ring = filled(60)
    ring.put({"GPU-a": {}, "GPU-b": {}}, START + timedelta(seconds=120))
    assert asked(ring, 120, 120, 60) == [None]
    assert ring.uuids() == ("GPU-a",)


@pytest.mark.parametrize("every_s", [1, 7, 30, 60])
def test_any_interval_between_readings_fits(every_s) -> None:
    """Several readings in one slot: the last counts. Fewer: windows of a minute still have one."""
    points = asked(filled(2 * HOUR_S, every_s), 120, 2 * HOUR_S, 60, metric=HEAT)
    assert None not in points
    assert all(abs(value - 60 * (number + 2)) <= 60 for number, value in enumerate(points))


def test_memory_is_bounded() -> None:
    """Eight GPUs: 720 samples of 19 metrics in 8 bytes each are less than a megabyte."""
    assert (FINE_SLOTS + COARSE_SLOTS) * len(Metric) * 8 * 8 < 1 << 20
