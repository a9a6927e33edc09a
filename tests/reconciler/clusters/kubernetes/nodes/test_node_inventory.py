"""What is read of nodes and pods: G1, G2, A12 (unmanaged nodes are listed and left alone), D17 (sharing, RDMA)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciler.clusters.kubernetes.names import LEASE, SLICE
from reconciler.clusters.kubernetes.nodes import node_inventory
from reconciler.clusters.kubernetes.nodes.cluster_view import Known, Looks, by_node, owners_of
from reconciler.clusters.kubernetes.nodes.node_inventory import (
    gpus_of,
    named_pools,
    pool_of,
    read_node,
    read_pod,
)
from reconciler.clusters.kubernetes.nodes.stray_pods import LASTING, Strays, strays
from schemas.documents.cluster import Checks, ClusterSpec
from tests.support.kube import cpu_node, gpu_node

DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "controller": True}
AT = datetime(2026, 11, 21, 8, tzinfo=UTC)
SPEC = ClusterSpec.model_validate_json(
    """{"driver": "kubernetes", "shapes": [
      {"product": "NVIDIA-H100-80GB-HBM3", "gpuShape": "H100-80GB", "memoryPerGpu": 80},
      {"product": "NVIDIA-A100-SXM4-40GB", "gpuShape": "A100-40GB", "memoryPerGpu": 40}],
    "pools": [
      {"name": "named", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": ["a", "b"]},
      {"name": "found", "gpuShape": "A100-40GB", "gpusPerNode": 4, "memoryPerGpu": 40,
       "selector": {"team": "ml"}, "instanceType": "p4d"}]}"""
)
NAMED = named_pools(SPEC)


def node(name="a", **kwargs):
    """A node as the server gives it."""
    return read_node(as_served(gpu_node(name, **kwargs)))


def as_served(item):
    """With what the server adds to an object."""
    item["metadata"] |= {"uid": f"uid-{item['metadata']['name']}", "resourceVersion": "7"}
    return item


def pod(name, namespace="vision", node="a", gpus=8, phase="Running", tolerates="", **meta):
    """A pod as the server gives it."""
    container = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)} if gpus else {}}}
    return read_pod(
        as_served(
            {
                "metadata": {"name": name, "namespace": namespace, **meta},
                "spec": {"nodeName": node, "containers": [container]}
                | ({"tolerations": [{"key": SLICE, "value": tolerates}]} if tolerates else {}),
                "status": {"phase": phase},
            }
        )
    )


def view(nodes, pods=(), slices=None):
    """What the reconciler sees of them."""
    known = Known({n.name: n for n in nodes}, {p.key: p for p in pods}, slices or {}, "default")
    return Looks(SPEC, NAMED).look(known, by_node(known.pods, owners_of(known.slices)), AT)


@pytest.mark.parametrize(
    ("found", "pool"),
    [
        pytest.param(node("a"), "named", id="by its name"),
        pytest.param(node("x", team="ml"), "found", id="by its labels"),
        pytest.param(node("a", team="ml"), "named", id="its name comes first"),
        pytest.param(node("x"), None, id="by neither: unmanaged"),
    ],
)
def test_a_node_belongs_to_a_pool(found, pool):
    got = pool_of(found, SPEC, NAMED)
    assert (got and got.name) == pool


@pytest.mark.parametrize(
    ("found", "why"),
    [
        pytest.param(node(), "", id="what the pool promises"),
        pytest.param(
            node(product="NVIDIA-H100-80GB-HBM3-SHARED"), "", id="sharing changes the product's name"
        ),
        pytest.param(node(product="NVIDIA-Unheard-Of"), "", id="a product that the manifest does not map"),
        pytest.param(node(product="NVIDIA-A100-SXM4-40GB"), "which is A100-40GB", id="another GPU"),
        pytest.param(node(gpus=4), "declares 8", id="fewer GPUs: one fell off the bus"),
        pytest.param(read_node(as_served(cpu_node("a"))), "shows no GPU", id="no device plugin"),
    ],
)
def test_a_node_that_is_not_what_its_pool_says_is_told(found, why):
    assert why in node_inventory.misfit(found, NAMED["a"], SPEC)
    assert bool(why) == bool(view([found]).nodes["a"].unfit)


@pytest.mark.parametrize(
    ("taints", "shown"),
    [
        pytest.param([], "", id="none"),
        pytest.param([("egs.node-restriction.kubernetes.io/slice", "a", "NoSchedule")], "", id="ours"),
        pytest.param(
            [("nvidia.com/gpu", "present", "NoSchedule")], "", id="the vendor's, which GPU pods tolerate"
        ),
        pytest.param([("node.kubernetes.io/unschedulable", None, "NoSchedule")], "", id="a cordon's"),
        pytest.param([("node.kubernetes.io/not-ready", None, "NoExecute")], "", id="a silent node's"),
        pytest.param([("team", "ml", "PreferNoSchedule")], "", id="one that only asks"),
        pytest.param([("spot", None, "NoSchedule")], "", id="one that the manifest knows"),
        pytest.param([("team", "ml", "NoSchedule")], "team=ml:NoSchedule", id="one that keeps pods off"),
        pytest.param(
            [("a", None, "NoSchedule"), ("z", None, "NoExecute")], "z=:NoExecute", id="the worst is named"
        ),
        pytest.param(
            [("node.kubernetes.io/disk-pressure", None, "NoSchedule")],
            "node.kubernetes.io/disk-pressure=:NoSchedule",
            id="a kubelet's own trouble",
        ),
    ],
)
def test_a_taint_that_pods_of_slices_do_not_tolerate_is_named(taints, shown):
    rows = [{"key": k, "effect": e} | ({"value": v} if v else {}) for k, v, e in taints]
    found = replace(node("a"), taints=tuple(rows))
    spec = SPEC.model_copy(update={"checks": Checks(tolerate=("spot",))})
    assert node_inventory.repelling_taint(found, spec) == shown
    known = Known({"a": found}, {}, {}, "default")
    seen = Looks(spec, NAMED).look(known, {}, AT).nodes["a"]
    assert (seen.taint, seen.usable) == (shown, not shown and found.ready)


def test_a_pod_that_claims_devices_counts_as_a_gpu_pod():
    """Dynamic resource allocation: its containers name no GPU."""
    claims = [
        {"name": "gpu", "resourceClaimTemplateName": "one-gpu"},
        {"name": "b", "resourceClaimName": "c"},
    ]
    assert node_inventory.gpus_of({"containers": [{"name": "main"}], "resourceClaims": claims}) == 2
    assert node_inventory.gpus_of({"containers": [{"name": "main"}]}) == 0


def test_other_gpu_nodes_are_listed_and_no_more():
    """A12: brownfield."""
    got = view([node("a"), node("x", gpus=2), read_node(as_served(cpu_node("cpu")))])
    assert (list(got.nodes), [(u.name, u.gpus) for u in got.unmanaged]) == (["a"], [("x", 2)])


def test_what_people_ask_about_a_node_is_shown():
    """G2: network, fabric, zone, sharing, and what others say is wrong with it."""
    item = as_served(
        gpu_node(
            "a",
            **{
                "topology.kubernetes.io__zone": "z1",
                "nvidia.com__gpu.clique": "fabric-1.0",
                "node.kubernetes.io__instance-type": "p5.48xlarge",
                "nvidia.com__gpu.sharing-strategy": "none",
            },
        )
    )
    item["status"]["allocatable"]["rdma/hca"] = "8"
    item["status"]["conditions"] += [
        {"type": "GpuMemWatch", "status": "True"},
        {"type": "AcceleratedHardwareReady", "status": "False"},
        {"type": "DiskPressure", "status": "False"},
    ]
    got = view([read_node(item)]).nodes["a"].attributes
    assert got == {
        "product": "NVIDIA-H100-80GB-HBM3",
        "zone": "z1",
        "fabricDomain": "fabric-1.0",
        "instanceType": "p5.48xlarge",
        "sharing": "none",
        "rdma/hca": "8",
        "problems": "AcceleratedHardwareReady, GpuMemWatch",
    }


@pytest.mark.parametrize(
    ("found", "foreign"),
    [
        pytest.param(pod("train"), ("vision/train",), id="a GPU pod of nobody's slice"),
        pytest.param(pod("web", gpus=0), (), id="a CPU pod"),
        pytest.param(pod("done", phase="Succeeded"), (), id="a finished pod"),
        pytest.param(pod("wait", node=None), (), id="a pod that has no node"),
        pytest.param(
            pod("plugin", ownerReferences=[DAEMON_SET]),
            (),
            id="a DaemonSet's pod",
        ),
        pytest.param(
            pod("check", "egs-system", labels={"app.kubernetes.io/managed-by": "egs"}),
            (),
            id="one of our checks",
        ),
        pytest.param(
            pod("sly", labels={"app.kubernetes.io/managed-by": "egs"}),
            ("vision/sly",),
            id="one that calls itself a check of ours",
        ),
        pytest.param(
            pod("sly", ownerReferences=[{**DAEMON_SET, "apiVersion": "x.example/v1"}]),
            ("vision/sly",),
            id="one that calls itself a DaemonSet's",
        ),
    ],
)
def test_a_node_with_foreign_gpu_pods_is_not_free(found, foreign):
    got = view([node()], [found] if found else []).nodes["a"]
    assert (got.foreign, got.usable) == (foreign, not foreign)


@pytest.mark.parametrize(
    "meta",
    [
        pytest.param({"ownerReferences": [DAEMON_SET]}, id="a DaemonSet's"),
        pytest.param({"labels": {"app.kubernetes.io/managed-by": "egs"}}, id="one of ours"),
        pytest.param({"annotations": {"kubernetes.io/config.mirror": "x"}}, id="the kubelet's"),
    ],
)
def test_no_pod_of_a_slice_talks_itself_out_of_the_strict_end(meta):
    """D7: whatever it claims to be."""
    found = pod("sly", **meta)
    assert by_node({found.key: found}, {"vision": "vision"}) == {"a": (found,)}


@pytest.mark.parametrize(
    ("found", "lease", "is_stray"),
    [
        pytest.param(pod("train", tolerates="vision"), None, True, id="chosen before our taint was seen"),
        pytest.param(pod("train"), None, False, id="there before its namespace was a slice's"),
        pytest.param(pod("train"), "speech", True, id="on another slice's node"),
        pytest.param(pod("train", tolerates="vision"), "vision", False, id="on its slice's node"),
        pytest.param(pod("theirs", "other", tolerates="vision"), None, False, id="of nobody's slice"),
    ],
)
def test_a_slices_pod_where_it_may_not_be_is_a_stray(found, lease, is_stray):
    """C6."""
    item = as_served(gpu_node("a"))
    if lease is not None:
        held = json.dumps(
            {"uid": "u", "request": f"{lease}/r", "slice": lease, "end": "2026-11-21T09:00:00Z"}
        )
        item["metadata"]["annotations"] = {LEASE: held}
    known = Known({"a": read_node(item)}, {found.key: found}, {"vision": ("vision",)}, "default")
    assert bool(strays(known, SPEC, NAMED)) == is_stray


def test_a_stray_is_told_only_when_it_stays_one():
    """Somebody took a node's marks away: it comes back to its slice in the same round, and its job goes on."""
    found = pod("train", tolerates="vision")
    known = Known({"a": node()}, {found.key: found}, {"vision": ("vision",)}, "default")
    seen = Strays(SPEC, NAMED)
    assert seen.lasting(known, AT) == []
    assert seen.lasting(known, AT + LASTING) == [found]
    assert seen.lasting(replace(known, pods={}), AT + LASTING) == []
    assert seen.lasting(known, AT + 2 * LASTING) == []


@pytest.mark.parametrize(
    ("spec", "gpus"),
    [
        pytest.param(
            [{"limits": {"nvidia.com/gpu": "2"}}, {"limits": {"nvidia.com/gpu": 1}}], 3, id="together"
        ),
        pytest.param([{"limits": {"nvidia.com/mig-1g.10gb": "2"}}], 2, id="slices of a GPU count too"),
        pytest.param([{"limits": {"cpu": "2"}}], 0, id="none"),
        pytest.param([{}], 0, id="no resources at all"),
    ],
)
def test_gpus_of_a_pod(spec, gpus):
    assert gpus_of({"containers": [{"resources": r} for r in spec]}) == gpus


def test_an_init_container_may_ask_for_more():
    init = [{"resources": {"limits": {"nvidia.com/gpu": "4"}}}]
    assert gpus_of({"containers": [{}], "initContainers": init}) == 4


def test_a_second_look_sees_what_changed_and_nothing_else():
    """A node that rests is not worked out again."""
    looks = Looks(SPEC, NAMED)

    def look(*nodes, pods=()):
        known = Known({n.name: n for n in nodes}, {p.key: p for p in pods}, {}, "default")
        return looks.look(known, by_node(known.pods, {}), AT).nodes

    a, b = node("a"), node("b")
    first = look(a, b)
    second = look(a, node("b", gpus=4), pods=[pod("train")])
    assert second["b"].unfit != first["b"].unfit
    assert second["a"].foreign == ("vision/train",)
    assert look(a, node("b", gpus=4), pods=[pod("train")])["b"] is second["b"]
    assert list(look(a)) == ["a"]
