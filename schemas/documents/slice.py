"""Slice: a team's isolated workspace across clusters."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Document, Model, Person
from schemas.documents.notifications import Routes
from schemas.reading.units import Lasting, Name, Shape

Gpus = Annotated[
    int | None, Field(ge=0, le=1_000_000, description="GPUs of all its nodes together; absent: any.")
]
Nodes = Annotated[int | None, Field(ge=0, le=100_000, description="Nodes; absent: any.")]
AnyCluster = Annotated[Name | None, Field(description="Absent: any.")]
AnyShape = Annotated[Shape | None, Field(description="Absent: any.")]
Hours = Annotated[
    int | None,
    Field(
        ge=0,
        le=10**9,
        description="GPU-hours of all its requests in a calendar month (UTC), running and waiting ones included.",
    ),
]
HoursThere = Annotated[
    int | None,
    Field(ge=0, le=10**9, description="GPU-hours of all its requests there in a calendar month (UTC)."),
]


class QuotaWhere(Model):
    """What one request may hold without approval in some pools: by cluster, by shape, or both."""

    cluster: AnyCluster = None
    gpu_shape: AnyShape = None
    gpus: Gpus = None
    nodes: Nodes = None
    gpu_hours_per_month: HoursThere = None


class Quota(Model):
    """What one request may hold without approval, and what all requests may use in a month."""

    gpus: Gpus = None
    nodes: Nodes = None
    gpu_hours_per_month: Hours = None
    where: tuple[QuotaWhere, ...] = Field(
        (), max_length=100, description="Tighter quota in some clusters or for some shapes."
    )


class LimitsWhere(Model):
    """Hard limits in some pools: by cluster, by shape, or both."""

    cluster: AnyCluster = None
    gpu_shape: AnyShape = None
    max_duration: Lasting | None = Field(None, description="Longest duration of a request there.")
    max_priority: int | None = Field(
        None, ge=1, le=300, description="Highest priority of a request there; absent: any."
    )
    max_nodes: int | None = Field(
        None, ge=0, le=100_000, description="Most nodes of a request there; 0: none."
    )
    max_gpus: int | None = Field(
        None, ge=0, le=1_000_000, description="Most GPUs of a request there, of whole nodes."
    )
    gpu_hours_per_month: HoursThere = None


class SliceLimits(Model):
    """Hard limits; no approval lifts them."""

    max_duration: Lasting | None = Field(
        None, description="Longest duration of a request; 365d if neither slice nor project sets one."
    )
    max_priority: int = Field(300, ge=1, le=300, description="Highest priority of a request.")
    max_nodes: int | None = Field(None, ge=1, le=100_000, description="Most nodes of a request.")
    max_gpus: int | None = Field(
        None, ge=1, le=1_000_000, description="Most GPUs of a request: all GPUs of its nodes."
    )
    max_memory_per_gpu: int | None = Field(
        None, ge=1, le=4096, description="GB: nodes whose GPUs have more are not used."
    )
    gpu_shapes: tuple[Shape, ...] = Field(
        (), max_length=100, description="Shapes that requests may ask for; empty: all."
    )
    max_waiting: int | None = Field(
        None, ge=1, le=1000, description="Requests in the queue; newer ones beyond it wait outside."
    )
    gpu_hours_per_month: Hours = None
    where: tuple[LimitsWhere, ...] = Field(
        (), max_length=100, description="Tighter limits in some clusters or for some shapes."
    )


class Queues(Model):
    """What workloads inside the slice queue in."""

    kueue: bool = Field(
        False,
        description="Keep a Kueue queue for the slice's leases in each of its clusters; a LocalQueue named `default` "
        "in each namespace.",
    )


class Services(Model):
    """How the slice's Services are reached from other clusters."""

    across: Literal["none", "mcs"] = Field(
        "none",
        description='mcs: Services with the label `egs.dev/export: "true"` are exported in each of its clusters by the '
        "Multi-Cluster Services API, and the slice's pods in its other clusters are let in.",
    )


class SliceSpec(Model):
    """People, places and limits of a slice."""

    description: str = Field("", max_length=500, description="Informational.")
    members: tuple[Person, ...] = Field(
        min_length=1, max_length=1000, description="People who may file requests."
    )
    owners: tuple[Person, ...] = Field(
        (),
        max_length=100,
        description="People who may change its members and description, and file requests.",
    )
    clusters: tuple[Name, ...] = Field(
        min_length=1, max_length=100, description="Clusters it spans, in order of preference."
    )
    namespaces: tuple[Name, ...] = Field(
        min_length=1, max_length=100, description="Its namespaces in each of those clusters."
    )
    quota: Quota | None = Field(None, description="Absent: only the project's applies.")
    limits: SliceLimits = Field(SliceLimits(), description="Hard limits of its requests.")
    paused: bool = Field(
        False, description="Foreign changes of it in clusters are shown but not repaired; requests go on."
    )
    queues: Queues = Field(Queues(), description="Queues for workloads inside the slice.")
    services: Services = Field(Services(), description="Services that its other clusters can use.")
    notifications: Routes = ()
    weight: float = Field(
        1.0, gt=0, le=1000, description="Share relative to other slices at the same priority."
    )

    @property
    def people(self) -> tuple[Person, ...]:
        """Its members, and the owners that are not listed among them: owners are members too."""
        listed = {person.email for person in self.members}
        return (*self.members, *(person for person in self.owners if person.email not in listed))


class Slice(Document):
    """`slices/<slice>/slice.yaml`."""

    kind: Literal["Slice"] = Field("Slice", description="Kind of document.")
    spec: SliceSpec = Field(description="Who works here, where, and within which limits.")
