"""Slice: a team's isolated workspace across clusters."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Document, Model, Person
from schemas.documents.cluster import Shape
from schemas.documents.notifications import Routes
from schemas.reading.units import Lasting, Name

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
    where: Annotated[
        tuple[QuotaWhere, ...],
        Field(max_length=100, description="Tighter quota in some clusters or for some shapes."),
    ] = ()


class LimitsWhere(Model):
    """Hard limits in some pools: by cluster, by shape, or both."""

    cluster: AnyCluster = None
    gpu_shape: AnyShape = None
    max_duration: Annotated[Lasting | None, Field(description="Longest duration of a request there.")] = None
    max_priority: Annotated[
        int | None, Field(ge=1, le=300, description="Highest priority of a request there; absent: any.")
    ] = None
    max_nodes: Annotated[
        int | None, Field(ge=0, le=100_000, description="Most nodes of a request there; 0: none.")
    ] = None
    max_gpus: Annotated[
        int | None, Field(ge=0, le=1_000_000, description="Most GPUs of a request there, of whole nodes.")
    ] = None
    gpu_hours_per_month: HoursThere = None


class SliceLimits(Model):
    """Hard limits; no approval lifts them."""

    max_duration: Annotated[
        Lasting | None,
        Field(description="Longest duration of a request; 365d if neither slice nor project sets one."),
    ] = None
    max_priority: Annotated[int, Field(ge=1, le=300, description="Highest priority of a request.")] = 300
    max_nodes: Annotated[int | None, Field(ge=1, le=100_000, description="Most nodes of a request.")] = None
    max_gpus: Annotated[
        int | None, Field(ge=1, le=1_000_000, description="Most GPUs of a request: all GPUs of its nodes.")
    ] = None
    max_memory_per_gpu: Annotated[
        int | None, Field(ge=1, le=4096, description="GB: nodes whose GPUs have more are not used.")
    ] = None
    gpu_shapes: Annotated[
        tuple[Shape, ...], Field(max_length=100, description="Shapes that requests may ask for; empty: all.")
    ] = ()
    max_waiting: Annotated[
        int | None,
        Field(ge=1, le=1000, description="Requests in the queue; newer ones beyond it wait outside."),
    ] = None
    gpu_hours_per_month: Hours = None
    where: Annotated[
        tuple[LimitsWhere, ...],
        Field(max_length=100, description="Tighter limits in some clusters or for some shapes."),
    ] = ()


class SliceSpec(Model):
    """People, places and limits of a slice."""

    description: Annotated[str, Field(max_length=500, description="Informational.")] = ""
    members: Annotated[
        tuple[Person, ...], Field(min_length=1, max_length=1000, description="People who may file requests.")
    ]
    owners: Annotated[
        tuple[Person, ...],
        Field(
            max_length=100,
            description="People who may change its members and description, and file requests.",
        ),
    ] = ()
    clusters: Annotated[
        tuple[Name, ...],
        Field(min_length=1, max_length=100, description="Clusters it spans, in order of preference."),
    ]
    namespaces: Annotated[
        tuple[Name, ...],
        Field(min_length=1, max_length=100, description="Its namespaces in each of those clusters."),
    ]
    quota: Annotated[Quota | None, Field(description="Absent: only the project's applies.")] = None
    limits: Annotated[SliceLimits, Field(description="Hard limits of its requests.")] = SliceLimits()
    paused: Annotated[
        bool,
        Field(description="Foreign changes of it in clusters are shown but not repaired; requests go on."),
    ] = False
    notifications: Routes = ()
    weight: Annotated[
        float, Field(gt=0, le=1000, description="Share relative to other slices at the same priority.")
    ] = 1.0

    @property
    def people(self) -> tuple[Person, ...]:
        """Its members, and the owners that are not listed among them: owners are members too."""
        listed = {person.email for person in self.members}
        return (*self.members, *(person for person in self.owners if person.email not in listed))


class Slice(Document):
    """`slices/<slice>/slice.yaml`."""

    kind: Annotated[Literal["Slice"], Field(description="Kind of document.")] = "Slice"
    spec: Annotated[SliceSpec, Field(description="Who works here, where, and within which limits.")]
