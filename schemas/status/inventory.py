"""Machine-written status of clusters: their nodes, and which request has them when."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Instant
from schemas.status.gpr_status import Phase
from schemas.status.node_status import NodeState


class Ask(Model):
    """Nodes that were requested and do not exist yet."""

    at: Instant = Field(description="When they were requested.")
    nodes: int = Field(ge=1, description="Number of nodes.")
    late: int = Field(0, ge=0, description="How often they did not arrive in time.")


class PoolScale(Model):
    """The decided size of an elastic pool."""

    wanted: int = Field(ge=0, description="Nodes that the cluster is told to have.")
    asks: tuple[Ask, ...] = Field((), description="Nodes on their way, oldest first.")
    leaving: tuple[str, ...] = Field((), description="Nodes being removed; no request gets them.")


class InventoryPool(Model):
    """Counts of one pool."""

    name: str = Field(description="Name of the pool.")
    gpu_shape: str = Field(description="GPU product.")
    gpus_per_node: int = Field(description="GPUs of one node.")
    memory_per_gpu: int = Field(description="Nominal memory of one GPU, GB.")
    nodes: int = Field(description="Nodes it should have.")
    ready: int = Field(description="Nodes that are Ready.")
    leased: int = Field(description="Nodes that requests hold.")
    scale: PoolScale | None = Field(None, description="Its decided size; absent: it is not elastic.")


class InventoryNode(Model):
    """One node that is leased or not Ready."""

    name: str = Field(description="Name of the node.")
    pool: str = Field(description="Its pool.")
    state: NodeState = Field(description="What it is to the planner.")
    lease: str | None = Field(None, description="slice/name of the request that holds it.")


class UnmanagedNode(Model):
    """A GPU node in no pool: shown, never touched."""

    name: str = Field(description="Name of the node.")
    product: str = Field(description="GPU product, as labelled by the cluster.")
    gpus: int = Field(description="Its GPUs.")


class PoolNodes(Document):
    """`clusters/<cluster>/pools/<pool>/<part>.yaml`: the nodes of a pool with a selector."""

    kind: Literal["PoolNodes"] = Field("PoolNodes", description="Kind of document.")
    nodes: tuple[str, ...] = Field((), description="Names of its nodes, or of a part of them, sorted.")


class SliceQueue(Model):
    """A slice's Kueue queue in the cluster."""

    slice: str = Field(description="Name of the slice.")
    gpus: int = Field(0, description="GPUs that its workloads may use together now; partitions with `mig`.")
    stop: Literal["None", "Hold", "HoldAndDrain"] = Field(
        "None",
        description="None: workloads are admitted; Hold: no more are; HoldAndDrain: admitted ones are suspended too.",
    )
    mig: str = Field("", description="MIG profile of the partitions; empty: whole GPUs.")
    state: Literal["Kept", "Observed", "Missing"] = Field(
        description="Kept: it is so in the cluster; Observed: it would be so; Missing: the message says why.",
    )
    message: str = Field("", description="Why the cluster has none, and what to do.")


class SliceExport(Model):
    """A Service that a slice exports from the cluster."""

    namespace: str = Field(description="Namespace of the Service.")
    name: str = Field(description="Name of the Service.")
    state: Literal["Exported", "Waiting", "Unanswered", "Refused", "Conflict"] = Field(
        description="Exported: other clusters can use it; Waiting: not yet; Unanswered: no controller has taken it up; "
        "Refused: its controller cannot export it; Conflict: other clusters export another one of its name.",
    )
    message: str = Field("", description="What its controller says, or what to do.")

    @property
    def dns(self) -> str:
        """Its name in every cluster of the slice."""
        return f"{self.name}.{self.namespace}.svc.clusterset.local"


class SliceServices(Model):
    """What a slice exports from the cluster, and what lets its other clusters in."""

    slice: str = Field(description="Name of the slice.")
    state: Literal["Kept", "Observed", "Missing"] = Field(
        description="Kept: it is so in the cluster; Observed: nothing is written; Missing: the message says why.",
    )
    policy: Literal["ClusterNames", "Addresses", "None"] = Field(
        "None",
        description="How network policies name the slice's other clusters: by name and slice, by the addresses of all "
        "their pods, or not at all.",
    )
    exports: tuple[SliceExport, ...] = Field((), description="Its exported Services, at most 100.")
    message: str = Field("", description="What is missing, and what to do.")


class NodeFaults(Model):
    """Recent faults of a node."""

    name: str = Field(description="Name of the node.")
    at: tuple[Instant, ...] = Field(description="When its faults began, oldest first.")


class Inventory(Document):
    """`clusters/<cluster>/inventory.yaml`."""

    kind: Literal["Inventory"] = Field("Inventory", description="Kind of document.")
    mode: str = Field(description="The cluster's mode.")
    reachable: bool = Field(description="Whether the cluster answers.")
    since: Instant = Field(description="When `reachable` last changed.")
    pools: tuple[InventoryPool, ...] = Field((), description="Counts by pool.")
    nodes: tuple[InventoryNode, ...] = Field((), description="Only nodes leased or not Ready.")
    unmanaged: tuple[UnmanagedNode, ...] = Field(
        (), description="GPU nodes outside every pool, the first 1000."
    )
    faults: tuple[NodeFaults, ...] = Field((), description="Nodes that failed within 30 days, by name.")
    queues: tuple[SliceQueue, ...] = Field((), description="Queues of slices that want one, by slice.")
    services: tuple[SliceServices, ...] = Field(
        (), description="Exported Services of slices that want it, by slice."
    )


class Reservation(Model):
    """A period on nodes: named ones for a lease, a number of them for a promise."""

    request: str = Field(description="slice/name.")
    phase: Phase = Field(description="Phase of the request.")
    pool: str = Field(description="Pool of the nodes.")
    nodes: tuple[str, ...] | None = Field(None, description="Names; absent for a promise.")
    count: int = Field(description="Number of nodes.")
    begin: Instant = Field(description="First instant of the lease, preparation not included.")
    end: Instant = Field(
        description="First instant after it, drain not included: its end, or its eviction if that is earlier."
    )


class Schedule(Document):
    """`clusters/<cluster>/schedule.yaml`: which request has which nodes when, as committed."""

    kind: Literal["Schedule"] = Field("Schedule", description="Kind of document.")
    reservations: tuple[Reservation, ...] = Field(
        (), description="One per request: leases by name, then promises by rank."
    )
    omitted: int = Field(0, ge=0, description="Number of reservations that did not fit into the file.")
