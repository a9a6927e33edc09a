"""Reads nodes and pods, and derives pools from them. Pure.

GPU feature discovery, the device plugin and the MIG manager write labels; only this module reads them. A node
belongs to a pool by its name or by the pool's selector; every other GPU node is unmanaged: shown, never
changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import (
    CHECKPOINTED_AT,
    DRIVER_STATE,
    ENDS_AT,
    GPU_RESOURCE,
    MANAGED_BY,
    MANAGER,
    MIG_CONFIG,
    MIG_RESOURCE_PREFIX,
    MIG_STATE,
    NODE_PREFIX,
    SLICE,
    SYSTEM_NAMESPACE,
)
from reconciler.model.cluster_port import EARLIEST, LATEST, GpuView, UnmanagedNode
from schemas.documents.cluster import ClusterSpec
from schemas.documents.pool import Pool
from schemas.reading.units import parse_instant

GFD = "nvidia.com/gpu."
UPGRADED = "upgrade-done"
SHARED = "-SHARED"
"""Suffix that the device plugin adds to the product of a shared GPU."""
DAEMON_SET = "apps/DaemonSet"
FINISHED = frozenset({"Succeeded", "Failed"})
PROBLEM_PREFIXES = ("kernel", "gpu", "nvidia", "xid", "nvlink")
"""Conditions with these prefixes report a fault if True (node problem detector, NVSentinel)."""
TOLERATED = frozenset({GPU_RESOURCE}) | {
    f"node.kubernetes.io/{what}" for what in ("not-ready", "unreachable", "unschedulable", "memory-pressure")
}
"""Keys of taints that GPU pods usually tolerate, or that are evaluated elsewhere."""
REPELLING = ("NoExecute", "NoSchedule")
"""Effects with which a taint repels pods, the worst first."""
HEALTHY_CONDITIONS = frozenset({"AcceleratedHardwareReady"})
"""Conditions that report a fault if False, like Ready."""


@dataclass(frozen=True, slots=True)
class Node:
    """The parts read of a node object; `version` is its resourceVersion."""

    name: str
    uid: str
    version: str = field(compare=False)  # a heartbeat is no change
    labels: Mapping[str, str]
    annotations: Mapping[str, str]  # only ours
    annotated: bool  # it has any annotation: a patch depends on it
    taints: tuple[Json, ...]
    cordoned: bool  # spec.unschedulable
    conditions: Mapping[str, str]  # type -> status
    allocatable: Mapping[str, int]  # all resources counted in GPUs, MIG slices, or network devices
    capacity: Mapping[str, int]
    deleted: bool = False  # it goes, as soon as those who made it are done with it

    @property
    def ready(self) -> bool:
        """True if its kubelet reports so, recently enough for the node controller."""
        return self.conditions.get("Ready") == "True"

    @property
    def product(self) -> str:
        """The name given by GPU feature discovery, without the sharing suffix; empty: unknown."""
        return self.labels.get(GFD + "product", "").removesuffix(SHARED)

    @property
    def gpus(self) -> int:
        """Its number of GPUs: from discovery, else from the device plugin."""
        counted = self.labels.get(GFD + "count", "")
        return int(counted) if counted.isdigit() else self.capacity.get(GPU_RESOURCE, 0)

    @property
    def has_gpus(self) -> bool:
        """True if discovery or the device plugin found a GPU."""
        return bool(self.product) or any(is_gpu(name) for name in self.capacity)

    @property
    def problems(self) -> tuple[str, ...]:
        """Conditions that report a fault."""
        return tuple(sorted(name for name, status in self.conditions.items() if _is_problem(name, status)))


@dataclass(frozen=True, slots=True)
class Pod:
    namespace: str
    name: str
    uid: str
    node: str | None
    gpus: int
    phase: str
    ends: datetime | None  # its deletion's deadline; None: not being deleted
    owner: str  # group and kind of its controller; empty: a bare pod
    ours: bool  # one of our checks, in our own namespace
    tolerations: tuple[Json, ...] = field(default=())  # of GPU pods only
    mirror: bool = False  # the kubelet's own
    finalizers: tuple[str, ...] = ()
    stopped: bool = False  # its kubelet says that all its containers ended
    version: str = field(default="", compare=False)  # its resourceVersion
    ends_at: str | None = None  # its annotation
    checkpointed_at: datetime | None = field(
        default=None, compare=False
    )  # wakes no loop, however often it is set

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"

    @property
    def uses_gpus(self) -> bool:
        """True if it holds GPUs of its node."""
        return self.gpus > 0 and self.node is not None and self.phase not in FINISHED

    @property
    def exempt(self) -> bool:
        """True if it is not evicted: a DaemonSet's pod, a static pod, or one of our checks."""
        return self.owner == DAEMON_SET or self.mirror or self.ours


def read_node(item: Json) -> Node:
    meta, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    annotations = meta.get("annotations") or {}
    return Node(
        name=meta["name"],
        uid=meta["uid"],
        version=meta["resourceVersion"],
        labels=meta.get("labels") or {},
        annotations={k: v for k, v in annotations.items() if k.startswith(NODE_PREFIX)},
        annotated=bool(annotations),
        taints=tuple(spec.get("taints") or ()),
        cordoned=bool(spec.get("unschedulable")),
        conditions={c["type"]: c["status"] for c in status.get("conditions") or ()},
        allocatable=_counted(status.get("allocatable")),
        capacity=_counted(status.get("capacity")),
        deleted="deletionTimestamp" in meta,
    )


def read_pod(item: Json, system: str = SYSTEM_NAMESPACE) -> Pod | None:
    """A pod, reduced; None for a finished one. `system`: our own namespace."""
    meta, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    phase = status.get("phase", "Pending")
    gpus = gpus_of(spec)
    if phase in FINISHED and not gpus:
        return None
    owners = (o for o in meta.get("ownerReferences") or () if o.get("controller"))
    owner = next((f"{o.get('apiVersion', '').partition('/')[0]}/{o['kind']}" for o in owners), "")
    ends, annotations = meta.get("deletionTimestamp"), meta.get("annotations") or {}
    return Pod(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        node=spec.get("nodeName"),
        gpus=gpus,
        phase=phase,
        ends=None if ends is None else parse_instant(ends),
        owner=owner,
        ours=meta["namespace"] == system and (meta.get("labels") or {}).get(MANAGED_BY) == MANAGER,
        tolerations=tuple(spec.get("tolerations") or ()) if gpus else (),
        mirror="kubernetes.io/config.mirror" in annotations,
        finalizers=tuple(meta.get("finalizers") or ()),
        stopped=ends is not None and _has_stopped(spec, status),
        version=meta.get("resourceVersion", ""),
        ends_at=annotations.get(ENDS_AT),
        checkpointed_at=_said(annotations.get(CHECKPOINTED_AT)),
    )


def _said(text: str | None) -> datetime | None:
    """A time that people wrote; None for anything else, and for times that reports of a cluster do not carry."""
    try:
        found = None if text is None else parse_instant(text)
    except ValueError:
        return None
    return found if found is not None and EARLIEST <= found <= LATEST else None


def _has_stopped(spec: Json, status: Json) -> bool:
    """True if all its containers are known to have ended; unreported ones may run."""
    kinds = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
    states = [found.get("state") or {} for kind in kinds for found in status.get(kind) or ()]
    told = len(status.get("containerStatuses") or ()) >= len(spec.get("containers") or ())
    return told and all("terminated" in state for state in states)


def gpus_of(spec: Json) -> int:
    """GPUs, or MIG slices, that a pod requests: its containers together, or its largest init container.

    Each device that it claims (dynamic resource allocation) counts as one: its kind is not in the pod.
    """
    together = sum(asked_gpus(c) for c in spec.get("containers") or ())
    counted = max([together, *(asked_gpus(c) for c in spec.get("initContainers") or ())])
    return counted + len(spec.get("resourceClaims") or ())


def asked_gpus(container: Json) -> int:
    """GPUs, or MIG slices, of one container."""
    resources = container.get("resources") or {}
    # For an extended resource the request may be omitted, and then equals the limit.
    asked = (resources.get("limits") or {}) | (resources.get("requests") or {})
    return sum(_number(value) for name, value in asked.items() if is_gpu(name))


def named_pools(spec: ClusterSpec) -> dict[str, Pool]:
    """Pools by the names of their nodes, if the manifest lists them; the first one wins."""
    return {name: pool for pool in reversed(spec.pools) for name in pool.node_names()}


def pool_of(node: Node, spec: ClusterSpec, named: Mapping[str, Pool]) -> Pool | None:
    """The pool that the node belongs to, by its name (`named_pools`), else by a selector."""
    return named.get(node.name) or next((pool for pool in spec.pools if _selected(node, pool)), None)


def _selected(node: Node, pool: Pool) -> bool:
    chosen = pool.selector or {}
    return bool(chosen) and all(node.labels.get(key) == value for key, value in chosen.items())


def misfit(node: Node, pool: Pool, spec: ClusterSpec) -> str:
    """Why the node does not match its pool; empty: it does."""
    if not node.has_gpus:
        return (
            f"node {node.name} shows no GPU; its device plugin or GPU feature discovery is missing or broken"
        )
    shape = _shape(node, spec)
    if shape is not None and shape != pool.gpu_shape:
        return f"node {node.name} has {node.product}, which is {shape}, but pool {pool.name} has {pool.gpu_shape}"
    if node.gpus and node.gpus < pool.gpus_per_node:
        return f"node {node.name} has {node.gpus} GPUs, but pool {pool.name} declares {pool.gpus_per_node}"
    instance = instance_of(node)
    if pool.instance_type and instance and instance != pool.instance_type:
        return f"node {node.name} is a {instance}, but pool {pool.name} has {pool.instance_type}"
    return ""


def repelling_taint(node: Node, spec: ClusterSpec) -> str:
    """A foreign taint that repels pods of slices, as `key=value:effect`; empty: none."""
    known = TOLERATED | {SLICE, *spec.checks.tolerate}
    found = [t for t in node.taints if t.get("effect") in REPELLING and t["key"] not in known]
    found.sort(key=lambda t: (REPELLING.index(t["effect"]), t["key"], t.get("value") or ""))
    return next((f"{t['key']}={t.get('value') or ''}:{t['effect']}" for t in found), "")


def gpus_view(node: Node, pool: Pool | None, spec: ClusterSpec) -> tuple[GpuView, ...]:
    """Its GPUs. The API does not have serial numbers; agents report them."""
    memory = node.labels.get(GFD + "memory", "")
    mib = int(memory) if memory.isdigit() else (pool.memory_per_gpu * 1024 if pool is not None else 0)
    product = _shape(node, spec) or node.product or (pool.gpu_shape if pool is not None else "")
    return tuple(GpuView(f"{node.name}/{i}", i, product, mib) for i in range(node.gpus))


def attributes(node: Node) -> dict[str, str]:
    """Information about a node besides its GPUs."""
    labels = node.labels
    network = {n: str(c) for n, c in node.allocatable.items() if not is_gpu(n)}
    found = {
        "product": node.product,
        "architecture": labels.get(GFD + "family", ""),
        "machine": labels.get(GFD + "machine", ""),
        "instanceType": instance_of(node),
        "zone": labels.get("topology.kubernetes.io/zone", ""),
        "fabricDomain": labels.get(GFD + "clique", ""),
        "sharing": labels.get(GFD + "sharing-strategy", ""),
        "mig": labels.get(MIG_CONFIG, ""),
        "migState": labels.get(MIG_STATE, ""),
        "driver": labels.get("nvidia.com/cuda.driver-version.full", ""),
        "taints": ", ".join(sorted(t["key"] for t in node.taints if not t["key"].startswith(NODE_PREFIX))),
        "problems": ", ".join(node.problems),
        **{name: _first(labels, keys) for name, keys in NETWORK.items()},
        "nics": ", ".join(vendor for label, vendor in NICS.items() if labels.get(label) == "true"),
        **network,
    }
    return {name: value for name, value in sorted(found.items()) if value}


NETWORK: Mapping[str, tuple[str, ...]] = {
    "rdma": ("feature.node.kubernetes.io/rdma.available", "feature.node.kubernetes.io/rdma.capable"),
    "sriov": ("feature.node.kubernetes.io/network-sriov.capable",),
    "rdmaCluster": ("oci.oraclecloud.com/rdma.cluster_id", "oci.oraclecloud.com/host.rdma_cluster_id"),
    "island": (
        *("oci.oraclecloud.com/rdma.hpc_island_id", "network.topology.nvidia.com/core"),
        *("network.topology.nvidia.com/datacenter", "topology.k8s.aws/network-node-layer-1"),
    ),
    "block": (
        *("oci.oraclecloud.com/rdma.network_block_id", "network.topology.nvidia.com/spine"),
        *("topology.k8s.aws/network-node-layer-2", "cloud.google.com/gce-topology-block"),
    ),
    "leaf": (
        *("oci.oraclecloud.com/rdma.local_block_id", "network.topology.nvidia.com/leaf"),
        *("topology.k8s.aws/network-node-layer-3", "cloud.google.com/gce-topology-subblock"),
    ),
    "accelerator": ("network.topology.nvidia.com/accelerator", "cloud.google.com/gce-topology-host"),
}
"""Labels of node feature discovery, of topograph and of clouds, by what they tell about the network."""
NICS: Mapping[str, str] = {
    "feature.node.kubernetes.io/pci-15b3.present": "NVIDIA/Mellanox",
    "feature.node.kubernetes.io/pci-1d0f.present": "Amazon",
    "feature.node.kubernetes.io/pci-14e4.present": "Broadcom",
}
"""Makers of network devices, by the label of node feature discovery."""


def _first(labels: Mapping[str, str], names: Iterable[str]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")


def upgrade_state(node: Node) -> str:
    """State of an upgrade of its GPU driver; empty: none, or done."""
    found = node.labels.get(DRIVER_STATE, "")
    return "" if found == UPGRADED else found


def domains(node: Node, spec: ClusterSpec) -> tuple[str, ...]:
    """Its topology domains, up to the first kind without a label."""
    found: list[str] = []
    for label in spec.topology:
        if not node.labels.get(label):
            break
        found.append(node.labels[label])
    return tuple(found)


def unmanaged(nodes: Iterable[Node]) -> tuple[UnmanagedNode, ...]:
    """GPU nodes of no pool, for display."""
    return tuple(UnmanagedNode(n.name, n.product, n.gpus) for n in nodes if n.has_gpus)


def instance_of(node: Node) -> str:
    """The provider's machine type."""
    labels = node.labels
    return labels.get("node.kubernetes.io/instance-type", labels.get("beta.kubernetes.io/instance-type", ""))


def _shape(node: Node, spec: ClusterSpec) -> str | None:
    """The manifest's name for its product; None: not listed."""
    return next((s.gpu_shape for s in spec.shapes if s.product == node.product), None)


def is_gpu(resource: str) -> bool:
    """True for whole GPUs and for MIG slices."""
    return resource == GPU_RESOURCE or resource.startswith(MIG_RESOURCE_PREFIX)


def _is_problem(name: str, status: str) -> bool:
    if name in HEALTHY_CONDITIONS:
        return status == "False"
    return status == "True" and name.lower().startswith(PROBLEM_PREFIXES)


def _counted(resources: Mapping[str, str] | None) -> dict[str, int]:
    """Extended resources: those with a domain other than Kubernetes' own."""
    named = {n: v for n, v in (resources or {}).items() if "/" in n and not n.startswith("hugepages")}
    return {name: _number(value) for name, value in named.items()}


def _number(quantity: object) -> int:
    """An integer count; an invalid one counts as one, never as zero."""
    text = str(quantity)
    if text.isdigit():
        return int(text)
    return int(text[:-1]) * 1000 if text[:-1].isdigit() and text.endswith("k") else 1
