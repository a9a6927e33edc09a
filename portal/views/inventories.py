"""GPU nodes on the wire, under the vendor's names, limited to what the caller's workspaces may use. Pure.

Held by tests/portal/test_queue.py: a caller sees no node that their workspaces may not use, and of nodes held by other
workspaces only that they are taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field

from portal.http.context import Wire, optional
from portal.identity.callers import Caller
from portal.views.view import View
from reconciler.clusters.pod_sources import Attributes
from reconciler.model.facts import NodeKey
from reconciler.queries.running.sight import Devices, Sources
from reconciler.queries.tables import held_nodes
from reconciler.workloads.gpu_rows import card
from reconciler.workloads.thresholds import limits_of
from scheduler.calendars.elastic import existing
from scheduler.snapshot import Lease, Pool
from schemas.documents.gpr import RequestSpec
from schemas.documents.slice import SliceSpec
from schemas.rules.limits import broken_there
from schemas.status.node_status import GpuReport, NodeState

_LEAST = RequestSpec(slice="none", nodes=1, duration=timedelta(minutes=1), priority=1)
"""The smallest possible request: a pool that refuses it refuses every request of the workspace."""
NETWORK = frozenset(
    (
        *("nics", "rdma", "rdmaCluster", "rdmaSubnet", "sriov", "secondaryNetwork", "fabricDomain"),
        *("island", "block", "leaf", "accelerator", "zone"),
    )
)
"""Attributes of nodes that tell about their network."""
_BLOCKED = frozenset({NodeState.CORDONED, NodeState.OCCUPIED, NodeState.DIRTY, NodeState.UNFIT})


class AllocationTimestamp(Wire):
    """Seconds since 1970, as the vendor has it."""

    seconds: int
    nanos: int = 0


class Allocation(Wire):
    """The holder of a node; names are empty for another workspace's request."""

    gpr_name: str
    slice_name: str
    total_gpus_allocated: int = Field(alias="totalGPUsAllocated")
    allocation_timestamp: AllocationTimestamp


class SlicingProfile(Wire):
    """A part of a GPU, as the vendor has it. Nodes are allocated whole, so there never is one."""

    profile_name: str
    memory: int
    total_gpus: int = Field(alias="totalGPUs")
    device_name: str
    available_gpus: int = Field(alias="availableGPUs")
    memory_per_gpu: int = Field(alias="memoryPerGPU")
    gpus_per_node: int = Field(alias="gpusPerNode")


class Device(Wire):
    """One GPU of a node; null: not reported."""

    index: int
    uuid: str
    product: str
    memory_mib: int
    healthy: bool
    serial: str | None
    board_part: str | None
    vbios: str | None
    driver: str | None
    mig_enabled: bool | None
    mig_devices: int | None
    links: int | None
    links_up: int | None


class Inventory(Wire):
    """One GPU node."""

    gpu_node_name: str
    gpu_shape: str
    gpu_model_name: str = Field(description="As the node's agent reported it; else the shape.")
    instance_type: str = Field(description="Empty: its pool names none.")
    cluster_name: str
    pool: str = Field(description="Empty: it is in no pool.")
    memory: int = Field(description="GB of each GPU; 0: unknown.")
    gpu_count: int
    available_gpus: int = Field(alias="availableGPUs", description="All GPUs of a free node, else 0.")
    gpu_temp_threshold: float | None = Field(description="°C at which a GPU is hot.")
    gpu_power_threshold: float | None = optional("W at which a GPU's power counts as high; null: unknown.")
    cloud_provider: str = Field(default="", description="Always empty: no manifest names it.")
    region: str = Field(default="", description="Always empty: no manifest names it.")
    cloud: str = Field(default="", description="Always empty: no manifest names it.")
    node_health: Literal["Healthy", "Unhealthy", "Unschedulable", "Unknown"]
    gpu_node_status: Literal["NODE_AVAILABLE", "NODE_RESERVED"]
    allocation: list[Allocation]
    gpu_slicing_profile: list[SlicingProfile] = Field(
        default_factory=list, description="Always empty: nodes are allocated whole."
    )
    devices: list[Device] = Field(
        default_factory=list, description="Its GPUs as its agent reported them last, healthy ones too."
    )
    network: dict[str, str] = Field(
        default_factory=dict,
        description="What the node shows of its network: NICs, RDMA devices and subnet, fabric, island, block, leaf.",
        examples=[{"fabricDomain": "7b4e.1", "nics": "NVIDIA/Mellanox", "rdma": "true", "rdma/hca": "8"}],
    )


class Nodes(Wire):
    """All GPU nodes visible to the caller."""

    managed_nodes: list[Inventory] = Field(description="Nodes of pools, which requests can get.")
    unmanaged_nodes: list[Inventory] = Field(
        description="Nodes of no pool; shown to admins, never allocated."
    )


class WorkspaceNodes(Wire):
    """Equal nodes that a workspace may use."""

    instance_type: str
    gpu_shape: str
    memory_per_gpu: int
    gpu_per_node: int
    total_gpu_nodes: int
    cluster_name: str


class WorkspaceInventory(Wire):
    """The nodes that a workspace may use."""

    workspace_inventory: list[WorkspaceNodes]


def held_of(view: View) -> Mapping[NodeKey, Lease]:
    """The lease on each held node; call it through `view.once_planned`."""
    return held_nodes(view.state)


def may_use(slice_: SliceSpec, pool: Pool) -> bool:
    """Whether any request of that workspace could run there."""
    return pool.key[0] in slice_.clusters and not broken_there(_LEAST, slice_.limits, (pool.key[0], pool))


def pools_for(view: View, caller: Caller) -> Iterator[Pool]:
    """Pools that the caller's workspaces may use; all pools for a caller who sees every workspace."""
    own = [spec for name, spec in view.rights.wanted.slices.items() if caller.may_see(name)]
    for pool in view.wanted.pools.values():
        if caller.sees is None or any(may_use(spec, pool) for spec in own):
            yield pool


@dataclass(frozen=True, slots=True)
class Shown:
    """What agents and clusters tell about nodes."""

    devices: Devices = field(default_factory=dict)
    attributes: Mapping[str, Attributes] = field(default_factory=dict)  # by cluster


def shown(sources: Sources, view: View, caller: Caller, now: datetime) -> Shown:
    """Asks agents' branches, and the clusters in which the caller has nodes; never in the event loop."""
    clusters = sorted({pool.key[0] for pool in pools_for(view, caller)})
    specs = {name: view.wanted.manifests.get(name, view.wanted.clusters[name]) for name in clusters}
    attributes = {name: sources.pods.attributes(name, spec, now) for name, spec in specs.items()}
    return Shown(sources.devices(view.wanted, now), attributes)


def inventory(view: View, caller: Caller, told: Shown) -> Nodes:
    """Nodes by cluster, pool and name."""
    leases = view.once_planned(held_of)
    managed = [
        _node(view, caller, (pool, name), leases.get((pool.key[0], name)), told)
        for pool in pools_for(view, caller)
        for name in existing(pool)
    ]
    return Nodes(managed_nodes=managed, unmanaged_nodes=list(_unmanaged(view)) if caller.sees is None else [])


def _node(view: View, caller: Caller, node: tuple[Pool, str], lease: Lease | None, told: Shown) -> Inventory:
    pool, name = node
    record = view.facts.nodes.get((pool.key[0], name))
    state = NodeState.READY if record is None else record.state
    devices = told.devices.get((pool.key[0], name)) or (() if record is None else record.gpus)
    model = next((gpu.product for gpu in devices), "")
    limits = limits_of(pool.gpu_shape, view.wanted.clusters[pool.key[0]], {})
    is_free = lease is None and state in (NodeState.READY, NodeState.SUSPECT)
    return Inventory(
        gpu_node_name=name,
        gpu_shape=pool.gpu_shape,
        gpu_model_name=model or pool.gpu_shape,
        instance_type=pool.instance_type or "",
        cluster_name=pool.key[0],
        pool=pool.key[1],
        memory=pool.memory_per_gpu,
        gpu_count=pool.gpus_per_node,
        available_gpus=pool.gpus_per_node if is_free else 0,
        gpu_temp_threshold=limits.temp_c,
        gpu_power_threshold=limits.power_w,
        node_health=_health(state),
        gpu_node_status="NODE_AVAILABLE" if lease is None else "NODE_RESERVED",
        allocation=[] if lease is None else [_allocation(caller, lease, pool.gpus_per_node)],
        devices=[_device(gpu) for gpu in devices],
        network=_network(told.attributes.get(pool.key[0], {}).get(name, {})),
    )


def _device(gpu: GpuReport) -> Device:
    known = {"index": gpu.index, "uuid": gpu.uuid, "product": gpu.product, "memoryMib": gpu.memory_mib}
    return Device.model_validate({**known, "healthy": gpu.healthy, **card(gpu)})


def _network(attributes: Mapping[str, str]) -> dict[str, str]:
    """Those about the network: by name, and devices that are counted as resources."""
    return {name: value for name, value in attributes.items() if name in NETWORK or "/" in name}


def _health(state: NodeState) -> Literal["Healthy", "Unhealthy", "Unschedulable"]:
    if state is NodeState.READY:
        return "Healthy"
    return "Unschedulable" if state in _BLOCKED else "Unhealthy"


def _allocation(caller: Caller, lease: Lease, gpus: int) -> Allocation:
    slice_, _, name = lease.key.partition("/") if caller.may_see(lease.slice) else ("", "", "")
    return Allocation(
        gpr_name=name,
        slice_name=slice_,
        total_gpus_allocated=gpus,
        allocation_timestamp=AllocationTimestamp(seconds=lease.held_from),
    )


def _unmanaged(view: View) -> Iterator[Inventory]:
    pooled = {(key[0], name) for key, pool in view.wanted.pools.items() for name in existing(pool)}
    for cluster, found in sorted(view.facts.unmanaged.items()):
        for node in found:
            if cluster in view.wanted.clusters and (cluster, node.name) not in pooled:
                yield Inventory(
                    gpu_node_name=node.name,
                    gpu_shape=node.product,
                    gpu_model_name=node.product,
                    instance_type="",
                    cluster_name=cluster,
                    pool="",
                    memory=0,
                    gpu_count=node.gpus,
                    available_gpus=0,
                    gpu_temp_threshold=None,
                    node_health="Unknown",
                    gpu_node_status="NODE_AVAILABLE",
                    allocation=[],
                )


def workspace_inventory(view: View, slice_: str) -> WorkspaceInventory:
    """Nodes that a workspace may use, equal ones counted together. The workspace must exist."""
    spec, counts = view.wanted.slices[slice_], Counter[tuple[str, str, int, int, str]]()
    for pool in view.wanted.pools.values():
        if may_use(spec, pool):
            kind = (
                pool.instance_type or "",
                pool.gpu_shape,
                pool.memory_per_gpu,
                pool.gpus_per_node,
                pool.key[0],
            )
            counts[kind] += len(existing(pool))
    return WorkspaceInventory(
        workspace_inventory=[
            WorkspaceNodes(
                instance_type=kind[0],
                gpu_shape=kind[1],
                memory_per_gpu=kind[2],
                gpu_per_node=kind[3],
                total_gpu_nodes=count,
                cluster_name=kind[4],
            )
            for kind, count in counts.items()
        ]
    )
