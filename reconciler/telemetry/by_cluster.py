"""Values of GPUs of several clusters, each from its own source; a cluster without one is silent."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from threading import Lock

from reconciler.telemetry.telemetry_port import Latest, NodeKey, Query, Ranges, Telemetry
from reconciler.telemetry.unmeasured import Unmeasured, silence
from schemas.errors import EgsError


class ByCluster:
    """Opens each source when it is first asked for; one that cannot be opened is silent. Safe for threads."""

    def __init__(self, opened: Callable[[str], Telemetry | None]) -> None:
        """`opened`: the source of a cluster, None: it has none. May raise EgsError."""
        self._open, self._lock = opened, Lock()
        self._known: dict[str, Telemetry] = {}

    def latest(self, nodes: Collection[NodeKey], now: datetime) -> Latest:
        found = [source.latest(nodes, now) for source in self._sources(nodes)]
        return Latest(
            tuple(sample for one in found for sample in one.samples),
            tuple(silence for one in found for silence in one.silences),
        )

    def range(self, query: Query, now: datetime) -> Ranges:
        found = [source.range(query, now) for source in self._sources(query.nodes)]
        return Ranges(
            tuple(series for one in found for series in one.series),
            tuple(silence for one in found for silence in one.silences),
        )

    def _sources(self, nodes: Collection[NodeKey]) -> Iterator[Telemetry]:
        for cluster in sorted({cluster for cluster, _ in nodes}):
            with self._lock:
                if cluster not in self._known:
                    self._known[cluster] = self._opened(cluster)
                found = self._known[cluster]
            yield found

    def _opened(self, cluster: str) -> Telemetry:
        try:
            return self._open(cluster) or Unmeasured(silence(cluster))
        except EgsError as error:
            return Unmeasured(silence(cluster, str(error)))
