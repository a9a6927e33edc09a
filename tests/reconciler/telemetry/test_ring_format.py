"""A node's answer is read strictly, and speaks of that node alone (H5, H16)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.telemetry.ring_format import (
    MOST_GPUS,
    asked,
    latest_text,
    question,
    range_text,
    samples_from,
    series_from,
)
from reconciler.telemetry.telemetry_port import GpuKey, GpuSample, Metric, PodRef, Query
from schemas.errors import Fault

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
NOW_S = int(NOW.timestamp())
NODE, OTHER = ("east", "h100-1"), ("east", "h100-2")
GPU = {"uuid": "GPU-a", "index": 0, "product": "H100", "at": NOW_S, "values": {"power_w": 1.5}, "pods": []}
QUERY = Query(
    frozenset({NODE}),
    (Metric.POWER, Metric.TEMPERATURE),
    NOW,
    NOW + timedelta(minutes=2),
    timedelta(minutes=1),
)


def latest(**changed) -> bytes:
    return json.dumps({"gpus": [{**GPU, **changed}]}).encode()


def test_samples_come_back_the_same() -> None:
    sample = GpuSample(
        GpuKey(*NODE, "GPU-a"),
        NOW + timedelta(milliseconds=250),
        {Metric.POWER: 1.5, Metric.THROTTLE: 4.0},
        3,
        "H100",
        (PodRef("nlp", "chat", "server"),),
    )
    assert samples_from(latest_text([sample]), NODE) == (sample,)


def test_a_node_speaks_only_of_itself() -> None:
    sample = GpuSample(GpuKey(*OTHER, "GPU-a"), NOW, {})
    assert [s.gpu.at_node for s in samples_from(latest_text([sample]), NODE)] == [NODE]


def test_what_a_newer_agent_tells_beyond_that_is_left_out() -> None:
    (sample,) = samples_from(latest(values={"power_w": 1.5, "joy": 7.0}, colour="green"), NODE)
    assert sample.values == {Metric.POWER: 1.5}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<html>", id="no JSON"),
        pytest.param(b"[]", id="no object"),
        pytest.param(latest(uuid=""), id="no uuid"),
        pytest.param(latest(at="now"), id="a time that is none"),
        pytest.param(latest(at=1e300), id="a time beyond all years"),
        pytest.param(latest(values={"power_w": "much"}), id="a value that is no number"),
        pytest.param(latest(product="x" * 1000), id="a long name"),
        pytest.param(latest(pods=[["a", "b"]]), id="half a pod"),
        pytest.param(json.dumps({"gpus": [GPU] * (MOST_GPUS + 1)}).encode(), id="too many GPUs"),
        pytest.param(b"[" * 100_000, id="a deep nest"),
    ],
)
def test_other_answers_are_faults(data) -> None:
    with pytest.raises(Fault) as caught:
        samples_from(data, NODE)
    assert caught.value.reason == "MetricsUnreadable"


def test_numbers_that_are_none_are_absent() -> None:
    (sample,) = samples_from(latest_text([GpuSample(GpuKey(*NODE, "a"), NOW, {Metric.POWER: 1.0})]), NODE)
    assert sample.values == {Metric.POWER: 1.0}
    with pytest.raises(Fault):
        samples_from(
            b'{"gpus":[{"uuid":"a","index":0,"product":"","at":1,"values":{"power_w":null},"pods":[]}]}', NODE
        )


def test_ranges_come_back_in_the_order_of_the_question_without_holes() -> None:
    instants = range(NOW_S, NOW_S + 121, 60)
    rows = [("GPU-a", Metric.TEMPERATURE, [50.0, None, 52.0]), ("GPU-a", Metric.POWER, [None, 2.0, None])]
    power, heat = series_from(range_text(instants, 60, rows), NODE, QUERY)
    assert [(p.at, p.value) for p in power.points] == [(NOW + timedelta(minutes=1), 2.0)]
    assert [p.value for p in heat.points] == [50.0, 52.0]


def test_points_and_metrics_that_were_not_asked_for_are_left_out() -> None:
    instants = range(NOW_S - 30, NOW_S + 600, 30)
    rows = [("GPU-a", Metric.POWER, [1.0] * len(instants)), ("GPU-a", Metric.XID, [1.0] * len(instants))]
    (power,) = series_from(range_text(instants, 60, rows), NODE, QUERY)
    assert [p.at for p in power.points] == list(QUERY.instants())


def test_a_wider_window_is_told() -> None:
    instants = range(NOW_S, NOW_S + 121, 60)
    (power,) = series_from(range_text(instants, 120, [("GPU-a", Metric.POWER, [1.0] * 3)]), NODE, QUERY)
    assert power.window == timedelta(minutes=2)


def test_a_question_comes_back_the_same() -> None:
    assert asked(question(QUERY), NODE) == QUERY
