"""Advice from what an endpoint served (J3): from requests by hour to nodes, and what is refused."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.model.observation import Past
from reconciler.queries.demand.served_load import asked_of, served_of
from reconciler.queries.demand.slice_advice import Question, slice_advice, what_was_served
from reconciler.queries.state import State, read_state
from reconciler.sources.command_errors import NotAllowed, NotFound, WrongUse
from reconciler.sources.open_source import opened
from scheduler.plan import plan
from tests.reconciler.cli.rig import fleet, folder, request
from tests.support.endpoints import document, version
from tests.support.world import START, cluster

SCALING = {"by": "keda", "requestsPerReplica": 8}
VERSIONS = [version("v1", gpusPerReplica=1), version("v2", gpusPerReplica=2)]
CHAT: dict[str, Any] = {"scaling": SCALING, "versions": VERSIONS, "weights": {"v1": 10, "v2": 90}}


def with_metrics(text: str, url: str = "https://prometheus.example.com") -> str:
    found = yaml.safe_load(text)
    found["spec"]["metrics"] = {"prometheus": {"url": url}}
    return yaml.safe_dump(found)


def state_of(tmp_path: Path, *, metrics: bool = True, **spec: Any) -> State:
    """Slice a has endpoints chat, on a request with nodes of 8 GPUs, and chat-b."""
    east = cluster(nodes=4)
    files = {
        "clusters/east.yaml": with_metrics(east) if metrics else east,
        "slices/a/endpoints/chat.yaml": document(**{**CHAT, **spec}),
        "slices/a/endpoints/chat-b.yaml": document("chat-b"),
        **request("a/x", nodes=1, duration="2h", gpusPerNode=8),
    }
    with opened(str(folder(tmp_path / "repo", fleet(**files)))) as source:
        return read_state(source, START)


def test_requests_become_nodes_of_the_endpoints_request(tmp_path: Path) -> None:
    """8 requests for each replica of 2 GPUs: a node of 8 GPUs serves 32."""
    found = served_of(state_of(tmp_path), "a", "chat", None, [(None, 64.0, None, 16.0)])
    assert found.load.nodes.tolist() == [2.0, 0.0, 0.5]
    assert (found.gpus_per_node, found.silent_hours) == (8, 1)


def test_clusters_are_added_up_hour_by_hour(tmp_path: Path) -> None:
    found = served_of(state_of(tmp_path), "a", "chat", 2, [(8.0, None, 8.0), (16.0, 8.0)])
    assert found.load.nodes.tolist() == [1.0, 2.0, 2.0]


def test_its_own_cluster_and_namespace_are_asked_and_no_other_endpoints_pods(tmp_path: Path) -> None:
    (asked,) = asked_of(state_of(tmp_path), "a", "chat")
    assert (asked.cluster, asked.namespace, asked.endpoint, asked.others) == (
        "east",
        "a",
        "chat",
        ("chat-b-v1",),
    )


@pytest.mark.parametrize(
    ("spec", "endpoint", "gpus", "error", "says"),
    [
        pytest.param({}, "no", None, NotFound, "there is no endpoint a/no", id="no such endpoint"),
        pytest.param({"metrics": False}, "chat", None, NotAllowed, "metrics.prometheus", id="no Prometheus"),
        pytest.param({"scaling": None}, "chat", None, NotAllowed, "requestsPerReplica", id="no measure"),
        pytest.param(
            {}, "chat", 1, WrongUse, "a replica of v2 needs 2 GPUs", id="nodes too small for a replica"
        ),
    ],
)
def test_what_is_refused(
    tmp_path: Path, spec: dict[str, Any], endpoint: str, gpus: int | None, error: type[Exception], says: str
) -> None:
    asked = Question(endpoint=endpoint, gpus_per_node=gpus)
    with pytest.raises(error, match=says):
        what_was_served(state_of(tmp_path, **spec), "a", asked, lambda *_: (1.0,))


def test_the_shape_of_what_was_served_is_advised(tmp_path: Path) -> None:
    """Ten days with 96 requests at hand for six hours of each, else 8."""
    state, asked = state_of(tmp_path), Question(endpoint="chat", cold_start="30m", patience="10m")

    def past(_: Past, now: datetime) -> tuple[float | None, ...]:
        assert now == START
        return tuple(96.0 if 2 <= hour % 24 < 8 else 8.0 for hour in range(240))

    served = what_was_served(state, "a", asked, past)
    found = slice_advice(state, "a", asked, plan(state.snapshot), served)
    nodes = [hour["nodes"] for hour in found["hours"]]
    assert (found["endpoint"], found["historyHours"], found["silentHours"]) == ("chat", 240, 0)
    assert min(nodes[3:7]) >= 3
    assert max(nodes[12:20]) < 3
    assert {row["gpusPerNode"] for row in found["proposals"]} == {8}


def test_an_idle_endpoint_is_said_to_be_idle(tmp_path: Path) -> None:
    state, asked = state_of(tmp_path), Question(endpoint="chat", hours=3)
    served = what_was_served(state, "a", asked, lambda *_: (0.0,) * 240)
    found = slice_advice(state, "a", asked, plan(state.snapshot), served)
    assert found["sentence"].startswith("Nothing was used in the last 10 days")
    assert [hour["nodes"] for hour in found["hours"]] == [1, 1, 0]
