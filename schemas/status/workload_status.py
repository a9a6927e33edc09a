"""The status of a workload: where it runs, and the state of each of its objects. No content of any object."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Instant


class WorkloadPhase(StrEnum):
    """The phase of a workload."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    REMOVED = "Removed"


class ObjectState(StrEnum):
    """The state of one object of a workload."""

    PENDING = "Pending"
    RUNNING = "Running"
    READY = "Ready"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    REFUSED = "Refused"
    CHANGED = "Changed"
    MISSING = "Missing"


class ObjectStatus(Model):
    """One Kubernetes object of a workload."""

    kind: str = Field(description="Its kind.")
    name: str = Field(description="Its name.")
    state: ObjectState = Field(
        description="Pending, Running, Ready (without an activity of its own), Succeeded, Failed; Refused by the "
        "cluster; Changed by others, or Missing: it is applied again."
    )
    reason: str | None = Field(None, description="Why, in one word.")
    message: str | None = Field(None, description="Why, as a sentence of the cluster.")


class WorkloadStatus(Model):
    """What became of a workload."""

    phase: WorkloadPhase = Field(description="Pending, Running, Succeeded, Failed or Removed.")
    reason: str | None = Field(None, description="Why, in one word.")
    message: str | None = Field(None, description="Why, as a sentence.")
    gpr: str = Field(description="Name of its request.")
    uid: str | None = Field(None, description="The request's uid in its last run; absent: it never ran.")
    start_time: Instant | None = Field(None, description="When the lease of its last run began.")
    cluster: str | None = Field(None, description="Cluster of its last run.")
    namespace: str | None = Field(None, description="Namespace of its last run.")
    digest: str | None = Field(None, description="Digest of the manifests of its last run.")
    since: Instant = Field(description="When the phase began.")
    objects: tuple[ObjectStatus, ...] = Field((), description="Its objects, in the order of application.")


class WorkloadRecord(Document):
    """`slices/<slice>/workloads/<name>.yaml` on the status branch."""

    kind: Literal["Workload"] = Field("Workload", description="Kind of document.")
    status: WorkloadStatus = Field(description="What became of it.")
