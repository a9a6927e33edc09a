"""Project: the admins of the fleet, and the rules for all slices."""

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
        Field(
            ge=1, le=1000, description="GPR files in one slice's folder; beyond that the newest are refused."
        ),
    ] = 1000
    deletions_at_once: Annotated[
        int,
        Field(
            ge=1,
            le=100_000,
            description="Waiting requests whose files may be deleted in one change; more wait for an admin.",
        ),
    ] = 10
    every_slice: Annotated[
        SliceLimits, Field(description="Hard limits for requests of every slice, in addition to its own.")
    ] = SliceLimits()


class TwoAdminsAbove(Model):
    """Amounts above which two admins must approve."""

    gpus: Annotated[
        int | None, Field(ge=1, le=1_000_000, description="GPUs of all nodes together; absent: any.")
    ] = None
    nodes: Annotated[int | None, Field(ge=1, le=100_000, description="Nodes; absent: any.")] = None


class ApprovalPolicy(Model):
    """What needs an admin besides quota and node limit, and which approvals count."""

    duration: Annotated[Lasting | None, Field(description="Longer requests need an admin.")] = None
    priority: Annotated[
        int | None, Field(ge=1, le=300, description="Requests with a higher priority need an admin.")
    ] = None
    gpu_hours: Annotated[
        int | None, Field(ge=1, le=10**9, description="Requests for more GPU-hours in total need an admin.")
    ] = None
    gpu_shapes: Annotated[
        tuple[Shape, ...],
        Field(max_length=100, description="Requests that may get one of these shapes need an admin."),
    ] = ()
    two_admins_above: Annotated[
        TwoAdminsAbove | None, Field(description="Above these amounts two admins must approve.")
    ] = None
    own_requests: Annotated[
        bool,
        Field(description="Whether admins may approve their own requests: for teams with one admin."),
    ] = False


class GroupGrant(Model):
    """Rights of a group of the identity provider in the HTTP API."""

    group: Annotated[str, Field(min_length=1, max_length=200, description="Its name at the provider.")]
    role: Annotated[Role, Field(description="Owner, Editor or Viewer.")]
    slices: Annotated[
        tuple[Name, ...], Field(max_length=100, description="Where; empty: in the whole project.")
    ] = ()


class ProjectSpec(Model):
    """Admins, and the rules that they set for all slices."""

    description: Annotated[str, Field(max_length=500, description="Informational.")] = ""
    admins: Annotated[
        tuple[Person, ...],
        Field(
            min_length=1,
            max_length=200,
            description="People who may approve and change what members may not.",
        ),
    ]
    limits: Annotated[ProjectLimits, Field(description="Bounds for every slice.")] = ProjectLimits()
    quota: Annotated[
        Quota | None,
        Field(
            description="What requests of any slice may hold without approval, in addition to its own quota."
        ),
    ] = None
    approval: Annotated[
        ApprovalPolicy, Field(description="What needs an admin, and which approvals count.")
    ] = ApprovalPolicy()
    changes: Annotated[
        Literal["push", "pull-request"],
        Field(description="How commands bring changes to main: directly, or as pull requests."),
    ] = "push"
    max_extension: Annotated[
        Duration, Field(description="Total grace by which a running request may be extended.")
    ] = timedelta(hours=1)
    max_retries: Annotated[
        int, Field(ge=0, le=100, description="How often a request whose checks failed is queued again.")
    ] = 3
    currency: Annotated[
        str, Field(pattern=r"^[A-Z]{3}$", description="Currency of all prices here.", examples=["USD"])
    ] = "USD"
    scheduling: Annotated[
        Scheduling, Field(description="Scheduling policies: order, preemption, idle nodes, reserves.")
    ] = Scheduling()
    groups: Annotated[
        tuple[GroupGrant, ...],
        Field(max_length=200, description="Roles of people who log in through an identity provider."),
    ] = ()
    notifications: Routes = ()
    confirmed_deletions: Annotated[
        tuple[str, ...],
        Field(
            max_length=50,
            description="Digests of held deletions that an admin confirms; the status shows the digest.",
        ),
    ] = ()


class Project(Document):
    """`project.yaml`: the one document that every repository has."""

    kind: Annotated[Literal["Project"], Field(description="Kind of document.")] = "Project"
    spec: Annotated[ProjectSpec, Field(description="The admins' settings for all slices.")]
