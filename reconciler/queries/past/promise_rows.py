"""`egs promises`: what became of every promised start, from `promises/` on the status branch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

from reconciler.accounts.promises import Start, is_open, median_at_most, promise_of, start_of
from reconciler.model.facts import Facts
from reconciler.model.statuses import live
from reconciler.queries.state import clock
from reconciler.settings import DEFAULTS
from reconciler.sources.open_source import opened
from schemas.documents.base import Metadata
from schemas.reading.units import format_instant
from schemas.status.gpr_status import GPRStatus
from schemas.status.promises import PromisesRecord

TOLERANCE = DEFAULTS.start_tolerance
MOST_RECENT = 200
_NONE = PromisesRecord(metadata=Metadata(name="all"))


def promises_json(facts: Facts, months: int, sees: Collection[str] | None) -> dict[str, Any]:
    """The ledger's newest months, and the starts of the slices in `sees` (None: of all) one by one, newest first."""
    newest = sorted(facts.promises, reverse=True)[:months]
    kept = [facts.promises[month] for month in newest]
    starts = [
        start
        for record in kept
        for start in map(start_of, reversed(record.rows))
        if start is not None and (sees is None or start.key.partition("/")[0] in sees)
    ]
    return {
        "toleranceSeconds": int(TOLERANCE.total_seconds()),
        "open": _open(live(facts.requests).values()),
        "total": _figures(reduce(_added, kept, _NONE)),
        "months": [{**_figures(record), "month": record.metadata.name} for record in kept],
        "recent": [_recent(start) for start in starts[:MOST_RECENT]],
    }


def _open(waiting: Iterable[GPRStatus]) -> dict[str, int]:
    """Promises that are not settled yet, and how many of them now stand later than they were made."""
    found = [
        (status, first) for status in waiting if is_open(status) and (first := promise_of(status)) is not None
    ]
    late = [
        status
        for status, first in found
        if status.estimated_start_time is None or status.estimated_start_time - first.start > TOLERANCE
    ]
    return {"promises": len(found), "later": len(late)}


def _figures(record: PromisesRecord) -> dict[str, Any]:
    starts = record.kept + record.slipped
    return {
        "starts": starts,
        "kept": record.kept,
        "slipped": record.slipped,
        "keptShare": _share(record.kept, starts),
        "withdrawn": record.withdrawn,
        "causes": dict(record.causes),
        "medianErrorAtMostSeconds": median_at_most(record.errors),
        "forecast": {
            "starts": record.expected,
            "covered": _share(record.covered, record.expected),
            "medianErrorAtMostSeconds": median_at_most(record.forecast_errors),
        },
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _recent(start: Start) -> dict[str, Any]:
    slice_, _, name = start.key.partition("/")
    late = max(timedelta(), start.start - start.promised)
    return {
        "slice": slice_,
        "name": name,
        "promised": format_instant(start.promised),
        "start": format_instant(start.start),
        "lateSeconds": int(late.total_seconds()),
        "cause": start.cause or None,
    }


def _added(one: PromisesRecord, other: PromisesRecord) -> PromisesRecord:
    return one.edited(
        kept=one.kept + other.kept,
        slipped=one.slipped + other.slipped,
        withdrawn=one.withdrawn + other.withdrawn,
        causes=_sums(one.causes, other.causes),
        errors=tuple(a + b for a, b in zip(one.errors, other.errors, strict=True)),
        expected=one.expected + other.expected,
        covered=one.covered + other.covered,
        forecast_errors=tuple(a + b for a, b in zip(one.forecast_errors, other.forecast_errors, strict=True)),
    )


def _sums(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}


def promises_of(repo: str | None, now: str | None, months: int) -> dict[str, Any]:
    with opened(repo) as source:
        at: datetime = clock(now, source)
        loaded = source.loaded(at)
    return promises_json(Facts(at) if loaded is None else loaded.facts, months, None)
