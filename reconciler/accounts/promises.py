"""The promise ledger: every promised start is settled once, as kept, slipped or withdrawn, by month. Pure.

A promise is the first start that a request is told for its place in the queue, and after an eviction the first
start of its return. It is kept if the request starts by then, or within the tolerance after it; else it slipped,
and counts under the cause that delayed it most. Sums and rows are bounded, and outlive the requests' files.

Held by tests/reconciler/accounts/test_promises.py.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.facts import Facts
from reconciler.model.statuses import changed
from schemas.documents.base import Metadata
from schemas.reading.units import instant, seconds
from schemas.status.gpr_status import TERMINAL, GPRStatus, Slip
from schemas.status.insights import FirstEstimate
from schemas.status.promises import ERROR_BUCKETS, PromisesRecord

KEPT_MONTHS = 36
MOST_ROWS = 200
"""Starts of one month that are listed one by one, the newest; about 80 bytes each."""
UNEXPLAINED = "Unexplained"
"""The cause of a late start without a recorded slip; there should be none."""
_MINUTES = (0, 1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 180, 240, 360, 480, 720, 1440, 2880, 4320, 10_080)
MARKS_S = tuple(minutes * 60 for minutes in _MINUTES)
"""Bucket bounds of the errors; the last bucket has no bound."""
assert len(MARKS_S) + 1 == ERROR_BUCKETS


@dataclass(frozen=True, slots=True)
class Start:
    """A start that was promised."""

    key: str
    start: datetime
    promised: datetime
    cause: str
    """Why it slipped; empty: it was kept."""

    def row(self) -> str:
        return f"{seconds(self.start)},{self.key},{seconds(self.promised)},{self.cause}"


def start_of(row: str) -> Start | None:
    """The inverse of `Start.row`; None for an invalid row."""
    try:
        start, key, promised, cause = row.split(",")
        return Start(key, instant(int(start)), instant(int(promised)), cause)
    except (ValueError, OverflowError, OSError):
        return None


def promise_of(status: GPRStatus) -> FirstEstimate | None:
    """What it was told first for its present place and lease; None: nothing yet."""
    first = status.first_estimate
    if first is None or first.filed_at != status.filed_at:
        return None
    return first if (first.served or timedelta()) == status.served else None


def with_settled(
    before: Facts, after: Mapping[str, GPRStatus], at: datetime, tolerance: timedelta
) -> Mapping[str, PromisesRecord]:
    """The ledger, with every promise that was settled between the two."""
    kept = dict(before.promises)
    for key in sorted(changed(before.requests, after)):
        old, new = before.requests.get(key), after.get(key)
        if (start := _started(key, old, new, tolerance)) is not None and new is not None:
            month = f"{start.start:%Y-%m}"
            kept[month] = _with_start(_of(kept, month), start, promise_of(new))
        elif _is_withdrawn(old, new):
            record = _of(kept, f"{at:%Y-%m}")
            kept[record.metadata.name] = record.edited(withdrawn=record.withdrawn + 1)
    if kept == before.promises:
        return before.promises
    return {month: kept[month] for month in sorted(kept)[-KEPT_MONTHS:]}


def delaying(status: GPRStatus, promised: datetime) -> str:
    """The cause that moved it furthest beyond that promise."""
    lost: dict[str, timedelta] = {}
    for slip in status.slips:
        if slip.now is None or slip.now > promised:
            lost[slip.cause] = lost.get(slip.cause, timedelta()) + _lost(slip, promised)
    return min(lost, key=lambda cause: (-lost[cause], cause)) if lost else UNEXPLAINED


def _lost(slip: Slip, promised: datetime) -> timedelta:
    """By how much it moved the start beyond the promise; a start that became unknown counts as nothing by itself."""
    return timedelta() if slip.now is None else slip.now - max(slip.was, promised)


def _started(key: str, old: GPRStatus | None, new: GPRStatus | None, tolerance: timedelta) -> Start | None:
    """The promised start that it had in between; None: none."""
    if new is None or new.start_time is None or (old is not None and old.start_time == new.start_time):
        return None
    promise = promise_of(new)
    if promise is None:
        return None
    is_late = new.start_time - promise.start > tolerance
    return Start(key, new.start_time, promise.start, delaying(new, promise.start) if is_late else "")


def _is_withdrawn(old: GPRStatus | None, new: GPRStatus | None) -> bool:
    """True if a promise that was open is none any more, without a start."""
    if old is None or not is_open(old):
        return False
    if new is None or new.uid != old.uid or new.filed_at != old.filed_at:
        return True
    return new.start_time is None and not is_open(new)


def is_open(status: GPRStatus) -> bool:
    """True if it waits for a start that it was promised."""
    return status.start_time is None and status.phase not in TERMINAL and promise_of(status) is not None


def _of(ledger: Mapping[str, PromisesRecord], month: str) -> PromisesRecord:
    return ledger[month] if month in ledger else PromisesRecord(metadata=Metadata(name=month))


def _with_start(record: PromisesRecord, start: Start, first: FirstEstimate | None) -> PromisesRecord:
    causes = dict(record.causes)
    if start.cause:
        causes[start.cause] = causes.get(start.cause, 0) + 1
    record = record.edited(
        kept=record.kept + (not start.cause),
        slipped=record.slipped + bool(start.cause),
        causes=dict(sorted(causes.items())),
        errors=_counted(record.errors, start.start - start.promised),
        rows=(*record.rows, start.row())[-MOST_ROWS:],
    )
    if first is None or len(first.told) != 3:
        return record
    p10, p50, p90 = first.told
    return record.edited(
        expected=record.expected + 1,
        covered=record.covered + (p10 <= start.start <= p90),
        forecast_errors=_counted(record.forecast_errors, start.start - p50),
    )


def _counted(buckets: tuple[int, ...], error: timedelta) -> tuple[int, ...]:
    here = bisect_left(MARKS_S, abs(error).total_seconds())
    return tuple(count + (place == here) for place, count in enumerate(buckets))


def median_at_most(buckets: tuple[int, ...]) -> int | None:
    """The smallest bucket bound, in seconds, that half of the errors do not exceed; None: beyond all, or no error."""
    total, passed = sum(buckets), 0
    for mark, count in zip(MARKS_S, buckets, strict=False):
        passed += count
        if total and 2 * passed >= total:
            return mark
    return None
