"""What the machines write back about slices: what each used, by when it counts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Document, Model


class MonthUsage(Model):
    """What a slice used in one calendar month (UTC), counted when a lease ends."""

    month: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}$", description="Like 2026-11.")]
    gpu_hours: Annotated[float, Field(description="GPU-hours of leases that ended in it.")]
    amount: Annotated[float, Field(description="What they cost.")]
    leases: Annotated[int, Field(description="How many they were.")]


class UsageRecord(Document):
    """`usage/<slice>.yaml`: the ledger, newest month last."""

    kind: Annotated[Literal["Usage"], Field(description="Kind of document.")] = "Usage"
    currency: Annotated[str, Field(description="Of every amount here.")]
    months: Annotated[tuple[MonthUsage, ...], Field(description="Newest last.")] = ()
