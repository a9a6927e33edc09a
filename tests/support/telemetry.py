"""A source of telemetry with figures that a test chose."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from reconciler.telemetry.telemetry_port import (
    KEPT,
    GpuSample,
    Latest,
    NodeKey,
    Query,
    Ranges,
    Series,
    Silence,
)


@dataclass
class FixedTelemetry:
    """`Telemetry` that has exactly these samples and series."""

    samples: tuple[GpuSample, ...] = ()
    series: tuple[Series, ...] = ()
    silences: tuple[Silence, ...] = ()

    def latest(self, nodes: Collection[NodeKey], now: datetime) -> Latest:
        found = (s for s in self.samples if s.gpu.at_node in nodes and now - s.at <= KEPT)
        return Latest(tuple(sorted(found, key=lambda s: s.gpu)), self._silences(nodes))

    def range(self, query: Query, now: datetime) -> Ranges:
        found = (
            Series(
                s.gpu, s.metric, s.window, tuple(p for p in s.points if query.since <= p.at <= query.until)
            )
            for s in self.series
            if s.gpu.at_node in query.nodes and s.metric in query.metrics
        )
        return Ranges(tuple(s for s in found if s.points), self._silences(query.nodes))

    def _silences(self, nodes: Collection[NodeKey]) -> tuple[Silence, ...]:
        clusters = {cluster for cluster, _ in nodes}
        return tuple(s for s in self.silences if s.cluster in clusters)
