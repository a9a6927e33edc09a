"""Values of GPUs over time, cut to the leases that a person may see, with marks for errors and slowdowns.

Held by tests/reconciler/queries/test_ranges.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from reconciler.queries.running.sight import Sight
from reconciler.sources.command_errors import WrongUse
from reconciler.telemetry.leased_time import Leased, visible_ranges
from reconciler.telemetry.telemetry_port import GpuKey, Metric, Query, Ranges, Series, Telemetry
from reconciler.workloads.thresholds import BRAKE_BIT, HEAT_BITS
from schemas.reading.units import format_instant

Row = dict[str, Any]

USUAL = (Metric.UTILISATION, Metric.TEMPERATURE, Metric.POWER, Metric.MEMORY_USED)
"""Shown if nothing is asked for."""
MARKS = (Metric.XID, Metric.THROTTLE)
LONGEST = timedelta(days=7)
MOST_GPUS = 256
"""GPUs of one answer: with four metrics these are some 250,000 points."""
POINTS = 240
"""About as many points as a chart needs, if no step is asked for."""
STEPS_S = (15, 30, 60, 120, 300, 600, 900, 1800, 3600)


@dataclass(frozen=True, slots=True)
class Span:
    """What to look at; `step` None: as a chart needs."""

    since: datetime
    until: datetime
    step: timedelta | None = None
    metrics: tuple[Metric, ...] = USUAL

    @property
    def pace(self) -> timedelta:
        if self.step is not None:
            return self.step
        wanted_s = (self.until - self.since).total_seconds() / POINTS
        return timedelta(seconds=next((step for step in STEPS_S if step >= wanted_s), STEPS_S[-1]))


def metrics_of(names: Iterable[str]) -> tuple[Metric, ...]:
    """Metrics by name; none: the usual ones. Raises WrongUse."""
    found = []
    for name in names:
        if name not in set(Metric):
            raise WrongUse(f"there is no metric {name}; metrics are {', '.join(Metric)}")
        found.append(Metric(name))
    return tuple(dict.fromkeys(found)) or USUAL


def span_of(now: datetime, since: datetime | None, until: datetime | None, names: Iterable[str] = ()) -> Span:
    """The range, by default the last hour. Raises WrongUse for one that is empty or too long."""
    end = min(until or now, now)
    begin = since or end - timedelta(hours=1)
    if begin >= end:
        raise WrongUse("a range ends after it begins, and begins in the past")
    if end - begin > LONGEST:
        raise WrongUse(f"a range is at most {LONGEST.days} days long")
    return Span(begin, end, None, metrics_of(names))


def values(telemetry: Telemetry, seen: Sight, span: Span, leased: Leased | None = None) -> Ranges:
    """Series of the nodes in these leases (None: of the running requests), cut to them.

    Who sees every slice sees the time between leases too.
    """
    own = seen.leased if leased is None else leased
    if not own:
        return Ranges()
    metrics = tuple(dict.fromkeys((*span.metrics, *MARKS)))
    found = telemetry.range(Query(frozenset(own), metrics, span.since, span.until, span.pace), seen.now)
    return found if seen.viewer.sees_all else visible_ranges(found, own)


def check_count(gpus: int) -> None:
    """Raises WrongUse if these are too many for one answer."""
    if gpus > MOST_GPUS:
        raise WrongUse(
            f"these are {gpus} GPUs, and one answer has at most {MOST_GPUS}; name a GPU or a workload"
        )


def of_gpus(ranges: Ranges, keys: Collection[GpuKey]) -> tuple[Series, ...]:
    return tuple(series for series in ranges.series if series.gpu in keys)


def data(series: Sequence[Series], span: Span, silences: Iterable[str] = ()) -> Row:
    """As data: series of the metrics that were asked for, and marks."""
    return {
        "since": format_instant(span.since),
        "until": format_instant(span.until),
        "stepSeconds": int(span.pace.total_seconds()),
        "series": [_row(one) for one in series if one.metric in span.metrics],
        "marks": [mark for one in series for mark in marks(one)],
        "silences": list(dict.fromkeys(silences)),
    }


def _row(series: Series) -> Row:
    return {
        **_place(series.gpu),
        "metric": str(series.metric),
        "unit": series.metric.unit,
        "points": [[format_instant(point.at), round(point.value, 3)] for point in series.points],
    }


def _place(gpu: GpuKey) -> Mapping[str, str]:
    return {"cluster": gpu.cluster, "node": gpu.node, "uuid": gpu.uuid}


def marks(series: Series) -> list[Row]:
    """When an error was reported, and when a slowdown began: what a chart marks."""
    found: list[Row] = []
    before: float | None = None
    for point in series.points:
        if series.metric is Metric.XID and point.value and before is not None and point.value != before:
            found.append(
                {**_place(series.gpu), "at": format_instant(point.at), "what": f"Xid {point.value:g}"}
            )
        what = _slowdown(int(point.value)) if series.metric is Metric.THROTTLE else ""
        if what and not (before is not None and _slowdown(int(before))):
            found.append({**_place(series.gpu), "at": format_instant(point.at), "what": what})
        before = point.value
    return found


def _slowdown(bits: int) -> str:
    if bits & BRAKE_BIT:
        return "slowed down by the power brake"
    return "slowed down by heat" if bits & HEAT_BITS else ""
