"""Alerts of a cluster's GPUs that were told and are not over."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Instant


class NodeAlert(Model):
    """One kind of alert of one node."""

    node: str = Field(description="Node of the GPUs.")
    reason: str = Field(description="What the node's agent noticed: GpuHot, MemoryHot, Throttled, Xid31, …")
    gpus: tuple[int, ...] = Field(description="Numbers of the GPUs.")
    since: Instant = Field(description="When the first of them was told.")


class AlertsRecord(Document):
    """`alerts/<cluster>.yaml`: the alerts of a cluster, by node and reason."""

    kind: Literal["Alerts"] = Field("Alerts", description="Kind of document.")
    alerts: tuple[NodeAlert, ...] = Field((), description="By node and reason.")
