"""What slices used and what it cost, counted once, when a lease is left. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from reconciler.facts import Facts
from schemas.base import Metadata
from schemas.status import Cost, GPRStatus
from schemas.usage import MonthUsage, UsageRecord

KEPT_MONTHS = 120


def with_finished(
    before: Facts, after: Mapping[str, GPRStatus], currency: str, at: datetime
) -> dict[str, UsageRecord]:
    """The ledger with every lease added that ended between the two, also of requests that queue again.

    A status' cost changes only when a lease is left, and holds the earlier leases too: what it grew by is the lease.
    """
    usage = dict(before.usage)
    for key in sorted(after):
        status, old = after[key], before.requests.get(key)
        was = old.cost if old is not None and old.uid == status.uid else None
        if status.cost is not None and status.cost != was:
            name = status.accepted_spec.slice
            record = usage.get(name) or UsageRecord(metadata=Metadata(name=name), currency=currency)
            usage[name] = _added(record, status.cost, was, f"{status.end_time or at:%Y-%m}")
    return usage


def _added(record: UsageRecord, cost: Cost, was: Cost | None, month: str) -> UsageRecord:
    months = {m.month: m for m in record.months}
    old = months.get(month) or MonthUsage(month=month, gpu_hours=0.0, amount=0.0, leases=0)
    gpu_hours, amount = (0.0, 0.0) if was is None else (was.gpu_hours, was.amount)
    months[month] = MonthUsage(
        month=month,
        gpu_hours=round(old.gpu_hours + cost.gpu_hours - gpu_hours, 4),
        amount=round(old.amount + cost.amount - amount, 4),
        leases=old.leases + 1,
    )
    kept = tuple(months[m] for m in sorted(months))[-KEPT_MONTHS:]
    return record.model_copy(update={"months": kept})
