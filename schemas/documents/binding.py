"""GPRTemplateBinding: which templates a slice is offered in which cluster."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Name


class BoundCluster(Model):
    """The templates of one cluster."""

    cluster: Annotated[Name, Field(description="The cluster.")]
    templates: Annotated[
        tuple[Name, ...], Field(min_length=1, max_length=100, description="Templates it may use there.")
    ]
    default: Annotated[
        Name | None,
        Field(
            description="What a request through the API gets that says neither how much nor by which template; one of "
            "`templates`."
        ),
    ] = None


class GPRTemplateBindingSpec(Model):
    """What a slice is offered."""

    clusters: Annotated[
        tuple[BoundCluster, ...], Field(min_length=1, max_length=100, description="By cluster.")
    ]


class GPRTemplateBinding(Document):
    """`bindings/<slice>.yaml`; named after its slice. Requests of a bound slice name bound templates or none."""

    kind: Annotated[Literal["GPRTemplateBinding"], Field(description="Kind of document.")] = (
        "GPRTemplateBinding"
    )
    spec: Annotated[GPRTemplateBindingSpec, Field(description="What the slice is offered.")]
