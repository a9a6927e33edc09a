"""Marks of a lease: shares of its time, each reported once, and before an event that ends the lease. Pure.

Held by tests/cases/reconciler/lifecycle/marks.yaml.
"""

from __future__ import annotations

from datetime import datetime

from reconciler.model.events import MARKS, Event, mark_text
from schemas.status.gpr_status import GPRStatus, Mark


def with_marks(
    key: str, status: GPRStatus, now: datetime, until: datetime | None = None
) -> tuple[GPRStatus, tuple[Event, ...]]:
    """Reports each passed share of the lease once; passed by `until` (None: by `now`), however late this runs."""
    told: list[Event] = []
    if status.start_time is None or status.end_time is None:
        return status, ()
    for percent, reason in MARKS.items():
        is_told = any(mark.percent == percent for mark in status.marks)
        if is_told or (until or now) < mark_time(status, percent):
            continue
        status = status.edited(marks=(*status.marks, Mark(percent=percent, at=now)))
        told.append(Event(now, reason, mark_text(key, percent), key))
    return status, tuple(told)


def mark_time(status: GPRStatus, percent: int) -> datetime:
    """When that share of the lease is over."""
    assert status.start_time is not None
    assert status.end_time is not None
    return status.start_time + (status.end_time - status.start_time) * percent / 100
