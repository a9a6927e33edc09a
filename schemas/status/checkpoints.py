"""What a request's workloads and people were told of its end, and what workloads said of their progress."""

from __future__ import annotations

from pydantic import Field

from schemas.documents.base import Model
from schemas.reading.units import Instant


class Warned(Model):
    """The announcement of an end, while its cluster's warning runs."""

    at: Instant = Field(description="When it was announced.")
    ends_at: Instant = Field(description="The announced end.")


class Checkpoint(Model):
    """The newest instant of a lease at which its work was saved, as its pods say (`egs.dev/checkpointed-at`)."""

    at: Instant = Field(description="When the work was last saved.")
    pods: tuple[str, ...] = Field((), description="Pods that said so, as namespace/name; at most 8.")
    nodes: tuple[str, ...] = Field((), description="Nodes of those pods.")
