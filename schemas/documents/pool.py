"""Pool: equal GPU nodes of a cluster."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from schemas.documents.base import Model
from schemas.documents.elastic import Elastic, Reserved
from schemas.reading.units import LongName, Name, Shape

Price = Annotated[float, Field(ge=0, le=100_000, description="Per GPU and hour, in the project's currency.")]


LabelValue = Annotated[
    str,
    Field(
        pattern=r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$",
        description="A label's value: letters, digits, '.', '_' and '-', at most 63.",
        examples=["NVIDIA-H100-80GB-HBM3"],
    ),
]


LabelKey = Annotated[
    str,
    Field(
        pattern=r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$",
        max_length=317,
        description="A label's key: a name of at most 63 characters, mostly after a domain and '/'.",
        examples=["topology.kubernetes.io/zone"],
    ),
]


class Pool(Model):
    """Equal nodes: same GPUs, same network. They are counted, named, or found by their labels."""

    name: Name
    gpu_shape: Shape = Field(description="GPU product of these nodes.")
    gpus_per_node: int = Field(ge=1, le=64, description="GPUs of one node.")
    memory_per_gpu: int = Field(ge=1, le=4096, description="Nominal memory of one GPU, GB.")
    nodes: (
        Annotated[int, Field(ge=0, le=100_000)]
        | Annotated[tuple[LongName, ...], Field(max_length=100_000)]
        | None
    ) = Field(None, description="Their number (they are then named <pool>-1, <pool>-2, …), or their names.")
    selector: dict[str, LabelValue] | None = Field(
        None,
        min_length=1,
        max_length=16,
        description="Instead of `nodes`: every node with all of these labels. Only with driver kubernetes.",
        examples=[{"egs.dev/pool": "h100"}],
    )
    instance_type: str | None = Field(
        None, max_length=63, description="The provider's machine type, when requests name one."
    )
    elastic: Elastic | None = Field(None, description="It grows and shrinks; absent: it has fixed nodes.")
    reserved: tuple[Reserved, ...] = Field(
        (), max_length=100, description="Its nodes exist only then; absent: always."
    )
    rdma: bool = Field(False, description="These nodes share an RDMA network.")
    secondary_network: bool = Field(False, description="These nodes have a second pod network.")
    price_per_gpu_hour: Price | None = Field(None, description="Overrides the cluster's price.")
    max_isolated: int | None = Field(
        None,
        ge=0,
        le=100_000,
        description="Unhealthy nodes that may be taken out at once; absent: 10 % of the pool, at least one.",
    )

    @property
    def size(self) -> int:
        """Number of its nodes; 0 for a selector until they are found."""
        return self.nodes if isinstance(self.nodes, int) else len(self.nodes or ())

    @property
    def most(self) -> int:
        """Number of its nodes; for an elastic pool the most that it can have."""
        return self.size if self.elastic is None else max(self.size, self.elastic.max)

    def could_have(self, nodes: int) -> bool:
        """Whether it may ever have that many nodes; what a selector finds is unknown."""
        if self.elastic is None and self.selector is not None:
            return True
        return self.most >= nodes

    @property
    def discovered(self) -> bool:
        """Whether the cluster reports its nodes: by labels, or as many as exist now."""
        return self.selector is not None or self.elastic is not None

    def node_names(self) -> tuple[str, ...]:
        """Names of all nodes, in the pool's order."""
        if isinstance(self.nodes, int):
            return tuple(f"{self.name}-{i}" for i in range(1, self.nodes + 1))
        return self.nodes or ()

    def is_due(self, rank: int, at: datetime) -> bool:
        """Whether its node of that rank, counted from 0, should exist at that instant."""
        return not self.reserved or any(item.covers(rank, at) for item in self.reserved)

    @property
    def isolation_limit(self) -> int:
        """Nodes of this pool that may be isolated at once without an admin's decision."""
        if self.max_isolated is not None:
            return self.max_isolated
        return max(1, self.size // 10)
