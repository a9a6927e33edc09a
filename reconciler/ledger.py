"""What slices used and what it cost, counted once, when a request reaches its end. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.facts import Facts
from schemas.base import Metadata
from schemas.status import TERMINAL, GPRStatus, MonthUsage, UsageRecord

KEPT_MONTHS = 120


def with_finished(before: Facts, after: Mapping[str, GPRStatus], currency: str) -> dict[str, UsageRecord]:
    """The ledger with every request added that became terminal between the two."""
    usage = dict(before.usage)
    for key in sorted(after):
        status, old = after[key], before.requests.get(key)
        just_ended = status.phase in TERMINAL and (old is None or old.phase not in TERMINAL)
        if just_ended and status.cost is not None and status.end_time is not None:
            name = status.accepted_spec.slice
            record = usage.get(name) or UsageRecord(metadata=Metadata(name=name), currency=currency)
            usage[name] = _added(record, status, f"{status.end_time:%Y-%m}")
    return usage


def _added(record: UsageRecord, status: GPRStatus, month: str) -> UsageRecord:
    assert status.cost is not None
    months = {m.month: m for m in record.months}
    old = months.get(month) or MonthUsage(month=month, gpu_hours=0.0, amount=0.0, leases=0)
    months[month] = MonthUsage(
        month=month,
        gpu_hours=round(old.gpu_hours + status.cost.gpu_hours, 4),
        amount=round(old.amount + status.cost.amount, 4),
        leases=old.leases + 1,
    )
    kept = tuple(months[m] for m in sorted(months))[-KEPT_MONTHS:]
    return record.model_copy(update={"months": kept})
