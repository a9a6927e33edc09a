"""Statistics of finished requests: aggregated for people, and row by row to learn from. Pure.

A request counts once, when it finishes; everything else follows from statuses and is left to readers, so that
nothing is written just because time passes. Rows and aggregates are bounded, and outlive the requests' files.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from reconciler.model.facts import Facts, Wanted
from reconciler.model.holdings import gpus_of
from reconciler.model.status_edits import first_wait
from reconciler.model.statuses import changed
from scheduler.estimates.expected_starts import Drawn
from scheduler.snapshot import PoolKey
from schemas.documents.base import Metadata
from schemas.reading.units import instant, seconds
from schemas.status.gpr_status import TERMINAL, GPRStatus
from schemas.status.insights import DayTally, EndedRecord, FirstEstimate, Insights, Tally

EMPTY = Insights(metadata=Metadata(name="insights"))
KEPT_DAYS = 14
"""Days of rows to learn from."""
MOST_ROWS = 3000
"""Rows of one day; about 150 bytes each, so a file stays under 1 MB. Beyond it the day's oldest are dropped."""
MOST_LEARNT = 5000
"""Rows to learn from, the newest."""
ROLLED_DAYS = 92
MOST_NAMES = 500
"""Slices and shapes aggregated by name; the least active are dropped first."""
MARKS_S = (60, 600, 3600, 4 * 3600, 12 * 3600, 86_400, 3 * 86_400, 7 * 86_400)
"""Bucket bounds of the waits."""
NEVER = "-"
"""The shape of a request that never had nodes."""
_T = TypeVar("_T", bound=Tally)


@dataclass(frozen=True, slots=True)
class Ended:
    filed: int
    start: int | None
    slice: str
    shape: str
    nodes: int
    duration: int
    used: int
    priority: int
    pools: tuple[PoolKey, ...]
    planned: int | None  # the first promise
    drawn: Drawn | None

    def row(self) -> str:
        out = io.StringIO()
        planned = "" if self.planned is None else self.planned
        spread = ("", "", "") if self.drawn is None else (self.drawn.p10, self.drawn.p50, self.drawn.p90)
        pools = "|".join("/".join(key) for key in self.pools)
        start = "" if self.start is None else self.start
        cells = [self.filed, start, self.slice, self.shape, self.nodes, self.duration, self.used]
        csv.writer(out, lineterminator="").writerow([*cells, self.priority, pools, planned, *spread])
        return out.getvalue()


def ended_of(row: str) -> Ended | None:
    """The inverse of `Ended.row`; None for an invalid row."""
    try:
        cells = next(csv.reader([row]))
        filed, start, slice_, shape, nodes, duration, used, priority, pools, planned, *spread = cells
        drawn = Drawn(*(int(cell) for cell in spread)) if all(spread) else None
        keys = tuple((c, p) for c, _, p in (key.partition("/") for key in pools.split("|") if key))
        return Ended(
            filed=int(filed),
            start=int(start) if start else None,
            slice=slice_,
            shape=shape,
            nodes=int(nodes),
            duration=int(duration),
            used=int(used),
            priority=int(priority),
            pools=keys,
            planned=int(planned) if planned else None,
            drawn=drawn,
        )
    except (ValueError, TypeError, StopIteration, csv.Error):
        return None


def with_ended(
    before: Facts, after: Mapping[str, GPRStatus], wanted: Wanted, at: datetime
) -> tuple[Insights | None, Mapping[str, EndedRecord]]:
    """Insights and rows, with every request added that finished between the two."""
    over = [
        status
        for key in sorted(changed(before.requests, after))
        if (status := after.get(key)) is not None
        and status.phase in TERMINAL
        and ((old := before.requests.get(key)) is None or old.uid != status.uid or old.phase not in TERMINAL)
    ]
    if not over:
        return before.insights, before.ended
    found = [(status, _ended(status, wanted, at)) for status in over]
    day = f"{at:%Y-%m-%d}"
    known = before.ended[day].rows if day in before.ended else ()
    rows = (*known, *(ended.row() for _, ended in found))[-MOST_ROWS:]
    oldest = f"{at - timedelta(days=KEPT_DAYS):%Y-%m-%d}"
    kept = {name: record for name, record in before.ended.items() if name > oldest}
    kept[day] = EndedRecord(metadata=Metadata(name=day), rows=rows)
    return _rolled(before.insights or EMPTY, found, wanted, at), kept


def _ended(status: GPRStatus, wanted: Wanted, at: datetime) -> Ended:
    """One row for all leases of a requeued request: its first start, and its total time."""
    spec, held = status.accepted_spec, status.assignment
    pools, used, first = _pools(status, wanted), time_used(status, at), first_of(status)
    place = (pools[0] if pools else None) if held is None else (held.cluster, held.pool)
    here = None if place is None else wanted.pools.get(place)
    return Ended(
        filed=seconds(status.filed_at),
        start=_first_start(status),
        slice=spec.slice,
        shape=NEVER if used is None else "" if here is None else here.gpu_shape,
        nodes=spec.nodes,
        duration=int((spec.duration + status.extended_by).total_seconds()),
        used=0 if used is None else int(used.total_seconds()),
        priority=spec.priority,
        pools=pools,
        planned=None if first is None else seconds(first.start),
        drawn=None if first is None else drawn_of(first),
    )


def time_used(status: GPRStatus, at: datetime) -> timedelta | None:
    """How long it held nodes in all its leases together, until their end or `at`; None: it never ran."""
    start = status.start_time if status.assignment is not None else None
    if start is None:
        return status.served or None
    return status.served + max(timedelta(), (status.end_time or at) - start)


def _first_start(status: GPRStatus) -> int | None:
    """Its wait before the first start, added to its filing time, if it was requeued since; None: it never ran."""
    if status.start_time is not None and status.assignment is not None and not status.served:
        return seconds(status.start_time)
    return None if status.waited_s is None else seconds(status.filed_at) + status.waited_s


def _pools(status: GPRStatus, wanted: Wanted) -> tuple[PoolKey, ...]:
    """Where it could have run by shape and clusters: the pools it competes for if filed again."""
    spec = status.accepted_spec
    slice_ = wanted.slices.get(spec.slice)
    clusters = spec.clusters or (() if slice_ is None else slice_.clusters)
    return tuple(
        key
        for key, pool in wanted.pools.items()
        if key[0] in clusters
        and (not spec.gpu_shapes or pool.gpu_shape in spec.gpu_shapes)
        and pool.gpus_per_node >= spec.gpus_per_node
        and pool.memory_per_gpu >= spec.memory_per_gpu
        and len(pool.nodes) >= spec.nodes
    )


def first_of(status: GPRStatus) -> FirstEstimate | None:
    """Its first estimate, if that was for its present position and lease; None for a requeued request."""
    first = status.first_estimate
    known = first is not None and first.filed_at == status.filed_at and status.remaining is None
    return first if known else None


def drawn_of(first: FirstEstimate) -> Drawn | None:
    """The forecast drawn for it; None: there was none."""
    return Drawn(*(seconds(at) for at in first.drawn)) if len(first.drawn) == 3 else None


def _rolled(
    insights: Insights, found: Iterable[tuple[GPRStatus, Ended]], wanted: Wanted, at: datetime
) -> Insights:
    total, causes = insights.total, dict(insights.causes)
    shapes, slices, hours = (dict(part) for part in (insights.shapes, insights.slices, insights.hours))
    days = dict(insights.days)
    gpus = sum(len(pool.nodes) * pool.gpus_per_node for pool in wanted.pools.values() if not pool.observed)
    for status, ended in found:
        one = _tally(status, ended, wanted)
        total = added(total, one)
        for part, name in ((shapes, ended.shape or NEVER), (slices, ended.slice)):
            part[name] = added(part.get(name, Tally()), one)
        hour = f"{instant(ended.filed):%H}"
        hours[hour] = added(hours.get(hour, Tally()), one)
        today = f"{at:%Y-%m-%d}"
        days[today] = added(days.get(today, DayTally()), one)
        for day, held in _held(status, ended, wanted).items():
            old = days.get(day, DayTally(gpus=gpus))
            days[day] = old.edited(held_gpu_hours=round(old.held_gpu_hours + held, 4))
        days[today] = days[today].edited(gpus=gpus)
        for slip in status.slips:
            causes[str(slip.cause)] = causes.get(str(slip.cause), 0) + 1
    return insights.edited(
        total=total,
        shapes=_most(shapes),
        slices=_most(slices),
        hours=dict(sorted(hours.items())),
        days=dict(sorted(days.items())[-ROLLED_DAYS:]),
        causes=dict(sorted(causes.items())),
    )


def _most(tallies: Mapping[str, Tally]) -> dict[str, Tally]:
    busiest = sorted(tallies, key=lambda name: (-tallies[name].requests, name))[:MOST_NAMES]
    return {name: tallies[name] for name in sorted(busiest)}


def _tally(status: GPRStatus, ended: Ended, wanted: Wanted) -> Tally:
    gpus = gpus_of(status, wanted)
    asked = Tally(
        requests=1,
        asked_gpu_hours=round(gpus * ended.duration / 3600, 4),
        slipped=int(status.delayed_count > 0),
    )
    if ended.start is None:
        return asked
    wait = first_wait(status, instant(ended.start))
    ran = asked.edited(
        ran=1,
        used_gpu_hours=round(gpus * ended.used / 3600, 4),
        wait_s=wait,
        waits=tuple(int(i == bucket(wait)) for i in range(len(MARKS_S) + 1)),
    )
    first = first_of(status)
    return ran if first is None else _with_accuracy(ran, first, ended.start)


def bucket(wait_s: int) -> int:
    return sum(wait_s > mark for mark in MARKS_S)


def _with_accuracy(ran: Tally, first: FirstEstimate, start: int) -> Tally:
    error = abs(start - seconds(first.start))
    ran = ran.edited(promised=1, error_s=error, within_10min=int(error <= 600), within_1h=int(error <= 3600))
    if len(first.told) != 3:
        return ran
    p10, p50, p90 = (seconds(at) for at in first.told)
    return ran.edited(expected=1, expected_error_s=abs(start - p50), covered=int(p10 <= start <= p90))


def added(old: _T, one: Tally) -> _T:
    sums: dict[str, object] = {}
    for name in Tally.model_fields:
        mine, other = getattr(old, name), getattr(one, name)
        if isinstance(mine, tuple):
            sums[name] = tuple(a + b for a, b in zip(mine, other, strict=True))
        else:
            sums[name] = round(mine + other, 4)
    return old.model_copy(update=sums)


def _held(status: GPRStatus, ended: Ended, wanted: Wanted) -> dict[str, float]:
    """GPU-hours that it held on each aggregated day (UTC); several leases count as the last."""
    if ended.start is None:
        return {}
    gpus, found = gpus_of(status, wanted), {}
    end = status.end_time or instant(ended.start + ended.used)
    begin = end - timedelta(seconds=ended.used)
    begin = max(begin, end - timedelta(days=ROLLED_DAYS))
    while begin < end:
        midnight = datetime(begin.year, begin.month, begin.day, tzinfo=UTC) + timedelta(days=1)
        until = min(end, midnight)
        found[f"{begin:%Y-%m-%d}"] = gpus * (until - begin).total_seconds() / 3600
        begin = until
    return found
