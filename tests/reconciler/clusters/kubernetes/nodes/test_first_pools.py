"""The first Cluster document from a cluster's nodes: pools of alike nodes, and what a person has to look at. B3."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from reconciler.clusters.kubernetes.nodes.first_pools import first_document, shape_of
from reconciler.clusters.kubernetes.nodes.node_inventory import Node, instance_of, pool_of, read_node
from schemas.documents.cluster import ClusterSpec
from schemas.reading.reader import read_document
from tests.support.kube import cpu_node, gpu_node

H100, A100, L40S = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-40GB", "NVIDIA-L40S"
INSTANCE, MEMORY = "node.kubernetes.io__instance-type", "nvidia.com__gpu.memory"
COUNT, PRODUCT = "nvidia.com/gpu.count", "nvidia.com/gpu.product"


def node(
    name: str, gpus: int = 8, product: str = H100, *, taint: str = "", without: str = "", **labels: str
) -> Node:
    item = gpu_node(name, gpus, product, **labels)
    item["metadata"] |= {"uid": name, "resourceVersion": "1"}
    item["metadata"]["labels"].pop(without, None)
    if taint:
        item["spec"] = {"taints": [{"key": taint, "effect": "NoSchedule"}]}
    return read_node(item)


def pools(*nodes: Node) -> list[dict[str, Any]]:
    """Pools of the document, which is valid and gives each of its nodes to the pool that it was made for."""
    made = first_document("north", nodes)
    read = read_document("clusters/north.yaml", made.text.encode())
    assert not isinstance(read, tuple)
    spec = read.spec
    assert isinstance(spec, ClusterSpec)
    assert spec.mode == "observe"
    named = {name: pool for pool in spec.pools for name in pool.node_names()}
    for each in nodes:
        found = pool_of(each, spec, named)
        assert found is not None
        assert (found.gpus_per_node, found.instance_type or "") == (each.gpus, instance_of(each))
    return list(yaml.safe_load(made.text)["spec"]["pools"])


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        pytest.param(
            [node("a"), node("b")],
            [("h100", "H100-80GB", 8, 80, {PRODUCT: H100})],
            id="alike nodes are one pool",
        ),
        pytest.param(
            [node("a"), node("b", 4, L40S, **{MEMORY: "46068"})],
            [("h100", "H100-80GB", 8, 80, {PRODUCT: H100}), ("l40s", "L40S-48GB", 4, 48, {PRODUCT: L40S})],
            id="a product is a pool",
        ),
        pytest.param(
            [node("a"), node("b", 4)],
            [
                ("h100", "H100-80GB", 4, 80, {PRODUCT: H100, COUNT: "4"}),
                ("h100-80gb", "H100-80GB", 8, 80, {PRODUCT: H100, COUNT: "8"}),
            ],
            id="so is a number of GPUs, which the selector then names",
        ),
        pytest.param(
            [node("a", **{INSTANCE: "p5.48xlarge"}), node("b", **{INSTANCE: "p5e"})],
            [
                ("h100", "H100-80GB", 8, 80, {PRODUCT: H100, INSTANCE.replace("__", "/"): "p5.48xlarge"}),
                ("h100-80gb", "H100-80GB", 8, 80, {PRODUCT: H100, INSTANCE.replace("__", "/"): "p5e"}),
            ],
            id="so is a machine type",
        ),
        pytest.param(
            [node("a", **{INSTANCE: "p5"}), node("b")],
            [("h100", "H100-80GB", 8, 80, None), ("h100-80gb", "H100-80GB", 8, 80, None)],
            id="what no label tells apart is listed by name where that is needed",
        ),
        pytest.param(
            [
                node("a", 8, A100, **{MEMORY: "40960"}),
                node("b", 8, "NVIDIA-GH200-480GB", **{MEMORY: "97871"}),
            ],
            [
                ("a100", "A100-40GB", 8, 40, {PRODUCT: A100}),
                ("gh200", "GH200-96GB", 8, 96, {PRODUCT: "NVIDIA-GH200-480GB"}),
            ],
            id="memory is the GPU's own",
        ),
    ],
)
def test_pools(nodes: list[Node], want: list[tuple[str, str, int, int, dict[str, str] | None]]) -> None:
    """B3: what a selector finds is what the pool was made of."""
    got = [
        (p["name"], p["gpuShape"], p["gpusPerNode"], p["memoryPerGpu"], p.get("selector"))
        for p in pools(*nodes)
    ]
    assert [row[:4] for row in got] == [row[:4] for row in want]
    assert all(wanted[4] is None or row[4] == wanted[4] for row, wanted in zip(got, want, strict=True))


@pytest.mark.parametrize(
    ("found", "pools_left", "words"),
    [
        pytest.param(node("a", without=PRODUCT), 0, "install GPU feature discovery", id="no product"),
        pytest.param(
            node("a", product="NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"), 0, "with MIG", id="MIG partitions"
        ),
        pytest.param(
            node("a", product="NVIDIA-L4", without="nvidia.com/gpu.memory"), 0, "memory", id="no memory"
        ),
        pytest.param(node("a", product=f"{H100}-SHARED"), 1, "are shared between pods", id="shared GPUs"),
        pytest.param(node("a", taint="dedicated"), 1, "the taint dedicated keeps pods", id="a foreign taint"),
        pytest.param(node("a", taint="nvidia.com/gpu"), 1, None, id="the vendor's own taint is no matter"),
    ],
)
def test_what_a_person_has_to_look_at_is_said(found: Node, pools_left: int, words: str | None) -> None:
    made = first_document("north", [found])
    assert len(made.pools) == pools_left
    assert (made.text != "") is (pools_left > 0)
    assert [words in note for note in made.notes] == ([True] if words else [])


def test_a_product_with_two_memories_is_told_by_its_pools_alone() -> None:
    """A shape by product would make nodes of one of the two pools misfits."""
    both = [node("a", 8, "NVIDIA-A100-SXM4", **{MEMORY: f"{gb * 1024}"}) for gb in (40, 80)]
    made = first_document("north", [both[0], replace(both[1], name="b"), node("c")])
    assert [row["product"] for row in yaml.safe_load(made.text)["spec"]["shapes"]] == [H100]
    assert [note for note in made.notes if "of different memory" in note] != []


def test_a_cluster_without_gpus_has_no_document() -> None:
    item = cpu_node("a")
    item["metadata"] |= {"uid": "a", "resourceVersion": "1"}
    made = first_document("north", [read_node(item)])
    assert (made.text, made.pools, made.notes) == ("", (), ())


@pytest.mark.parametrize(
    ("product", "memory", "want"),
    [
        ("NVIDIA-H100-80GB-HBM3", 80, "H100-80GB"),
        ("NVIDIA-H100-PCIe", 80, "H100-80GB"),
        ("Tesla-V100-SXM2-32GB", 32, "V100-32GB"),
        ("NVIDIA-RTX-6000-Ada-Generation", 48, "RTX-6000-Ada-48GB"),
        ("NVIDIA-H100-NVL", 94, "H100-94GB"),
        ("NVIDIA-A10-SHARED", 24, "A10-24GB"),
    ],
)
def test_shapes_have_short_names(product: str, memory: int, want: str) -> None:
    assert shape_of(product, memory) == want
