"""Metrics have units, ranges have bounds, samples grow old (H5, H16)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.telemetry.telemetry_port import (
    MOST_POINTS,
    UNITS,
    GpuKey,
    GpuSample,
    Metric,
    Query,
)
from schemas.errors import UserError

NOW = datetime(2026, 3, 2, 8, 0, 7, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NODES = frozenset({("east", "h100-1")})


def query(back: timedelta, step: timedelta) -> Query:
    return Query(NODES, (Metric.POWER,), NOW - back, NOW, step)


def test_every_metric_has_a_unit() -> None:
    assert set(UNITS) == set(Metric)


@pytest.mark.parametrize(("age_s", "stale"), [(0, False), (60, False), (61, True)])
def test_a_sample_is_stale_after_a_minute(age_s, stale) -> None:
    sample = GpuSample(GpuKey("east", "h100-1", "GPU-1"), NOW - age_s * SECOND, {})
    assert sample.is_stale(NOW) is stale


@pytest.mark.parametrize(
    ("back_s", "step_s", "want"),
    [
        pytest.param(30, 10, ["07:59:40", "07:59:50", "08:00:00"], id="whole multiples of the step inside"),
        pytest.param(7, 7, ["08:00:02"], id="of any step"),
        pytest.param(3, 10, [], id="a range between two points has none"),
        pytest.param(0, 1, ["08:00:07"], id="both ends belong to it"),
    ],
)
def test_points_lie_on_multiples_of_the_step(back_s, step_s, want) -> None:
    found = query(back_s * SECOND, step_s * SECOND).instants()
    assert [f"{at:%H:%M:%S}" for at in found] == want


@pytest.mark.parametrize(
    ("back_s", "step_s"),
    [
        pytest.param(10, 0, id="no step"),
        pytest.param(10, 1.5, id="half a second"),
        pytest.param(-1, 10, id="ends before it begins"),
        pytest.param(10 * MOST_POINTS + 1, 10, id="too many points"),
    ],
)
def test_an_impossible_range_is_refused(back_s, step_s) -> None:
    with pytest.raises(UserError) as refused:
        query(back_s * SECOND, step_s * SECOND)
    assert refused.value.reason == "BadRange"


def test_a_point_summarises_at_least_a_minute() -> None:
    assert query(60 * SECOND, 10 * SECOND).window == 60 * SECOND
    assert query(3600 * SECOND, 600 * SECOND).window == 600 * SECOND
