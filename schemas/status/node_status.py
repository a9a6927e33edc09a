"""What agents report of nodes and their GPUs, and what nodes are to the planner."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from schemas.documents.base import Document, Metadata, Model
from schemas.reading.units import Instant, LongName
from schemas.status.gpu_faults import GpuAction


class PastFault(Model):
    """A fault of a GPU that ended."""

    reason: str = Field(description="What it was.")
    began: Instant = Field(description="When it began.")
    ended: Instant = Field(description="When it ended.")


class GpuReport(Model):
    """One GPU as judged by its agent."""

    uuid: str = Field(description="The vendor's identity of the GPU.")
    index: int = Field(description="Its number in the node.")
    product: str = Field(description="Product name.")
    memory_mib: int = Field(description="Memory, MiB.")
    healthy: bool = Field(description="The agent's verdict.")
    reasons: tuple[str, ...] = Field((), description="Current faults, worst first.")
    watched: tuple[str, ...] = Field((), description="What is noticed but takes no GPU out of service.")
    action: GpuAction | None = Field(None, description="What to do; absent: nothing is wrong.")
    past: tuple[PastFault, ...] = Field((), description="The last faults that ended, oldest first.")
    serial: str | None = Field(None, description="Serial number of the card.")
    board_part: str | None = Field(None, description="The vendor's part number of the board.")
    vbios: str | None = Field(None, description="Version of the VBIOS.")
    driver: str | None = Field(None, description="Version of the driver.")
    mig_enabled: bool | None = Field(None, description="Whether it is divided by MIG.")
    mig_devices: int | None = Field(None, description="MIG devices that exist.")
    links: int | None = Field(None, description="NVLink links that the product has.")
    links_up: int = Field(0, description="Links of those that are up.")


class NodeMetadata(Metadata):
    """Metadata of documents that are named after a node."""

    name: LongName = Field(description="Name of the node.")


class AgentReport(Document):
    """`report.yaml` on an agent's own branch; written on change only."""

    metadata: NodeMetadata = Field(description="The node's name, unless several agents watch one node.")

    kind: Literal["AgentReport"] = Field("AgentReport", description="Kind of document.")
    cluster: str = Field(description="Cluster of the node.")
    node: str = Field(description="The reported node.")
    at: Instant = Field(description="When something last changed.")
    healthy: bool = Field(description="Whether the node can serve.")
    reason: str | None = Field(None, description="The worst fault.")
    action: GpuAction | None = Field(None, description="What to do about its GPUs; absent: nothing is wrong.")
    message: str | None = Field(None, description="The same for people.")
    gpus: tuple[GpuReport, ...] = Field((), description="Every GPU of the node.")
    faults: tuple[Instant, ...] = Field(
        (), description="When faults began within the last day, oldest first."
    )
    idle_since: Instant | None = Field(
        None, description="Since when no GPU of the node is used; absent: one is used, or it is unknown."
    )
    released_at: Instant | None = Field(
        None,
        description="Since when the agent has let go of the driver, for a reset; absent: it reads the GPUs.",
    )


class NodeState(StrEnum):
    """What a node is to the planner."""

    READY = "Ready"
    UNHEALTHY = "Unhealthy"  # reported bad and taken out
    SUSPECT = "Suspect"  # reported bad, but the pool's isolation limit is reached: an admin must decide
    QUARANTINED = "Quarantined"  # bad too often, or unclean after a lease: an admin must clear it
    CORDONED = "Cordoned"  # taken out by others, to be drained, or in an upgrade of its driver
    DIRTY = "Dirty"  # its lease is over, but the node is not clean yet
    LOST = "Lost"  # unknown to the cluster, or silent
    UNFIT = "Unfit"  # differs from its pool's manifest
    OCCUPIED = "Occupied"  # runs GPU pods of no slice


class NodeRecord(Document):
    """`nodes/<cluster>/<node>.yaml`: a node that is not Ready, or about which there is something to say."""

    kind: Literal["Node"] = Field("Node", description="Kind of document.")
    metadata: NodeMetadata = Field(description="The node's name.")
    cluster: str = Field(description="Cluster of the node.")
    pool: str = Field(description="Pool of the node.")
    state: NodeState = Field(description="What it is to the planner.")
    reason: str | None = Field(None, description="Why: a stable CamelCase identifier.")
    message: str | None = Field(None, description="The same for people.")
    since: Instant = Field(description="Since when.")
    until: Instant | None = Field(
        None, description="When a failed check no longer counts against it, or findings after an upgrade do."
    )
    gpus: tuple[GpuReport, ...] = Field((), description="Its GPUs as last reported.")
