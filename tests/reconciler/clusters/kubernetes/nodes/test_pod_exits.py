"""GPU pods leave a node in time, and nobody else does: D7, D12, F9, C3. On the real API server."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.clock import SystemClock
from reconciler.clusters.kubernetes.api.api_features import discover
from reconciler.clusters.kubernetes.names import GPU_RESOURCE
from reconciler.clusters.kubernetes.nodes import pod_exits
from reconciler.clusters.kubernetes.nodes.node_inventory import read_pod
from tests.support.kube import eventually, gpu_node

PODS = "/api/v1/namespaces/vision/pods"


@pytest.fixture
def api(kube):
    """A cluster with one GPU node and a namespace."""
    kube.api.create("/api/v1/nodes", gpu_node("gpu-1"))
    kube.api.create("/api/v1/namespaces", {"metadata": {"name": "vision"}})
    eventually(
        lambda: kube.api.find("/api/v1/namespaces/vision/serviceaccounts/default"), "its service account"
    )
    return kube.api


@pytest.fixture
def now():
    """The server counts a grace from its own present."""
    return SystemClock().now()


def running(api, name, gpus=1, **meta):
    """A pod that runs on gpu-1, as the driver reads it."""
    limits = {GPU_RESOURCE: str(gpus)} if gpus else {}
    body = {
        "metadata": {"name": name, "labels": {"app": "train"}, **meta},
        "spec": {
            "nodeName": "gpu-1",
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "example.com/x", "resources": {"limits": limits}}],
        },
    }
    api.create(PODS, body)
    path = f"{PODS}/{name}/status"
    conditions = [{"type": "Ready", "status": "True"}]
    return read_pod(
        api.merge(path, {"status": {"phase": "Running", "conditions": conditions}}, "strategic-merge-patch")
    )


def budget(api, version, name="keep"):
    """A disruption budget that allows none; answered when its controller has counted."""
    path = f"/apis/{version}/namespaces/vision/poddisruptionbudgets"
    selector = {"matchLabels": {"app": "train"}}
    api.create(path, {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": selector}})
    eventually(lambda: api.get(f"{path}/{name}").get("status", {}).get("observedGeneration"), "the budget")


def ask(api, pods, until, now):
    return pod_exits.ask(api, pods, until, now, discover(api).eviction)


def test_a_pod_is_asked_with_all_the_time_until_the_end(api, now):
    """D7: what it needs to write a checkpoint is its own affair, until the strict end."""
    pod = running(api, "train")
    assert ask(api, [pod], now + timedelta(seconds=90), now).blocked == ()
    meta = api.get(f"{PODS}/train")["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 90


def test_a_budget_is_respected_until_the_strict_end(api, now):
    pod = running(api, "train")
    budget(api, discover(api).disruption_budgets)
    (blocked,) = ask(api, [pod], now + timedelta(seconds=60), now).blocked
    assert blocked.startswith("vision/train: Cannot evict pod")
    assert "deletionTimestamp" not in api.get(f"{PODS}/train")["metadata"]
    pod_exits.force(api, [pod])
    assert api.find(f"{PODS}/train") is None


def test_a_pod_under_two_budgets_is_blocked_and_no_error(api, now):
    """The server answers 500 to that."""
    pod = running(api, "train")
    budget(api, discover(api).disruption_budgets)
    budget(api, discover(api).disruption_budgets, "again")
    assert len(ask(api, [pod], now, now).blocked) == 1


def test_another_pod_of_that_name_is_left_alone(api, now):
    """Eviction and deletion hold for the very pod that was seen."""
    seen = replace(running(api, "train"), uid="an-earlier-one")
    assert ask(api, [seen], now, now).blocked == ()
    pod_exits.force(api, [seen])
    assert "deletionTimestamp" not in api.get(f"{PODS}/train")["metadata"]


def test_a_pod_that_is_gone_is_fine(api, now):
    pod = running(api, "train")
    pod_exits.force(api, [pod])
    assert ask(api, [pod], now, now).blocked == ()
    pod_exits.force(api, [pod])


def test_a_pod_that_leaves_already_is_not_asked_again(api, now):
    running(api, "train")
    api.delete(f"{PODS}/train", grace_s=600)
    ask(api, [read_pod(api.get(f"{PODS}/train"))], now, now)
    assert api.get(f"{PODS}/train")["metadata"]["deletionGracePeriodSeconds"] == 600
