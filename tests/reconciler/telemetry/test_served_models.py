"""How served models do, asked of a Prometheus (J2)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from reconciler.model.observation import Asked, Load, Observation
from reconciler.telemetry.prometheus_telemetry import PrometheusTelemetry
from reconciler.telemetry.served_models import ModelLoads, ModelWatch, load, observation
from reconciler.telemetry.telemetry_port import SHARED
from schemas.documents.metrics import Prometheus
from schemas.errors import Fault
from tests.support.prometheus import prometheus
from tests.support.world import START

SOURCE = Prometheus(url="http://127.0.0.1:1", matchers={"cluster": "east"})
FIVE = timedelta(minutes=5)
ASKED = Asked("a/chat", "east", SOURCE, "team", (("v1", "chat-v1"),), FIVE, START - FIVE)
PODS = 'cluster="east", namespace="team", pod=~"chat\\\\-v1-[a-z0-9]+-[a-z0-9]+"'


class Answers:
    """A Prometheus that answers questions by the first of these words in them, and remembers what it was asked."""

    def __init__(self, **values: float | str) -> None:
        self.values, self.asked = values, list[str]()

    def vector(self, query: str, _: Any) -> list[dict[str, Any]]:
        self.asked.append(query)
        word = next(word for word in ("status", "quantile", "num_requests", "http_requests") if word in query)
        value = self.values.get(word)
        return [] if value is None else [{"metric": {}, "value": [0, str(value)]}]


class Slow(Answers):
    """One whose every answer takes so many seconds of its clock `s`."""

    def __init__(self, each_s: float) -> None:
        super().__init__(http_requests=1)
        self.each_s, self.s = each_s, 0.0

    def vector(self, query: str, _: Any) -> list[dict[str, Any]]:
        self.s += self.each_s
        return super().vector(query, _)


@pytest.mark.parametrize(
    ("source", "want"),
    [
        pytest.param(
            Answers(status=3, http_requests=100, quantile=0.7), Observation(100, 0.03, 0.7), id="all is known"
        ),
        pytest.param(
            Answers(http_requests=100, quantile=0.7), Observation(100, 0, 0.7), id="no error, no series"
        ),
        pytest.param(Answers(http_requests=100), Observation(100, 0, None), id="no token yet"),
        pytest.param(
            Answers(http_requests=100, quantile="NaN"), Observation(100, 0, None), id="not a number"
        ),
        pytest.param(Answers(), Observation(0), id="no requests came"),
    ],
)
def test_what_is_made_of_the_answers(source: Answers, want: Observation) -> None:
    assert observation(source, SOURCE.matchers, ASKED, "chat-v1", START) == want


def test_the_questions_name_the_pods_of_one_version_in_one_cluster() -> None:
    source = Answers(http_requests=1)
    observation(source, SOURCE.matchers, ASKED, "chat-v1", START)
    assert source.asked == [
        f'sum(increase(http_requests_total{{{PODS}, handler=~"/v1/.*"}}[300s]))',
        f'sum(increase(http_requests_total{{{PODS}, handler=~"/v1/.*", status=~"5.*"}}[300s]))',
        "histogram_quantile(0.95, sum by (le) (rate("
        f"vllm:time_to_first_token_seconds_bucket{{{PODS}}}[300s])))",
    ]


def test_a_step_is_not_judged_by_what_was_before_it() -> None:
    source = Answers(http_requests=1)
    observation(source, {}, replace(ASKED, since=START - timedelta(seconds=40)), "chat-v1", START)
    assert all("[40s]" in query for query in source.asked)
    assert observation(source, {}, replace(ASKED, since=START), "chat-v1", START) == Observation(0)


def test_requests_at_hand() -> None:
    source = Answers(num_requests=12)
    assert load(source, SOURCE.matchers, "team", "chat-v1", START) == 12
    assert source.asked == [f'sum({{__name__=~"vllm:num_requests_(running|waiting)", {PODS}}})']
    assert load(Answers(), {}, "team", "chat-v1", START) is None


def test_a_silent_prometheus_keeps_only_callers_of_its_own_cluster_waiting() -> None:
    """J2: KEDA asks for all clusters at one portal."""
    begun, goes_on = Event(), Event()

    class Silent(Answers):
        def vector(self, query: str, now: Any) -> list[dict[str, Any]]:
            begun.set()
            goes_on.wait(60)
            return super().vector(query, now)

    sources = {"east": Silent(num_requests=3), "west": Answers(num_requests=5)}
    loads = ModelLoads(None, lambda cluster, _: sources[cluster])
    east = Load("east", SOURCE, "team", "chat-v1")
    with ThreadPoolExecutor(2) as callers:
        try:
            waiting = callers.submit(loads, east, START)
            assert begun.wait(60)
            assert callers.submit(loads, replace(east, cluster="west"), START).result(60) == 5
        finally:
            goes_on.set()
        assert waiting.result(60) == 3
    loads.close()


def test_a_failure_serves_as_long_as_an_answer() -> None:
    """J2: else each caller waits for the limit of the question, one after the other."""
    source, opened = Answers(num_requests=5), list[str]()

    def opens(cluster: str, told: Prometheus) -> Answers:
        opened.append(cluster)
        if told == SOURCE and len(opened) == 1:
            raise Fault(f"the Prometheus of {cluster} does not answer")
        return source

    loads, east = ModelLoads(None, opens), Load("east", SOURCE, "team", "chat-v1")
    for second, pods in ((0, "chat-v1"), (1, "chat-v2"), (14, "chat-v1")):
        with pytest.raises(Fault, match="does not answer"):
            loads(replace(east, pods=pods), START + timedelta(seconds=second))
    assert opened == ["east"]
    assert loads(east, START + SHARED) == 5, "then it is asked again"
    broken = ModelLoads(None, opens)
    opened.clear()
    with pytest.raises(Fault):
        broken(east, START)
    mended = SOURCE.edited(url="http://127.0.0.1:2")
    assert broken(replace(east, source=mended), START) == 5, "another address is asked at once"


def test_a_slow_source_does_not_hold_a_cycle_and_every_endpoint_gets_its_turn() -> None:
    source = Slow(2.0)
    watch = ModelWatch(None, lambda *_: source, lambda: source.s)
    asked = [replace(ASKED, endpoint=f"a/{name}") for name in "xyz"]
    looks = [sorted(watch(asked, START + minute * timedelta(minutes=1))) for minute in range(3)]
    assert looks == [["a/x"], ["a/y"], ["a/z"]], "the second one of a look is cut off, and begins the next"
    assert len(source.asked) == 3 * 5, "no question begins after 10 s"


def test_an_endpoint_that_needs_more_than_a_look_is_told_and_lets_others_pass(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """J2: ten versions are thirty questions."""
    source = Slow(4.0)
    watch = ModelWatch(None, lambda *_: source, lambda: source.s)
    large = replace(ASKED, pods=tuple((f"v{n}", f"chat-v{n}") for n in range(10)))
    small = replace(ASKED, endpoint="a/z")
    assert watch([large, small], START) == {}
    assert source.s == 12, "one question begins before 10 s and ends later"
    assert "a/chat took more than 10 s" in caplog.text
    assert [*watch([large, small], START + timedelta(minutes=1))] == ["a/z"]


def test_a_source_that_does_not_answer_is_unknown_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    watch = ModelWatch()
    assert watch([ASKED], START) == {}
    assert watch([ASKED], START + timedelta(seconds=1)) == {}
    assert caplog.text.count("endpoints not observed") == 1


def series(pod: str, second: int) -> list[str]:
    """A vLLM server since it started: 10 requests a second, one fails; half of the answers come within a second."""
    own = f'cluster="east",namespace="team",pod="{pod}"'
    calls = f'http_requests_total{{{own},handler="/v1/completions",method="POST",status='
    bucket = f"vllm:time_to_first_token_seconds_bucket{{{own},le="
    values = [
        (f'{calls}"2xx"}}', 9 * second),
        (f'{calls}"5xx"}}', second),
        (f'http_requests_total{{{own},handler="/health",method="GET",status="2xx"}}', 100 * second),
        (f'{bucket}"1.0"}}', 5 * second),
        (f'{bucket}"2.0"}}', 10 * second),
        (f'{bucket}"+Inf"}}', 10 * second),
        (f'vllm:num_requests_running{{{own},model_name="m"}}', 7),
        (f'vllm:num_requests_waiting{{{own},model_name="m"}}', 5),
    ]
    return [f"{name} {value} {START.timestamp() - 600 + second:.3f}" for name, value in values]


def test_a_real_prometheus_understands_the_questions(tmp_path: Path) -> None:
    """Only the version's own pods count, and probes of its health are no requests."""
    pods = ("chat-v1-5d8f9c6b7-abcde", "chat-v10-5d8f9c6b7-abcde")
    lines = [line for second in range(0, 601, 15) for pod in pods for line in series(pod, second)]
    with prometheus(tmp_path, lines) as url:
        told = Prometheus(url=url, matchers={"cluster": "east"})
        source = PrometheusTelemetry("east", told, None)
        found = observation(source, told.matchers, ASKED, "chat-v1", START)
        at_hand = load(source, told.matchers, "team", "chat-v1", START)
        (watched,) = ModelWatch()([replace(ASKED, source=told)], START).values()
        source.close()
    assert found.requests == pytest.approx(3000, rel=0.1)
    assert found.error_rate == pytest.approx(0.1, abs=0.01)
    assert found.first_token_s == pytest.approx(1.9, abs=0.05)
    assert (at_hand, watched) == (12, {"v1": found})
