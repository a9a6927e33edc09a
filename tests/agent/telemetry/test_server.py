"""The agent's server: three routes to read, and nothing else (H5, H16)."""

from __future__ import annotations

import http.client
import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from agent.port import GpuReading
from agent.telemetry.exporter import Exporter
from agent.telemetry.server import TelemetryServer
from reconciler.clock import ManualClock
from reconciler.telemetry.ring_format import RANGE, question, samples_from, series_from
from reconciler.telemetry.telemetry_port import GpuKey, Metric, PodRef, Query
from schemas.errors import UserError

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NODE = ("east", "h100-1")
POD = PodRef("nlp", "chat", "server")
KEY = GpuKey("east", "h100-1", "GPU-a")


def reading(uuid="GPU-a", **known) -> GpuReading:
    return GpuReading(uuid, 0, "H100", 81_920, **known)


@contextmanager
def serving():
    """A server with ten minutes of one GPU, whose power is the number of the second."""
    clock = ManualClock(NOW)
    exporter = Exporter(NODE, lambda readings: {r.uuid: (POD,) for r in readings})
    for second in range(0, 601, 10):
        clock.set(NOW + second * SECOND)
        exporter.observe((reading(power_w=float(second), temp_c=50),), clock.now())
    server = TelemetryServer("127.0.0.1:0", exporter, NODE, clock)
    server.start()
    try:
        yield server, clock, exporter
    finally:
        server.stop()


@pytest.fixture(scope="module")
def served():
    """For tests that do not move its clock."""
    with serving() as made:
        yield made


def asked(server, path: str, method="GET") -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    connection.request(method, path)
    answer = connection.getresponse()
    found = answer.status, answer.headers["Content-Type"], answer.read()
    connection.close()
    return found


def query(since_s: int, until_s: int, step_s: int, *metrics: Metric) -> Query:
    metrics = metrics or (Metric.POWER,)
    return Query(frozenset({NODE}), metrics, NOW + since_s * SECOND, NOW + until_s * SECOND, step_s * SECOND)


def test_metrics_are_openmetrics(served) -> None:
    status, kind, body = asked(served[0], "/metrics")
    assert (status, kind.partition(";")[0]) == (200, "application/openmetrics-text")
    assert b'Hostname="h100-1",container="server",namespace="nlp",pod="chat"} 600\n' in body
    assert body.endswith(b"# EOF\n")


def test_the_latest_samples_come_back_as_they_were_measured() -> None:
    with serving() as (server, clock, _):
        clock.set(NOW + 640 * SECOND)
        (sample,) = samples_from(asked(server, "/gpus/latest")[2], NODE)
    assert (sample.gpu, sample.at, sample.index, sample.product) == (KEY, NOW + 600 * SECOND, 0, "H100")
    assert sample.values == {Metric.POWER: 600.0, Metric.TEMPERATURE: 50.0, Metric.XID: 0.0}
    assert sample.pods == (POD,)


def test_a_range_comes_back_as_it_was_asked_for(served) -> None:
    wanted = query(60, 700, 60, Metric.TEMPERATURE, Metric.POWER, Metric.SM_CLOCK)
    path = f"{RANGE}?{'&'.join(f'{k}={v}' for k, v in question(wanted).items())}"
    heat, power = series_from(asked(served[0], path)[2], NODE, wanted)
    assert (heat.metric, power.metric, power.gpu, power.window) == (
        Metric.TEMPERATURE,
        Metric.POWER,
        KEY,
        60 * SECOND,
    )
    assert [(p.at - NOW) // SECOND for p in power.points] == list(range(60, 601, 60))
    assert [p.value for p in power.points] == [second - 25.0 for second in range(60, 601, 60)]


def test_a_gpu_that_stopped_answering_is_shown_with_its_time_for_five_minutes() -> None:
    with serving() as (server, clock, exporter):
        for second, known in ((610, 1), (900, 1), (901, 0)):
            clock.set(NOW + second * SECOND)
            exporter.observe((reading(wedged=True),), clock.now())
            found = samples_from(asked(server, "/gpus/latest")[2], NODE)
            assert [s.at for s in found] == [NOW + 600 * SECOND] * known


@pytest.mark.parametrize(
    ("step_s", "wider"),
    [pytest.param(60, False, id="whole minutes"), pytest.param(90, True, id="not whole minutes")],
)
def test_windows_over_old_samples_reach_back_a_minute_more_unless_they_are_whole_minutes(
    step_s, wider
) -> None:
    """So that a caller who may see a part of the time never sees a summary of more than that."""
    exporter = Exporter(NODE)
    for minute in range(180):
        exporter.observe((reading(power_w=1.0),), NOW + minute * 60 * SECOND)
    old, new = query(1800, 3600, step_s), query(9000, 10_740, step_s)
    windows = [series_from(exporter.range(q), NODE, q)[0].window for q in (old, new)]
    assert windows == [old.window + wider * 60 * SECOND, new.window]


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        pytest.param("/", 404, "NoSuchPath", id="no such path"),
        pytest.param("/gpus/range", 400, "BadRange", id="no range"),
        pytest.param(
            "/gpus/range?metrics=power_w&since=0&until=1e9&step=1", 400, "BadRange", id="too many points"
        ),
        pytest.param("/gpus/range?metrics=joy&since=0&until=9&step=1", 400, "BadRange", id="no such metric"),
        pytest.param(
            "/gpus/range?metrics=power_w&since=nan&until=inf&step=1", 400, "BadRange", id="no such time"
        ),
        pytest.param(
            "/gpus/range?metrics=power_w&since=0&until=1e99&step=1",
            400,
            "BadRange",
            id="a time beyond all years",
        ),
    ],
)
def test_wrong_questions_are_refused_in_a_sentence(served, path, status, reason) -> None:
    found, _, body = asked(served[0], path)
    assert (found, json.loads(body)["reason"]) == (status, reason)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_it_only_reads(served, method) -> None:
    assert asked(served[0], "/metrics", method)[0] == 501


def test_an_address_that_is_taken_is_told(served) -> None:
    with pytest.raises(UserError) as refused:
        TelemetryServer(f"127.0.0.1:{served[0].port}", Exporter(NODE), NODE, ManualClock(NOW))
    assert refused.value.reason == "ListenFailed"
