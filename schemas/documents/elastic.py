"""Nodes that come and go: elastic and reserved pools, and clusters that are used only when the others are full."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from pydantic import Field, model_validator

from schemas.documents.base import Model
from schemas.reading.units import Duration, Instant, Lasting, LongName

CLUSTER_API = "cluster.x-k8s.io/"
"""API group of Cluster API, and prefix of its annotations."""
KARPENTER = "karpenter.sh/"
"""API group of Karpenter's NodePools."""


class ScaleTarget(Model):
    """The cluster object whose `scale` subresource sets the number of nodes."""

    api_version: str = Field(
        pattern=r"^[A-Za-z0-9./-]{1,200}$",
        examples=["cluster.x-k8s.io/v1beta2"],
        description="Group and version.",
    )
    resource: str = Field(
        pattern=r"^[a-z][a-z0-9]{0,62}$",
        examples=["machinedeployments"],
        description="Plural, as in its URL.",
    )
    namespace: LongName | None = Field(None, description="Absent: it is cluster-scoped.")
    name: LongName = Field(description="Its name.")

    @property
    def group(self) -> str:
        """Its API group; empty: the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def is_cluster_api(self) -> bool:
        """Whether Cluster API makes the nodes: it is told which to remove; Machines without a node go first."""
        return self.api_version.startswith(CLUSTER_API)

    @property
    def is_karpenter(self) -> bool:
        """Whether Karpenter makes the nodes: it removes those without pods first, cordoned or not."""
        return self.api_version.startswith(KARPENTER)


class Elastic(Model):
    """A pool that grows and shrinks: planning counts on nodes that do not exist yet."""

    min: int = Field(0, ge=0, le=100_000, description="Nodes that always stay.")
    max: int = Field(ge=1, le=100_000, description="Most nodes it can have.")
    scale_up: Lasting = Field(
        timedelta(minutes=10), description="Time from requesting a node until it can be checked."
    )
    warm: int = Field(0, ge=0, le=100_000, description="Free nodes kept ready beyond the planned ones.")
    let_go: Duration = Field(
        timedelta(minutes=30), description="A node that is not needed for this long is removed."
    )
    target: ScaleTarget | None = Field(
        None, description="The object to scale; required with driver kubernetes."
    )

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        if self.min > self.max or self.warm > self.max:
            raise ValueError("min and warm must be at most max")
        return self


class Reserved(Model):
    """A time for which a provider has promised nodes: a capacity block, or a rented cluster."""

    begin: Instant = Field(description="First instant with these nodes.")
    end: Instant = Field(description="First instant without them; after `begin`.")
    nodes: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="How many of its nodes, from the first on; absent: all of them.",
    )

    def covers(self, rank: int, at: datetime) -> bool:
        """Whether the pool's node of that rank, counted from 0, exists at that instant."""
        return self.begin <= at < self.end and (self.nodes is None or rank < self.nodes)


class Burst(Model):
    """A cluster that is used only when the wait elsewhere is too long."""

    after: Lasting = Field(
        timedelta(hours=4), description="Wait elsewhere, counted from filing, beyond which it is used."
    )
    max_duration: Lasting | None = Field(None, description="Longer requests never use it; absent: all may.")
    gpu_hours_per_month: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="GPU-hours of one calendar month (UTC), all slices together; absent: any.",
    )
