"""WorkspaceRequest: a slice that somebody asks for; once an admin brought it to main it is one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Document, Model, Person
from schemas.documents.slice import Quota, Slice, SliceLimits, SliceSpec
from schemas.reading.units import Name


class WorkspaceRequestSpec(Model):
    """What the person asks for."""

    requester: Annotated[Person, Field(description="Who asks, and will own the slice.")]
    members: Annotated[
        tuple[Person, ...], Field(max_length=999, description="Who else is to work there.")
    ] = ()
    clusters: Annotated[
        tuple[Name, ...],
        Field(min_length=1, max_length=100, description="Clusters it is to span, in order of preference."),
    ]
    namespaces: Annotated[
        tuple[Name, ...],
        Field(min_length=1, max_length=100, description="Its namespaces in each of those clusters."),
    ]
    quota: Annotated[Quota | None, Field(description="Absent: no bound but the project's.")] = None
    limits: Annotated[SliceLimits, Field(description="Hard bounds of its requests.")] = SliceLimits()
    reason: Annotated[str, Field(max_length=500, description="What it is for; admins read it.")] = ""


class WorkspaceRequest(Document):
    """`requests/<name>.yaml`; the slice has the same name. A slice.yaml of that name takes its place."""

    kind: Annotated[Literal["WorkspaceRequest"], Field(description="Kind of document.")] = "WorkspaceRequest"
    spec: Annotated[WorkspaceRequestSpec, Field(description="What is asked for.")]

    def as_slice(self) -> Slice:
        """The slice that it makes: the requester owns it."""
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
