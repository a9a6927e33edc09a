"""Project: who administers the fleet, and the rules for everybody."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.apikey import Role
from schemas.documents.base import Document, Model, Person
from schemas.documents.cluster import Shape
from schemas.documents.notifications import Routes
from schemas.documents.scheduling import Scheduling
from schemas.documents.slice import Quota, SliceLimits
from schemas.reading.units import Duration, Lasting, Name


class ProjectLimits(Model):
    """Bounds for every slice of the project."""

    nodes_per_request: Annotated[
        int, Field(ge=1, le=100_000, description="Nodes one request may hold without approval.")
    ] = 16
    requests_per_slice: Annotated[
        int,
        Field(ge=1, le=1000, description="GPR files in one slice's folder; of more the newest are refused."),
    ] = 1000
    deletions_at_once: Annotated[
        int,
        Field(
            ge=1,
            le=100_000,
            description="Waiting requests whose files may vanish in one change; more wait for an admin.",
        ),
    ] = 10
    every_slice: Annotated[
        SliceLimits, Field(description="Hard bounds of the requests of each slice, beside its own.")
    ] = SliceLimits()


class TwoAdminsAbove(Model):
    """The amounts beyond which one admin's word is not enough."""

    gpus: Annotated[
        int | None, Field(ge=1, le=1_000_000, description="GPUs of all nodes together; absent: any.")
    ] = None
    nodes: Annotated[int | None, Field(ge=1, le=100_000, description="Nodes; absent: any.")] = None


class ApprovalPolicy(Model):
    """What waits for an admin beside quota and node limit, and whose word counts."""

    duration: Annotated[
        Lasting | None, Field(description="Requests that are to last longer wait for an admin.")
    ] = None
    priority: Annotated[
        int | None, Field(ge=1, le=300, description="Requests of a higher priority wait for an admin.")
    ] = None
    gpu_hours: Annotated[
        int | None, Field(ge=1, le=10**9, description="Requests for more GPU-hours in all wait for an admin.")
    ] = None
    gpu_shapes: Annotated[
        tuple[Shape, ...],
        Field(max_length=100, description="Requests that may get one of these wait for an admin."),
    ] = ()
    two_admins_above: Annotated[
        TwoAdminsAbove | None, Field(description="Beyond these amounts two admins have to approve.")
    ] = None
    own_requests: Annotated[
        bool,
        Field(
            description="Whether an admin's word counts for a request of their own: for teams with one admin."
        ),
    ] = False


class GroupGrant(Model):
    """What members of a group of the identity provider may do through the HTTP API."""

    group: Annotated[str, Field(min_length=1, max_length=200, description="As the provider names it.")]
    role: Annotated[Role, Field(description="Owner, Editor or Viewer.")]
    slices: Annotated[
        tuple[Name, ...], Field(max_length=100, description="Where; empty: in the whole project.")
    ] = ()


class ProjectSpec(Model):
    """What an admin decides for everybody."""

    description: Annotated[str, Field(max_length=500, description="For people.")] = ""
    admins: Annotated[
        tuple[Person, ...],
        Field(min_length=1, max_length=200, description="Who may approve and change what members may not."),
    ]
    limits: Annotated[ProjectLimits, Field(description="Bounds for every slice.")] = ProjectLimits()
    quota: Annotated[
        Quota | None,
        Field(description="What each slice's requests may hold without approval, beside its own quota."),
    ] = None
    approval: Annotated[
        ApprovalPolicy, Field(description="What waits for an admin, and whose word counts.")
    ] = ApprovalPolicy()
    changes: Annotated[
        Literal["push", "pull-request"],
        Field(description="How commands bring changes to main: straight, or as pull requests."),
    ] = "push"
    max_extension: Annotated[
        Duration, Field(description="Total grace a running request may be extended by.")
    ] = timedelta(hours=1)
    max_retries: Annotated[
        int, Field(ge=0, le=100, description="How often a request whose checks failed is queued again.")
    ] = 3
    currency: Annotated[
        str, Field(pattern=r"^[A-Z]{3}$", description="Of all prices here.", examples=["USD"])
    ] = "USD"
    scheduling: Annotated[
        Scheduling, Field(description="Policies of planning: who comes first, who makes room, what is kept.")
    ] = Scheduling()
    groups: Annotated[
        tuple[GroupGrant, ...],
        Field(max_length=200, description="Roles of those who log in through an identity provider."),
    ] = ()
    notifications: Routes = ()
    confirmed_deletions: Annotated[
        tuple[str, ...],
        Field(
            max_length=50,
            description="Digests of held deletions that an admin confirms; the status names the digest.",
        ),
    ] = ()


class Project(Document):
    """`project.yaml`: the one document that every repository has."""

    kind: Annotated[Literal["Project"], Field(description="Kind of document.")] = "Project"
    spec: Annotated[ProjectSpec, Field(description="What admins decide for everybody.")]
