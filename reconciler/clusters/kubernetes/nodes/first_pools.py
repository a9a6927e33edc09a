"""The first Cluster document of a cluster, from the nodes that it shows. Pure.

Nodes are alike if they have the same product, number of GPUs and machine type; each such group is a pool, found by the
labels that tell it from the others. The document observes: nothing is touched until a person writes `mode: manage`.
What cannot be a pool is named, each with what to do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.clusters.kubernetes.nodes.node_inventory import (
    GFD,
    REPELLING,
    SHARED,
    TOLERATED,
    Node,
    attributes,
    instance_of,
)
from schemas.reading.yaml_text import add_block

NOMINAL_GB = (4, 6, 8, 11, 12, 16, 20, 24, 32, 40, 48, 64, 80, 94, 96, 128, 141, 180, 192, 288)
"""What vendors call the memory of a GPU; drivers report up to a tenth less, in GiB."""
MOST_ABOVE = 1.1
_MEMORY = re.compile(r"(\d+)GB", re.IGNORECASE)
_BRAND = re.compile(r"^(NVIDIA|Tesla|Quadro|GeForce)[- ]", re.IGNORECASE)
_FORM = re.compile(r"-(SXM\d*|PCIE?|HBM\d\w?|NVL|Generation|\d+GB)(?=-|$)", re.IGNORECASE)
PRODUCT, COUNT = GFD + "product", GFD + "count"
INSTANCE = "node.kubernetes.io/instance-type"
_HEAD = """\
# Written by `egs init --from-cluster` from what the cluster shows. Look it through: names, prices, pools.
apiVersion: egs.dev/v1alpha1
kind: Cluster
metadata:
  name: {name}
spec:
  driver: kubernetes
  # access: {{kubeconfig: {name}}}   # where the controller runs outside of this cluster
  mode: observe           # planned and shown, and nothing is touched; later: manage
"""


@dataclass(frozen=True, slots=True)
class FirstDocument:
    """The text of the document (empty: no node could be in a pool), a line for each pool, and what to look at."""

    text: str
    pools: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """Nodes that are alike."""

    product: str  # the label's value
    gpus: int
    instance: str
    memory: int
    nodes: tuple[Node, ...]

    @property
    def shape(self) -> str:
        return shape_of(self.product, self.memory)


def first_document(name: str, nodes: Iterable[Node]) -> FirstDocument:
    """The document of the cluster `name`."""
    notes: list[str] = []
    groups = _groups(sorted((node for node in nodes if node.has_gpus), key=lambda node: node.name), notes)
    if not groups:
        return FirstDocument("", (), tuple(notes))
    names = _names(groups)
    pools, lines = [], []
    for group, pool in zip(groups, names, strict=True):
        pools.append(_pool(group, pool, groups))
        count = len(group.nodes)
        lines.append(f"{pool}: {count} {'node' if count == 1 else 'nodes'} of {group.gpus} × {group.shape}")
        notes += _to_look_at(group, pool)
    told = _shapes(groups, notes)
    written = [_HEAD.format(name=name).rstrip("\n")]
    add_block(written, {"shapes": told, "pools": pools}, "  ", "  ")
    return FirstDocument("\n".join(written) + "\n", tuple(lines), tuple(notes))


def _shapes(groups: list[_Group], notes: list[str]) -> list[dict[str, object]]:
    """What each product is; the shape of one with several memories is its pool's."""
    found: dict[str, set[tuple[str, int]]] = {}
    for group in groups:
        found.setdefault(group.product.removesuffix(SHARED), set()).add((group.shape, group.memory))
    several = sorted(product for product, shapes in found.items() if len(shapes) > 1)
    notes += (
        f"product {product} has GPUs of different memory; its nodes have the shape of their pool"
        for product in several
    )
    return [
        {"product": product, "gpuShape": shape, "memoryPerGpu": memory}
        for product, shapes in found.items()
        if product not in several
        for shape, memory in shapes
    ]


def shape_of(product: str, memory: int) -> str:
    """A short name: NVIDIA-H100-80GB-HBM3 is H100-80GB."""
    model = product.removesuffix(SHARED)
    while _BRAND.search(model):
        model = _BRAND.sub("", model)
    return f"{_FORM.sub('', model)[:50]}-{memory}GB"


def memory_of(node: Node) -> int | None:
    """Nominal memory of one of its GPUs, GB; None: nothing tells."""
    label = node.labels.get(GFD + "memory", "")
    reported = int(label) / 1024 if label.isdigit() else None
    named = next((int(found) for found in _MEMORY.findall(node.product)), None)
    if reported is None:
        return named
    # A product may name other memory: a GH200-480GB has 96 GB on its GPU.
    if named is not None and named / MOST_ABOVE <= reported <= named * MOST_ABOVE:
        return named
    return next(
        (size for size in NOMINAL_GB if reported <= size <= reported * MOST_ABOVE), max(1, round(reported))
    )


def _groups(nodes: Sequence[Node], notes: list[str]) -> list[_Group]:
    alike: dict[tuple[str, int, str, int], list[Node]] = defaultdict(list)
    for node in nodes:
        why, memory = _why_not(node), memory_of(node)
        if why or memory is None:
            notes.append(f"{node.name} is left out: {why or 'nothing tells the memory of its GPUs'}")
        else:
            alike[node.labels[PRODUCT], node.gpus, instance_of(node), memory].append(node)
    return [_Group(*key, tuple(found)) for key, found in sorted(alike.items())]


def _why_not(node: Node) -> str:
    if not node.product:
        return f"it has GPUs but no label {PRODUCT}; install GPU feature discovery, and run this again"
    if "-MIG-" in node.product:
        return "its GPUs are partitioned with MIG; take the partitions away, requests ask for them"
    return "" if node.gpus else f"nothing tells how many GPUs it has; look at its label {COUNT}"


def _names(groups: Sequence[_Group]) -> list[str]:
    """A name for each pool, short where that is enough."""
    names: list[str] = []
    for group in groups:
        model = re.sub(r"[^a-z0-9]+", "-", group.shape.rpartition("-")[0].lower()).strip("-")[:40]
        options = (model, f"{model}-{group.memory}gb", f"{model}-{group.memory}gb-{group.gpus}")
        numbered = (f"{model}-{number}" for number in range(2, len(groups) + 2))
        names.append(next(name for name in (*options, *numbered) if name not in names))
    return names


def _pool(group: _Group, name: str, groups: Sequence[_Group]) -> dict[str, object]:
    pool: dict[str, object] = {
        "name": name,
        "gpuShape": group.shape,
        "gpusPerNode": group.gpus,
        "memoryPerGpu": group.memory,
    }
    if group.instance and len(group.instance) <= 63:
        pool["instanceType"] = group.instance
    if all(attributes(node).get("rdma") == "true" for node in group.nodes):
        pool["rdma"] = True
    selector = _selector(group, groups)
    return pool | ({"selector": selector} if selector else {"nodes": [node.name for node in group.nodes]})


def _selector(group: _Group, groups: Sequence[_Group]) -> Mapping[str, str] | None:
    """Labels that select these nodes and no others; None: there are none."""
    others = [node for other in groups if other is not group for node in other.nodes]
    found: dict[str, str] = {}
    for key in (PRODUCT, COUNT, INSTANCE):
        rest = [node for node in others if all(node.labels.get(k) == v for k, v in found.items())]
        if found and not rest:
            break
        values = {node.labels.get(key) for node in group.nodes}
        value = values.pop()
        if not values and value and (not found or any(node.labels.get(key) != value for node in rest)):
            found[key] = value
    left = [node for node in others if all(node.labels.get(k) == v for k, v in found.items())]
    return None if left else found


def _to_look_at(group: _Group, pool: str) -> Iterable[str]:
    if group.product.endswith(SHARED):
        yield f"pool {pool}: its GPUs are shared between pods; requests hold whole nodes"
    taints = (taint for node in group.nodes for taint in node.taints if taint.get("effect") in REPELLING)
    for key in sorted({taint["key"] for taint in taints} - TOLERATED):
        yield (
            f"pool {pool}: the taint {key} keeps pods of slices off; take it away before mode: manage, or list it "
            "under spec.checks.tolerate and have the pods tolerate it"
        )
