"""Marks of a lease: shares of its time that people are told of, once each. Pure.

Whatever ends a lease tells first what fell due before: also when the controller was away meanwhile, and finds the mark
and the end in one look. Held by tests/cases/reconciler/lifecycle/marks.yaml.
"""

from __future__ import annotations

from datetime import datetime

from reconciler.model.events import MARKS, Event, mark_text
from schemas.status.gpr_status import GPRStatus, Mark


def with_marks(
    key: str, status: GPRStatus, now: datetime, until: datetime | None = None
) -> tuple[GPRStatus, tuple[Event, ...]]:
    """Every share of the lease that is over at `until` (None: at `now`) is told once, however late we look."""
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
