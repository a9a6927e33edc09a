"""GPRTemplateBinding: the templates offered to a slice, by cluster."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Name


class BoundCluster(Model):
    """The templates of one cluster."""

    cluster: Name = Field(description="The cluster.")
    templates: tuple[Name, ...] = Field(min_length=1, max_length=100, description="Templates offered there.")
    default: Name | None = Field(
        None,
        description="Template of API requests that give neither a template nor nodes and duration; one of "
        "`templates`.",
    )


class GPRTemplateBindingSpec(Model):
    """The templates offered to a slice."""

    clusters: tuple[BoundCluster, ...] = Field(min_length=1, max_length=100, description="By cluster.")


class GPRTemplateBinding(Document):
    """`bindings/<slice>.yaml`; named after its slice. Requests of a bound slice name bound templates or none."""

    kind: Literal["GPRTemplateBinding"] = Field("GPRTemplateBinding", description="Kind of document.")
    spec: GPRTemplateBindingSpec = Field(description="The templates offered to the slice.")
