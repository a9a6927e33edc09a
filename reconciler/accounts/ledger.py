"""What slices used and what it cost, counted once, at the end of a lease. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from reconciler.model.facts import Facts
from reconciler.model.statuses import changed
from scheduler.fairness.usage_share import decayed, used
from schemas.documents.base import Metadata
from schemas.documents.project import ProjectSpec
from schemas.documents.scheduling import Fairness
from schemas.status.gpr_status import Cost, GPRStatus
from schemas.status.usage import MonthUsage, UsageRecord

KEPT_MONTHS = 120
HOUR = 3600


def with_finished(
    before: Facts, after: Mapping[str, GPRStatus], project: ProjectSpec, at: datetime
) -> dict[str, UsageRecord]:
    """The ledger with every lease added that ended between the two; a status' cost rises only when a lease ends."""
    usage = dict(before.usage)
    for key in sorted(changed(before.requests, after)):
        status, old = after.get(key), before.requests.get(key)
        if status is None:
            continue
        was = old.cost if old is not None and old.uid == status.uid else None
        if status.cost is not None and status.cost != was:
            name = status.accepted_spec.slice
            record = usage.get(name) or UsageRecord(metadata=Metadata(name=name), currency=project.currency)
            record = _added(record, status.cost, was, f"{status.end_time or at:%Y-%m}")
            hours = status.cost.gpu_hours - (0.0 if was is None else was.gpu_hours)
            begin, end = _span(status, old, at)
            usage[name] = _counted(record, hours, (begin, end, at), project.scheduling.fairness or Fairness())
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
    return record.edited(months=kept)


def _span(status: GPRStatus, old: GPRStatus | None, at: datetime) -> tuple[datetime, datetime]:
    """When the ended lease had its nodes; a requeued request no longer has these fields."""
    started = status.start_time or (None if old is None else old.start_time) or at
    ended = at if status.end_time is None else min(status.end_time, at)
    return min(started, ended), ended


def _counted(
    record: UsageRecord, gpu_hours: float, when: tuple[datetime, datetime, datetime], fairness: Fairness
) -> UsageRecord:
    """The usage that fairness reads, decayed until now; `when` is the lease's begin and end, and now."""
    begin, end, now = (instant.timestamp() for instant in when)
    half_life, at = fairness.half_life.total_seconds(), when[2]
    age = 0.0 if record.at is None else now - record.at.timestamp()
    gpus = gpu_hours * HOUR / (end - begin) if end > begin else 0.0
    added = used(gpus, begin, end, now, half_life) if gpus else gpu_hours
    total = decayed(record.used, age, half_life) + added
    return record.edited(used=round(total, 4), at=at.replace(microsecond=0))
