"""Project: the admins of the fleet, and the rules for all slices."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field

from schemas.documents.apikey import Role
from schemas.documents.base import Document, Model, Person
from schemas.documents.notifications import Routes
from schemas.documents.scheduling import Scheduling
from schemas.documents.slice import Quota, SliceLimits
from schemas.reading.units import Duration, Lasting, Name, Shape


class ProjectLimits(Model):
    """Bounds for every slice of the project."""

    nodes_per_request: int = Field(
        16, ge=1, le=100_000, description="Nodes one request may hold without approval."
    )
    requests_per_slice: int = Field(
        1000,
        ge=1,
        le=1000,
        description="GPR files in one slice's folder; beyond that the newest are refused.",
    )
    deletions_at_once: int = Field(
        10,
        ge=1,
        le=100_000,
        description="Waiting requests whose files may be deleted in one change; more wait for an admin.",
    )
    every_slice: SliceLimits = Field(
        SliceLimits(), description="Hard limits for requests of every slice, in addition to its own."
    )


class TwoAdminsAbove(Model):
    """Amounts above which two admins must approve."""

    gpus: int | None = Field(None, ge=1, le=1_000_000, description="GPUs of all nodes together; absent: any.")
    nodes: int | None = Field(None, ge=1, le=100_000, description="Nodes; absent: any.")


class ApprovalPolicy(Model):
    """What needs an admin besides quota and node limit, and which approvals count."""

    duration: Lasting | None = Field(None, description="Longer requests need an admin.")
    priority: int | None = Field(
        None, ge=1, le=300, description="Requests with a higher priority need an admin."
    )
    gpu_hours: int | None = Field(
        None, ge=1, le=10**9, description="Requests for more GPU-hours in total need an admin."
    )
    gpu_shapes: tuple[Shape, ...] = Field(
        (), max_length=100, description="Requests that may get one of these shapes need an admin."
    )
    two_admins_above: TwoAdminsAbove | None = Field(
        None, description="Above these amounts two admins must approve."
    )
    own_requests: bool = Field(
        False, description="Whether admins may approve their own requests: for teams with one admin."
    )


class GroupGrant(Model):
    """Rights of a group of the identity provider in the HTTP API."""

    group: str = Field(min_length=1, max_length=200, description="Its name at the provider.")
    role: Role = Field(description="Owner, Editor or Viewer.")
    slices: tuple[Name, ...] = Field((), max_length=100, description="Where; empty: in the whole project.")


class ProjectSpec(Model):
    """Admins, and the rules that they set for all slices."""

    description: str = Field("", max_length=500, description="Informational.")
    admins: tuple[Person, ...] = Field(
        min_length=1, max_length=200, description="People who may approve and change what members may not."
    )
    limits: ProjectLimits = Field(ProjectLimits(), description="Bounds for every slice.")
    quota: Quota | None = Field(
        None,
        description="What requests of any slice may hold without approval, in addition to its own quota.",
    )
    approval: ApprovalPolicy = Field(
        ApprovalPolicy(), description="What needs an admin, and which approvals count."
    )
    changes: Literal["push", "pull-request"] = Field(
        "push", description="How commands bring changes to main: directly, or as pull requests."
    )
    max_extension: Duration = Field(
        timedelta(hours=1), description="Total grace by which a running request may be extended."
    )
    max_retries: int = Field(
        3, ge=0, le=100, description="How often a request whose checks failed is queued again."
    )
    currency: str = Field(
        "USD", pattern=r"^[A-Z]{3}$", description="Currency of all prices here.", examples=["USD"]
    )
    scheduling: Scheduling = Field(
        Scheduling(), description="Scheduling policies: order, preemption, idle nodes, reserves."
    )
    groups: tuple[GroupGrant, ...] = Field(
        (), max_length=200, description="Roles of people who log in through an identity provider."
    )
    notifications: Routes = ()
    confirmed_deletions: tuple[str, ...] = Field(
        (),
        max_length=50,
        description="Digests of held deletions that an admin confirms; the status shows the digest.",
    )


class Project(Document):
    """`project.yaml`: the one document that every repository has."""

    kind: Literal["Project"] = Field("Project", description="Kind of document.")
    spec: ProjectSpec = Field(description="The admins' settings for all slices.")
