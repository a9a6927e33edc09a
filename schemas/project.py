"""Project: who administers the fleet, and the rules for everybody."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Document, Model, Person
from schemas.units import Duration


class ProjectLimits(Model):
    """Bounds for every slice of the project."""

    nodes_per_request: Annotated[
        int, Field(ge=1, le=100_000, description="Nodes one request may hold without approval.")
    ] = 16
    requests_per_slice: Annotated[
        int, Field(ge=1, le=1000, description="GPR files in one slice's folder.")
    ] = 1000
    deletions_at_once: Annotated[
        int,
        Field(
            ge=1,
            le=100_000,
            description="Waiting requests whose files may vanish in one change; more wait for an admin.",
        ),
    ] = 10


class ProjectSpec(Model):
    """What an admin decides for everybody."""

    description: Annotated[str, Field(max_length=500, description="For people.")] = ""
    admins: Annotated[
        tuple[Person, ...],
        Field(min_length=1, max_length=200, description="Who may approve and change what members may not."),
    ]
    limits: Annotated[ProjectLimits, Field(description="Bounds for every slice.")] = ProjectLimits()
    max_extension: Annotated[
        Duration, Field(description="Total grace a running request may be extended by.")
    ] = timedelta(hours=1)
    max_retries: Annotated[
        int, Field(ge=0, le=100, description="How often a request whose checks failed is queued again.")
    ] = 3
    currency: Annotated[
        str, Field(pattern=r"^[A-Z]{3}$", description="Of all prices here.", examples=["USD"])
    ] = "USD"
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
