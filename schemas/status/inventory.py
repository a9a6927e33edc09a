"""Machine-written status of clusters: their nodes, and which request has them when."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Instant
from schemas.status.gpr_status import NodeState, Phase


class Ask(Model):
    """Nodes that were requested and do not exist yet."""

    at: Annotated[Instant, Field(description="When they were requested.")]
    nodes: Annotated[int, Field(ge=1, description="Number of nodes.")]
    late: Annotated[int, Field(ge=0, description="How often they did not arrive in time.")] = 0


class PoolScale(Model):
    """The decided size of an elastic pool."""

    wanted: Annotated[int, Field(ge=0, description="Nodes that the cluster is told to have.")]
    asks: Annotated[tuple[Ask, ...], Field(description="Nodes on their way, oldest first.")] = ()
    leaving: Annotated[tuple[str, ...], Field(description="Nodes being removed; no request gets them.")] = ()


class InventoryPool(Model):
    """Counts of one pool."""

    name: Annotated[str, Field(description="Name of the pool.")]
    gpu_shape: Annotated[str, Field(description="GPU product.")]
    gpus_per_node: Annotated[int, Field(description="GPUs of one node.")]
    memory_per_gpu: Annotated[int, Field(description="Nominal memory of one GPU, GB.")]
    nodes: Annotated[int, Field(description="Nodes it should have.")]
    ready: Annotated[int, Field(description="Nodes that are Ready.")]
    leased: Annotated[int, Field(description="Nodes that requests hold.")]
    scale: Annotated[PoolScale | None, Field(description="Its decided size; absent: it is not elastic.")] = (
        None
    )


class InventoryNode(Model):
    """One node that is leased or not Ready."""

    name: Annotated[str, Field(description="Name of the node.")]
    pool: Annotated[str, Field(description="Its pool.")]
    state: Annotated[NodeState, Field(description="What it is to the planner.")]
    lease: Annotated[str | None, Field(description="slice/name of the request that holds it.")] = None


class UnmanagedNode(Model):
    """A GPU node in no pool: shown, never touched."""

    name: Annotated[str, Field(description="Name of the node.")]
    product: Annotated[str, Field(description="GPU product, as labelled by the cluster.")]
    gpus: Annotated[int, Field(description="Its GPUs.")]


class PoolNodes(Document):
    """`clusters/<cluster>/pools/<pool>/<part>.yaml`: the nodes of a pool with a selector."""

    kind: Annotated[Literal["PoolNodes"], Field(description="Kind of document.")] = "PoolNodes"
    nodes: Annotated[
        tuple[str, ...], Field(description="Names of its nodes, or of a part of them, sorted.")
    ] = ()


class NodeFaults(Model):
    """Recent faults of a node."""

    name: Annotated[str, Field(description="Name of the node.")]
    at: Annotated[tuple[Instant, ...], Field(description="When its faults began, oldest first.")]


class Inventory(Document):
    """`clusters/<cluster>/inventory.yaml`."""

    kind: Annotated[Literal["Inventory"], Field(description="Kind of document.")] = "Inventory"
    mode: Annotated[str, Field(description="The cluster's mode.")]
    reachable: Annotated[bool, Field(description="Whether the cluster answers.")]
    since: Annotated[Instant, Field(description="When `reachable` last changed.")]
    pools: Annotated[tuple[InventoryPool, ...], Field(description="Counts by pool.")] = ()
    nodes: Annotated[tuple[InventoryNode, ...], Field(description="Only nodes leased or not Ready.")] = ()
    unmanaged: Annotated[
        tuple[UnmanagedNode, ...], Field(description="GPU nodes outside every pool, the first 1000.")
    ] = ()
    faults: Annotated[
        tuple[NodeFaults, ...], Field(description="Nodes that failed within 30 days, by name.")
    ] = ()


class Reservation(Model):
    """A period on nodes: named ones for a lease, a number of them for a promise."""

    request: Annotated[str, Field(description="slice/name.")]
    phase: Annotated[Phase, Field(description="Phase of the request.")]
    pool: Annotated[str, Field(description="Pool of the nodes.")]
    nodes: Annotated[tuple[str, ...] | None, Field(description="Names; absent for a promise.")] = None
    count: Annotated[int, Field(description="Number of nodes.")]
    begin: Annotated[Instant, Field(description="First instant of the lease, preparation not included.")]
    end: Annotated[
        Instant,
        Field(
            description="First instant after it, drain not included: its end, or its eviction if that is earlier."
        ),
    ]


class Schedule(Document):
    """`clusters/<cluster>/schedule.yaml`: which request has which nodes when, as committed."""

    kind: Annotated[Literal["Schedule"], Field(description="Kind of document.")] = "Schedule"
    reservations: Annotated[
        tuple[Reservation, ...],
        Field(description="One per request: leases by name, then promises by rank."),
    ] = ()
    omitted: Annotated[
        int, Field(ge=0, description="Number of reservations that did not fit into the file.")
    ] = 0
