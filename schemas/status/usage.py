"""Machine-written status of slices: what each used."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Instant


class MonthUsage(Model):
    """A slice's use in one calendar month (UTC), counted when a lease ends."""

    month: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}$", description="Like 2026-11.")]
    gpu_hours: Annotated[float, Field(description="GPU-hours of leases that ended in it.")]
    amount: Annotated[float, Field(description="What they cost.")]
    leases: Annotated[int, Field(description="Number of those leases.")]


class MonthSpent(Model):
    """GPU-hours of leases that began in one calendar month (UTC), in one place; monthly bounds use them."""

    month: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}$", description="Like 2026-11.")]
    cluster: Annotated[str, Field(description="Cluster of their nodes.")]
    gpu_shape: Annotated[str, Field(description="Shape of their GPUs.")]
    gpu_hours: Annotated[float, Field(description="Without grace.")]
    approved: Annotated[float, Field(description="The part that an admin allowed beyond the quota.")] = 0.0


class UsageRecord(Document):
    """`usage/<slice>.yaml`: the ledger, newest month last."""

    kind: Annotated[Literal["Usage"], Field(description="Kind of document.")] = "Usage"
    currency: Annotated[str, Field(description="Currency of all amounts here.")]
    months: Annotated[tuple[MonthUsage, ...], Field(description="Newest last.")] = ()
    used: Annotated[
        float, Field(description="GPU-hours of leases that ended, decayed by the half-life until `at`.")
    ] = 0.0
    spent: Annotated[
        tuple[MonthSpent, ...], Field(description="By month, cluster and shape, of the last months.")
    ] = ()
    at: Annotated[Instant | None, Field(description="When that was counted; absent: never.")] = None
    preempted: Annotated[
        tuple[Instant, ...],
        Field(description="When its requests were preempted for other slices, within the last day."),
    ] = ()
