"""The status of an endpoint: what serves, how traffic is shared, and what became of its objects."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Instant
from schemas.status.workload_status import WorkloadStatus


class EndpointPhase(StrEnum):
    """The phase of an endpoint."""

    PENDING = "Pending"
    SERVING = "Serving"
    DRAINING = "Draining"
    FAILED = "Failed"
    REMOVED = "Removed"


class VersionStatus(Model):
    """One version as it is now."""

    name: str = Field(description="Its name.")
    weight: int = Field(description="Percent of the traffic that it gets now; 0 while the endpoint drains.")
    ready: int | None = Field(None, description="Replicas that are ready; absent: its backend does not say.")


class RolloutStatus(Model):
    """How far the document's weights have come about."""

    state: Literal["Steady", "Moving", "Returned"] = Field(
        description="Steady: the document's weights; Moving: on the way to them; Returned: a bound was broken, and the "
        "weights are those from before until the document's weights, versions or rollout change."
    )
    weights: dict[str, int] = Field(
        description="Percent of the traffic by version, unless the endpoint drains."
    )
    target: dict[str, int] = Field(description="The document's weights.")
    before: dict[str, int] | None = Field(
        None, description="The last weights that stood before these; absent: there were none."
    )
    versions: str | None = Field(
        None, description="Digest of the versions and the rollout that the weights are for."
    )
    at: Instant = Field(description="When the present weights began.")
    steps: int = Field(0, description="Steps made since the document's weights changed.")
    unready_since: Instant | None = Field(
        None,
        description="Since when a version that gained traffic has had no ready replica, though one that had traffic "
        "before has; absent: each has one, or all are silent.",
    )
    message: str | None = Field(None, description="What it waits for, or why the weights went back.")


class EndpointStatus(Model):
    """What became of an endpoint."""

    phase: EndpointPhase = Field(description="Pending, Serving, Draining, Failed or Removed.")
    reason: str | None = Field(None, description="Why, in one word.")
    message: str | None = Field(None, description="Why, as a sentence.")
    since: Instant = Field(description="When the phase began.")
    versions: tuple[VersionStatus, ...] = Field((), description="Its versions, in the order of the document.")
    rollout: RolloutStatus = Field(description="How far the document's weights have come about.")
    run: WorkloadStatus = Field(description="Where its objects are, and the state of each.")


class EndpointRecord(Document):
    """`slices/<slice>/endpoints/<name>.yaml` on the status branch."""

    kind: Literal["Endpoint"] = Field("Endpoint", description="Kind of document.")
    status: EndpointStatus = Field(description="What became of it.")
