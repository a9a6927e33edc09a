"""Pods for many callers: answers are shared, a slow or broken cluster says so and stops no other."""

from __future__ import annotations

import threading
from collections.abc import Collection
from datetime import datetime, timedelta

import pytest

from reconciler.clusters import pod_sources
from reconciler.clusters.pod_sources import SHARED, Attributes, ClusterPods, Way
from reconciler.model.pod_port import Pod, PodsSeen
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault
from tests.reconciler.workloads.gpus import CLUSTER, NOW


class Ways:
    """Each cluster answers with one pod; west is broken, and slow waits for a signal."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, frozenset[str]]] = []
        self.go = threading.Event()
        self.at_s = 0.0
        self.pods = ClusterPods(self.opened, lambda: self.at_s)

    def opened(self, cluster: str, spec: ClusterSpec) -> Way:
        if cluster == "closed":
            raise Fault("there is no kubeconfig", "ClusterAccessMissing")

        def read(namespaces: Collection[str], now: datetime) -> PodsSeen:
            self.asked.append((cluster, frozenset(namespaces)))
            if cluster == "slow":
                self.go.wait(30)
            if cluster == "west":
                raise Fault("the API server of cluster west did not answer", "ClusterUnreachable")
            return PodsSeen((Pod(cluster, "n", "p"),))

        def nodes(now: datetime) -> Attributes:
            if cluster == "west":
                raise Fault("the API server of cluster west did not answer", "ClusterUnreachable")
            return {"h100-1": {"rdma": "true"}}

        return Way(read, nodes)

    def look(self, cluster: str, *namespaces: str) -> PodsSeen:
        return self.pods.look(cluster, CLUSTER, namespaces or ("n",), NOW)


@pytest.fixture
def ways():
    made = Ways()
    yield made
    made.go.set()
    made.pods.close()


def test_callers_share_an_answer_for_a_while(ways: Ways) -> None:
    assert ways.look("east") is ways.look("east")
    ways.look("east", "other")
    assert len(ways.asked) == 2
    ways.at_s = SHARED / timedelta(seconds=1)
    ways.look("east")
    assert len(ways.asked) == 3


def test_a_broken_cluster_says_why_and_stops_no_other(ways: Ways) -> None:
    assert ways.look("west").silence == "the API server of cluster west did not answer"
    assert ways.look("closed").silence == "there is no kubeconfig"
    assert ways.look("east").pods


def test_a_slow_cluster_is_silent_and_asked_once(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_sources, "DEADLINE_S", 0.01)
    assert "did not answer within" in ways.look("slow").silence
    ways.at_s = 100
    assert "did not answer within" in ways.look("slow").silence
    assert len(ways.asked) == 1, "the first question is still under way"
    monkeypatch.setattr(pod_sources, "DEADLINE_S", 30)
    ways.go.set()
    assert ways.look("slow").pods


def test_no_namespace_is_no_question(ways: Ways) -> None:
    assert ways.pods.look("east", CLUSTER, (), NOW) == PodsSeen()
    assert ways.asked == []


def test_what_nodes_show_is_shared_longer(ways: Ways) -> None:
    """G2."""
    assert ways.pods.attributes("east", CLUSTER, NOW) == {"h100-1": {"rdma": "true"}}
    assert ways.pods.attributes("west", CLUSTER, NOW) == {}
