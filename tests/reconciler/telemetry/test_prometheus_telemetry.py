"""dcgm-exporter's own oddities in a real Prometheus, and Prometheuses that do not answer as they should (H5, H16)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from reconciler.telemetry import prometheus_queries
from reconciler.telemetry.prometheus_answers import samples_from
from reconciler.telemetry.prometheus_telemetry import PrometheusTelemetry
from reconciler.telemetry.telemetry_port import GpuSample, Metric, PodRef, Query
from schemas.documents.metrics import Prometheus, PrometheusAuth
from schemas.errors import UserError
from tests.support.prometheus import prometheus, with_time

NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SAMPLES = Path(__file__).parent / "samples"
H100, T4, A100 = ("east", "h100-1"), ("east", "t4-1"), ("east", "a100-1")
NODES = frozenset({H100, T4, A100})
EAST = {"cluster": "east"}


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Iterator[PrometheusTelemetry]:
    """Ten minutes of the pages in samples/, once in 15 s."""
    pages = [path.read_text() for path in sorted(SAMPLES.glob("*.txt"))]
    lines = [
        line
        for second in range(0, 601, 15)
        for page in pages
        for line in with_time(page, NOW.timestamp() - 600 + second)
    ]
    with prometheus(tmp_path_factory.mktemp("prometheus"), lines) as url:
        yield PrometheusTelemetry("east", Prometheus(url=url, matchers=EAST), None)


@pytest.fixture
def samples(source) -> dict[str, GpuSample]:
    found = source.latest(NODES, NOW)
    assert found.silences == ()
    return {s.gpu.uuid: s for s in found.samples}


def test_only_gpus_of_the_nodes_that_were_asked_for(samples) -> None:
    """A dot in a name is a dot, another cluster's node of the same name is another, and what has no uuid is none."""
    assert sorted(samples) == ["GPU-a0", "GPU-a1", "GPU-b0", "GPU-b1", "GPU-c0", "GPU-c1"]
    assert samples["GPU-a0"].values[Metric.POWER] == 568.244


def test_what_labels_tell(samples) -> None:
    assert (samples["GPU-a1"].index, samples["GPU-a1"].product) == (1, "NVIDIA H100 80GB HBM3")
    assert samples["GPU-a0"].at == NOW


@pytest.mark.parametrize(
    ("uuid", "pods"),
    [
        pytest.param("GPU-a0", ["nlp/chat-0/server"], id="exported labels are the workload's"),
        pytest.param("GPU-a1", [], id="a free GPU does not belong to the exporter's own pod"),
        pytest.param("GPU-b0", [], id="empty labels are no pod"),
        pytest.param("GPU-c0", ["nlp/llama-0/train"], id="a pod that has just come"),
        pytest.param("GPU-c1", ["nlp/chat-0/server", "nlp/chat-1/server"], id="pods that share a GPU"),
    ],
)
def test_pods(samples, uuid, pods) -> None:
    assert samples[uuid].pods == tuple(PodRef(*pod.split("/")) for pod in pods)


def test_blank_values_are_absent_and_zero_is_a_value(samples) -> None:
    assert samples["GPU-b0"].values == {Metric.TEMPERATURE: 74, Metric.UTILISATION: 0, Metric.XID: 0}
    assert samples["GPU-b1"].values == {Metric.POWER: 26.5, Metric.ENERGY: 315_360_000_000}


def test_doubled_series_are_one_gpu_with_its_highest_value(samples) -> None:
    assert samples["GPU-c0"].values == {Metric.TEMPERATURE: 43, Metric.UTILISATION: 98}


def test_old_names_of_metrics_are_read(samples) -> None:
    assert samples["GPU-c1"].values[Metric.THROTTLE] == 4


def test_of_two_names_of_one_metric_the_newer_counts() -> None:
    gpu = {"Hostname": "h100-1", "UUID": "GPU-a", "gpu": "0"}
    rows = [
        {"metric": {**gpu, "__name__": name}, "value": [1, value]}
        for name, value in (
            ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "4"),
            ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "8"),
        )
    ]
    seen = [{"metric": gpu, "value": [1, "1000"]}]
    for given in (rows, rows[::-1]):
        (sample,) = samples_from(given, seen, "east", {"h100-1"})
        assert sample.values == {Metric.THROTTLE: 4}


def test_series_have_no_blanks_no_doubles_and_our_units(source) -> None:
    metrics = (Metric.TEMPERATURE, Metric.MEMORY_TEMPERATURE, Metric.ENERGY)
    query = Query(NODES, metrics, NOW - 5 * MINUTE, NOW, MINUTE)
    found = {(s.gpu.uuid, s.metric): {p.value for p in s.points} for s in source.range(query, NOW).series}
    assert found == {
        ("GPU-a0", Metric.TEMPERATURE): {61},
        ("GPU-a0", Metric.ENERGY): {15_152_422.938},
        ("GPU-a1", Metric.TEMPERATURE): {33},
        ("GPU-b0", Metric.TEMPERATURE): {74},
        ("GPU-b1", Metric.ENERGY): {315_360_000_000},
        ("GPU-c0", Metric.TEMPERATURE): {43},
        ("GPU-c1", Metric.TEMPERATURE): {55},
    }


def test_names_cannot_leave_their_quotes() -> None:
    asked = prometheus_queries.latest({"cluster": 'a"b\\c\nd'}, ["h100-1.east"])
    assert 'cluster="a\\"b\\\\c\\nd", Hostname=~"h100\\\\-1\\\\.east"}' in asked


# --- servers that are not as they should be ---


@contextmanager
def answering(status: int, body: bytes, seen: list[dict[str, str]] | None = None) -> Iterator[str]:
    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if seen is not None:
                seen.append({"path": self.path, "authorization": self.headers.get("Authorization", "")})
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=lambda: server.serve_forever(0.01), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def vector(*rows: object) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": list(rows)}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        pytest.param(200, b"<html>", "MetricsUnreadable", id="a page"),
        pytest.param(200, b"{}", "MetricsUnreadable", id="other JSON"),
        pytest.param(200, b"[" * 10_000, "MetricsUnreadable", id="a deep nest"),
        pytest.param(
            200,
            b'{"status":"success","data":{"resultType":"matrix","result":[]}}',
            "MetricsUnreadable",
            id="another type of result",
        ),
        pytest.param(401, b"", "MetricsRefused", id="no credentials"),
        pytest.param(503, b'{"status":"error","error":"query timed out"}', "MetricsRefused", id="an error"),
        pytest.param(302, b"", "MetricsRefused", id="a redirect is not followed"),
    ],
)
def test_what_does_not_answer_like_prometheus_is_silent(status, body, reason) -> None:
    query = Query(NODES, (Metric.POWER,), NOW - MINUTE, NOW, MINUTE)
    with answering(status, body) as url:
        source = PrometheusTelemetry("east", Prometheus(url=url), None)
        found = source.latest(NODES, NOW)
        ranges = source.range(query, NOW) if "matrix" not in str(body) else found
    assert found.samples == ()
    assert [s.reason for s in found.silences] == [reason]
    assert [s.reason for s in ranges.silences] == [reason]


def test_rows_that_make_no_sense_are_left_out() -> None:
    gpu = {"Hostname": "h100-1", "UUID": "GPU-a", "__name__": "DCGM_FI_DEV_GPU_TEMP"}
    rows = [
        "row",
        {"metric": []},
        {"metric": gpu, "value": [1, "much"]},
        {"metric": gpu, "value": []},
        {"metric": gpu, "value": [1, "NaN"]},
        {"metric": {**gpu, "__name__": "joy"}, "value": [1, "1"]},
    ]
    with answering(200, vector(*rows)) as url:
        assert PrometheusTelemetry("east", Prometheus(url=url), None).latest(NODES, NOW).samples == ()


@pytest.mark.parametrize(
    ("kind", "secret", "sent"),
    [("bearer", "s3cr3t\n", "Bearer s3cr3t"), ("basic", "ada:s3cr3t\n", "Basic YWRhOnMzY3IzdA==")],
)
def test_credentials_come_from_a_file_that_may_change(tmp_path, kind, secret, sent) -> None:
    (tmp_path / "east").write_text("old")
    seen: list[dict[str, str]] = []
    with answering(200, vector(), seen) as url:
        auth = PrometheusAuth(file="east", kind=kind)
        source = PrometheusTelemetry("east", Prometheus(url=url + "/prom/", auth=auth), tmp_path)
        (tmp_path / "east").write_text(secret)
        assert source.latest(NODES, NOW).silences == ()
    assert {row["authorization"] for row in seen} == {sent}
    assert {row["path"] for row in seen} == {"/prom/api/v1/query"}


@pytest.mark.parametrize("folder", [True, False])
def test_a_missing_file_is_told_without_its_path(tmp_path, folder) -> None:
    source = Prometheus(url="http://127.0.0.1:9", auth=PrometheusAuth(file="east"))
    with pytest.raises(UserError) as refused:
        PrometheusTelemetry("east", source, tmp_path if folder else None)
    assert refused.value.reason == "MetricsAuthMissing"
    assert re.search("^clusters/east.yaml: the file 'east' ", str(refused.value))
    assert str(tmp_path) not in str(refused.value)


def test_no_secret_stands_in_a_silence(tmp_path) -> None:
    (tmp_path / "east").write_text("s3cr3t")
    auth = PrometheusAuth(file="east")
    for url in ("http://127.0.0.1:9", "http://no.such.host.invalid"):
        source = PrometheusTelemetry("east", Prometheus(url=url, auth=auth), tmp_path)
        (silence,) = source.latest(NODES, NOW).silences
        assert silence.reason == "MetricsUnreachable"
        assert "s3cr3t" not in silence.message
