"""Cluster: how it is reached, whether it may be touched, and which GPU nodes it has."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from schemas.base import Document, Model
from schemas.units import Duration, Instant, Name

MAX_NODES = 100_000
"""Of one cluster."""

Shape = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
        description="Name of a GPU product.",
        examples=["H100-80GB"],
    ),
]
Price = Annotated[float, Field(ge=0, le=100_000, description="Per GPU and hour, in the project's currency.")]


class Pool(Model):
    """Equal nodes: the same GPUs, the same network."""

    name: Name
    gpu_shape: Annotated[Shape, Field(description="GPU product of these nodes.")]
    gpus_per_node: Annotated[int, Field(ge=1, le=64, description="GPUs of one node.")]
    memory_per_gpu: Annotated[int, Field(ge=1, le=4096, description="Nominal memory of one GPU, GB.")]
    nodes: Annotated[
        Annotated[int, Field(ge=0, le=100_000)] | Annotated[tuple[Name, ...], Field(max_length=100_000)],
        Field(description="How many (they are then named <pool>-1, <pool>-2, …), or their names."),
    ]
    instance_type: Annotated[
        str | None, Field(max_length=63, description="The provider's machine type, when requests name one.")
    ] = None
    rdma: Annotated[bool, Field(description="These nodes share an RDMA network.")] = False
    secondary_network: Annotated[bool, Field(description="These nodes have a second pod network.")] = False
    price_per_gpu_hour: Annotated[Price | None, Field(description="Instead of the cluster's price.")] = None
    max_isolated: Annotated[
        int | None,
        Field(
            ge=0,
            le=100_000,
            description="Unhealthy nodes that may be out at once; absent: 10 % of the pool, at least one.",
        ),
    ] = None

    @property
    def size(self) -> int:
        """How many nodes it has."""
        return self.nodes if isinstance(self.nodes, int) else len(self.nodes)

    def node_names(self) -> tuple[str, ...]:
        """Names of all nodes, in the pool's order."""
        if isinstance(self.nodes, int):
            return tuple(f"{self.name}-{i}" for i in range(1, self.nodes + 1))
        return self.nodes

    @property
    def isolation_limit(self) -> int:
        """Nodes of this pool that may be isolated at once without an admin's word."""
        if self.max_isolated is not None:
            return self.max_isolated
        return max(1, self.size // 10)


class Maintenance(Model):
    """A window in which nodes serve nobody."""

    begin: Annotated[Instant, Field(description="First instant without these nodes.")]
    end: Annotated[Instant, Field(description="First instant with them again; after `begin`.")]
    pools: Annotated[tuple[Name, ...], Field(description="Whole pools.")] = ()
    nodes: Annotated[tuple[Name, ...], Field(description="Single nodes.")] = ()
    reason: Annotated[str, Field(max_length=200, description="For people.")] = ""


class Health(Model):
    """Thresholds by which an agent judges a GPU of this cluster."""

    max_temperature: Annotated[
        int, Field(ge=40, le=120, description="°C at which a GPU is too hot (87: the vendor's alarm).")
    ] = 87
    clear_temperature: Annotated[
        int, Field(ge=30, le=119, description="°C at or below which a hot GPU is well again.")
    ] = 80
    readings_to_fail: Annotated[
        int, Field(ge=1, le=100, description="Bad readings in a row before a soft fault counts.")
    ] = 3
    readings_to_clear: Annotated[
        int, Field(ge=1, le=1000, description="Good readings in a row before a soft fault is over.")
    ] = 6
    faults_to_quarantine: Annotated[
        int,
        Field(ge=2, le=100, description="Faults of one node within a day after which only people free it."),
    ] = 3


class Cleared(Model):
    """An admin's word that a quarantined node is mended."""

    node: Annotated[Name, Field(description="Node of this cluster.")]
    at: Annotated[Instant, Field(description="Faults and failed checks before this instant no longer count.")]


class ClusterSpec(Model):
    """One Kubernetes cluster, or a simulated one."""

    driver: Annotated[
        Literal["embedded", "kubernetes"], Field(description="How it is driven; embedded: simulated.")
    ]
    mode: Annotated[
        Literal["observe", "manage"], Field(description="observe: all is planned and shown, nothing touched.")
    ] = "observe"
    prepare: Annotated[Duration, Field(description="Time for checks before a start.")] = timedelta(minutes=2)
    drain: Annotated[Duration, Field(description="Time to clean nodes after an end.")] = timedelta(minutes=5)
    notice: Annotated[
        Duration, Field(description="GPU workloads are told to stop this long before the strict end.")
    ] = timedelta(minutes=1)
    price_per_gpu_hour: Annotated[Price, Field(description="Of every pool without a price of its own.")] = 0.0
    pools: Annotated[tuple[Pool, ...], Field(min_length=1, max_length=200, description="Its GPU nodes.")]
    maintenance: Annotated[
        tuple[Maintenance, ...], Field(max_length=500, description="Windows without some nodes.")
    ] = ()
    health: Annotated[Health, Field(description="When a GPU counts as bad.")] = Health()

    @model_validator(mode="after")
    def _is_not_endless(self) -> Self:
        # A count of nodes is a few characters in a file, and every one of them gets a name.
        if sum(pool.size for pool in self.pools) > MAX_NODES:
            raise ValueError(f"the pools together have more than {MAX_NODES} nodes")
        return self

    cleared: Annotated[
        tuple[Cleared, ...], Field(max_length=1000, description="Nodes that people have mended.")
    ] = ()


class Cluster(Document):
    """`clusters/<cluster>.yaml`."""

    kind: Annotated[Literal["Cluster"], Field(description="Kind of document.")] = "Cluster"
    spec: Annotated[ClusterSpec, Field(description="How it is driven, and its GPU nodes.")]
