"""WorkspaceRequest: a request for a slice; it becomes one when an admin merges it to main."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.documents.base import Document, Model, Person
from schemas.documents.slice import Quota, Slice, SliceLimits, SliceSpec
from schemas.reading.units import Name


class WorkspaceRequestSpec(Model):
    """The slice that the requester wants."""

    requester: Person = Field(description="The requester, who will own the slice.")
    members: tuple[Person, ...] = Field((), max_length=999, description="The other members.")
    clusters: tuple[Name, ...] = Field(
        min_length=1, max_length=100, description="Its clusters, in order of preference."
    )
    namespaces: tuple[Name, ...] = Field(
        min_length=1, max_length=100, description="Its namespaces in each of those clusters."
    )
    quota: Quota | None = Field(None, description="Absent: only the project's applies.")
    limits: SliceLimits = Field(SliceLimits(), description="Hard limits of its requests.")
    reason: str = Field("", max_length=500, description="What it is for; read by admins.")


class WorkspaceRequest(Document):
    """`requests/<name>.yaml`; the slice gets the same name. A slice.yaml of that name takes precedence."""

    kind: Literal["WorkspaceRequest"] = Field("WorkspaceRequest", description="Kind of document.")
    spec: WorkspaceRequestSpec = Field(description="The requested slice.")

    def as_slice(self) -> Slice:
        """The slice that it makes, owned by the requester."""
        spec = self.spec
        others = tuple(person for person in spec.members if person.email != spec.requester.email)
        return Slice(
            metadata=self.metadata,
            spec=SliceSpec(
                description=spec.reason,
                members=(spec.requester, *others),
                owners=(spec.requester,),
                clusters=spec.clusters,
                namespaces=spec.namespaces,
                quota=spec.quota,
                limits=spec.limits,
            ),
        )
