"""How much an endpoint served by hour, asked of a Prometheus (J3)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.observation import Past
from reconciler.telemetry.served_history import PastLoads, requests_by_hour
from schemas.documents.metrics import Prometheus
from schemas.errors import Fault
from tests.support.prometheus import prometheus
from tests.support.world import START

HOUR = timedelta(hours=1)
SOURCE = Prometheus(url="http://127.0.0.1:1", matchers={"cluster": "east"})
ASKED = Past("east", SOURCE, "team", "chat", ("chat-b-v1",))


class Answers:
    """A Prometheus with these values by time before START, and what it was asked."""

    def __init__(self, values: dict[timedelta, Any]) -> None:
        self.values = {(START - back).timestamp(): value for back, value in values.items()}
        self.asked: list[tuple[str, datetime, datetime]] = []

    def matrix(self, query: str, start: datetime, end: datetime, _: timedelta) -> list[dict[str, Any]]:
        self.asked.append((query, start, end))
        first, last = start.timestamp(), end.timestamp()
        return [
            {
                "metric": {},
                "values": [[at, value] for at, value in self.values.items() if first <= at <= last],
            }
        ]


def test_hours_are_means_of_what_pods_told_and_unknown_without_any() -> None:
    quarters = [timedelta(minutes=15 * n) for n in range(8)]
    source = Answers(
        {**dict(zip(quarters[:4], ["8", "4", "0", "4"], strict=True)), quarters[6]: "6", 5 * HOUR: "NaN"}
    )
    found = requests_by_hour(source, SOURCE.matchers, ASKED, START)
    assert len(found) == 14 * 24
    assert found[-3:] == (None, 1.5, 4.0), "in a quarter of an hour without a pod nothing was served"
    assert set(found[:-2]) == {None}


def test_two_weeks_are_asked_for_once_and_in_parts() -> None:
    source = Answers({})
    requests_by_hour(source, {}, ASKED, START)
    spans = [(start, end) for _, start, end in source.asked]
    assert (spans[0][0], spans[-1][1]) == (START - timedelta(days=14) + timedelta(minutes=15), START)
    ends, begins = [end for _, end in spans[:-1]], [start for start, _ in spans[1:]]
    assert begins == [end + timedelta(minutes=15) for end in ends]


def test_the_question_names_one_namespace_and_no_other_endpoints_pods() -> None:
    source = Answers({})
    requests_by_hour(source, SOURCE.matchers, ASKED, START)
    of_pods = (
        'cluster="east", namespace="team", pod=~"chat-[a-z0-9-]+-[a-z0-9]+-[a-z0-9]+", '
        'pod!~"(chat\\\\-b\\\\-v1)-[a-z0-9]+-[a-z0-9]+"'
    )
    assert {query for query, _, _ in source.asked} == {
        f"sum(avg_over_time(vllm:num_requests_running{{{of_pods}}}[900s])) + "
        f"sum(avg_over_time(vllm:num_requests_waiting{{{of_pods}}}[900s]))"
    }


def test_a_silent_source_is_a_fault() -> None:
    with pytest.raises(Fault):
        PastLoads()(ASKED, START)


def test_an_answer_serves_for_minutes_and_a_silent_cluster_is_left_alone() -> None:
    """J3: else each caller would wait for the limit of a question, one after the other."""
    opened: list[str] = []

    def opens(cluster: str, _: Prometheus) -> Answers:
        opened.append(cluster)
        if cluster == "west":
            raise Fault("the Prometheus of west does not answer")
        return Answers({})

    past = PastLoads(None, opens)
    assert past(ASKED, START) is past(ASKED, START + timedelta(minutes=4))
    for seconds in (0, 14):
        with pytest.raises(Fault, match="west"):
            past(replace(ASKED, cluster="west"), START + timedelta(seconds=seconds))
    assert opened == ["east", "west"]
    past(ASKED, START + timedelta(minutes=5))
    assert opened == ["east", "west", "east"]


def series(pod: str, running: int, waiting: int, hours: int) -> list[str]:
    """A server that had so many requests in the last hours."""
    own = f'{{cluster="east",namespace="team",pod="{pod}-5d8f9c6b7-abcde",model_name="m"}}'
    times = [START.timestamp() - 120 * n for n in range(30 * hours)]
    values = (("running", running), ("waiting", waiting))
    return [
        f"vllm:num_requests_{name}{own} {value} {at:.3f}" for at in sorted(times) for name, value in values
    ]


def test_a_real_prometheus_understands_the_question(tmp_path: Path) -> None:
    """A version that is gone counts, another endpoint does not; the answer serves for some minutes."""
    pods = (("chat-v1", 6, 1, 3), ("chat-old", 2, 0, 2), ("chat-b-v1", 50, 0, 3), ("achat-v1", 90, 0, 3))
    with prometheus(tmp_path, [line for pod in pods for line in series(*pod)]) as url:
        asked, past = replace(ASKED, source=Prometheus(url=url, matchers={"cluster": "east"})), PastLoads()
        found = past(asked, START)
        again = past(asked, START + timedelta(minutes=4))
        past.close()
    assert found[-4:] == (None, pytest.approx(7), pytest.approx(9), pytest.approx(9))
    assert again is found
