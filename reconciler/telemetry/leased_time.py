"""What one caller may see: a GPU's values of the time in which its node was leased to a slice of theirs.

Pure. Whatever covers an instant outside of these leases is left out, also a point that summarises a window of which
only a part lies inside: a mean would give away what the neighbour's work did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.telemetry.telemetry_port import Latest, NodeKey, Ranges, Series, Silence


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """[since, until); `until` None: it has not ended."""

    since: datetime
    until: datetime | None = None

    def covers(self, since: datetime, until: datetime) -> bool:
        """Whether all of [since, until] lies in it."""
        return self.since <= since and (self.until is None or until < self.until)


Leased = Mapping[NodeKey, Sequence[Interval]]
"""The caller's leases, by node."""


def joined(intervals: Sequence[Interval]) -> tuple[Interval, ...]:
    """The same time in as few intervals as possible, by time: leases in a row leave no gap."""
    found: list[Interval] = []
    for interval in sorted(intervals, key=lambda i: i.since):
        last = found[-1] if found else None
        if last is None or (last.until is not None and last.until < interval.since):
            found.append(interval)
        elif last.until is not None and (interval.until is None or interval.until > last.until):
            found[-1] = Interval(last.since, interval.until)
    return tuple(found)


def visible_latest(latest: Latest, leased: Leased) -> Latest:
    """Samples measured during a lease of their node; silences of leased nodes and their clusters."""
    samples = tuple(s for s in latest.samples if _covers(leased.get(s.gpu.at_node, ()), s.at, s.at))
    return Latest(samples, _visible(latest.silences, leased))


def visible_ranges(ranges: Ranges, leased: Leased) -> Ranges:
    """Points whose whole window lies in a lease of their node; silences of leased nodes and their clusters."""
    cut = (_cut(series, leased) for series in ranges.series)
    return Ranges(tuple(series for series in cut if series.points), _visible(ranges.silences, leased))


def _visible(silences: tuple[Silence, ...], leased: Leased) -> tuple[Silence, ...]:
    clusters = {cluster for cluster, _ in leased}
    return tuple(
        s for s in silences if (s.cluster in clusters if not s.node else (s.cluster, s.node) in leased)
    )


def _cut(series: Series, leased: Leased) -> Series:
    intervals = joined(leased.get(series.gpu.at_node, ()))
    kept = tuple(p for p in series.points if _covers(intervals, p.at - series.window, p.at))
    return replace(series, points=kept)


def _covers(intervals: Sequence[Interval], since: datetime, until: datetime) -> bool:
    return any(interval.covers(since, until) for interval in intervals)
