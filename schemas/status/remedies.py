"""Resets and reboots of nodes, as the controller decided them and as they went."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Instant
from schemas.status.gpu_faults import GpuAction


class Remedy(Model):
    """One reset or reboot of one node."""

    uid: str = Field(description="Unique: names its objects and its checks.")
    cluster: str = Field(description="Cluster of the node.")
    node: str = Field(description="The node.")
    action: GpuAction = Field(description="reset or reboot.")
    reason: str = Field(description="The fault that its agent reported.")
    gpus: tuple[str, ...] = Field((), description="UUIDs of the GPUs to be reset; empty: all of the node.")
    cards: tuple[str, ...] = Field((), description="Serial numbers of the GPUs that failed.")
    began: Instant = Field(description="When it was decided.")
    released_at: Instant | None = Field(
        None, description="When the agent had let go of the driver, or was no longer waited for."
    )
    done_at: Instant | None = Field(None, description="When the cluster had carried it out.")
    well_at: Instant | None = Field(None, description="When the agent found the GPUs well after it.")
    ended: Instant | None = Field(None, description="When its result was known; absent: it goes on.")
    helped: bool = Field(False, description="Whether the node's checks passed after it.")
    message: str | None = Field(None, description="Why it did not help.")


class RemediesRecord(Document):
    """`remedies/<cluster>.yaml`: resets and reboots of the last day, and those that go on."""

    kind: Literal["Remedies"] = Field("Remedies", description="Kind of document.")
    remedies: tuple[Remedy, ...] = Field((), description="By node, oldest first.")
