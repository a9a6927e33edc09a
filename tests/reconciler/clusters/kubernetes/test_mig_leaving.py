"""A node that leaves our pools goes whole: what we cut is put back together before our marks go (F12)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from reconciler.clusters.kubernetes.api.api_client import Api, Json
from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.clusters.kubernetes.names import (
    MIG_BEFORE,
    MIG_CONFIG,
    MIG_STATE,
    NODE_PREFIX,
    PROJECT,
    SLICE,
    STAMP,
)
from reconciler.model.cluster_port import Done
from schemas.documents.cluster import ClusterSpec
from tests.reconciler.clusters.kubernetes.checking import FIRST, LATER, NOW
from tests.support.kube import eventually, gpu_node

NODE = "/api/v1/nodes/old-1"
SPEC = ClusterSpec.model_validate_json(
    json.dumps(
        {
            "driver": "kubernetes",
            "admission": {"mode": "none"},
            "pools": [
                {
                    "name": "h100",
                    "gpuShape": "H100-80GB",
                    "gpusPerNode": 8,
                    "memoryPerGpu": 80,
                    "nodes": ["new-1"],
                }
            ],
        }
    )
)
"""Of a manifest whose pool had the node, and has it no more."""


@pytest.fixture
def cluster(kube) -> Iterator[KubernetesCluster]:
    """The node served a request that had it cut; the request is over, and nobody has put it back yet."""
    node = gpu_node("old-1", **{MIG_CONFIG.replace("/", "__"): "all-1g.10gb"})
    node["metadata"]["labels"][MIG_STATE] = "success"
    node["metadata"]["annotations"] = {PROJECT: "default", STAMP: "1.1", MIG_BEFORE: "mine"}
    node["spec"] = {"taints": [{"key": SLICE, "effect": "NoSchedule"}]}
    kube.api.create("/api/v1/nodes", node)
    found = KubernetesCluster("east", SPEC, kube.connect())
    yield found
    found.close()


def node_of(api: Api) -> Json:
    """Its labels, annotations and taints of ours."""
    item = api.get(NODE)
    meta = item["metadata"]
    return {
        "layout": meta["labels"].get(MIG_CONFIG),
        "before": (meta.get("annotations") or {}).get(MIG_BEFORE),
        "marked": any(key.startswith(NODE_PREFIX) for key in meta.get("annotations") or ()),
        "tainted": any(taint["key"] == SLICE for taint in item["spec"].get("taints") or ()),
    }


def manager(api: Api, cluster: KubernetesCluster, state: str) -> None:
    """The MIG manager answers, and the driver has heard of it."""
    api.merge(NODE, {"metadata": {"labels": {MIG_STATE: state}}})
    version = api.get(NODE)["metadata"]["resourceVersion"]
    eventually(lambda: int(cluster._nodes.items()["old-1"].version) >= int(version), "the driver hears of it")


CUT = {"layout": "all-1g.10gb", "before": "mine", "marked": True, "tainted": True}
RETURNING = CUT | {"layout": "mine"}
GONE = {"layout": "mine", "before": None, "marked": False, "tainted": False}


@pytest.mark.parametrize(
    "state",
    [
        pytest.param("success", id="once it is whole"),
        pytest.param("failed", id="also where its MIG manager gave up: the node's own labels say so"),
    ],
)
def test_a_node_is_ours_until_it_is_as_it_was(kube, cluster, state):
    assert node_of(kube.api) == CUT
    assert [found.object for found in cluster.differences((), NOW)] == ["Node old-1"]
    assert cluster.ensure_fleet(FIRST, NOW) == Done()
    assert node_of(kube.api) == RETURNING
    manager(kube.api, cluster, "pending")
    assert cluster.ensure_fleet(FIRST, NOW) == Done()
    assert node_of(kube.api) == RETURNING, "the manager's turn, and no pod may land there meanwhile"
    assert cluster.differences((), NOW) == ()
    manager(kube.api, cluster, state)
    for _ in range(2):
        assert cluster.ensure_fleet(LATER, NOW + timedelta(minutes=1)) == Done()
    assert node_of(kube.api) == GONE
    assert cluster.differences((), NOW) == ()
