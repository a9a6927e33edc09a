"""Machine-written status of slices: what each used."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Instant


class MonthUsage(Model):
    """A slice's use in one calendar month (UTC), counted when a lease ends."""

    month: str = Field(pattern=r"^[0-9]{4}-[0-9]{2}$", description="Like 2026-11.")
    gpu_hours: float = Field(description="GPU-hours of leases that ended in it.")
    amount: float = Field(description="What they cost.")
    leases: int = Field(description="Number of those leases.")


class MonthSpent(Model):
    """GPU-hours of leases that began in one calendar month (UTC), in one place; monthly bounds use them."""

    month: str = Field(pattern=r"^[0-9]{4}-[0-9]{2}$", description="Like 2026-11.")
    cluster: str = Field(description="Cluster of their nodes.")
    gpu_shape: str = Field(description="Shape of their GPUs.")
    gpu_hours: float = Field(description="Without grace.")
    approved: float = Field(0.0, description="The part that an admin allowed beyond the quota.")


class UsageRecord(Document):
    """`usage/<slice>.yaml`: the ledger, newest month last."""

    kind: Literal["Usage"] = Field("Usage", description="Kind of document.")
    currency: str = Field(description="Currency of all amounts here.")
    months: tuple[MonthUsage, ...] = Field((), description="Newest last.")
    used: float = Field(
        0.0, description="GPU-hours of leases that ended, decayed by the half-life until `at`."
    )
    spent: tuple[MonthSpent, ...] = Field((), description="By month, cluster and shape, of the last months.")
    at: Instant | None = Field(None, description="When that was counted; absent: never.")
    preempted: tuple[Instant, ...] = Field(
        (), description="When its requests were preempted for other slices, within the last day."
    )
