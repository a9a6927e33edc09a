"""Telemetry of all clusters for all callers: every source has the same deadline, and its answers are shared.

A source that is slow or broken is a `Silence` and takes nothing from the others; its late answer serves the next
caller. What a caller may see is cut afterwards (`reconciler.telemetry.leased_time`), because answers are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import TypeVar

from reconciler.telemetry.shared_answers import SharedAnswers, Source
from reconciler.telemetry.telemetry_port import (
    DEADLINE,
    GpuSample,
    Latest,
    NodeKey,
    Query,
    Ranges,
    Series,
    Silence,
)
from schemas.documents.cluster import ClusterSpec
from schemas.errors import EgsError

T = TypeVar("T")

AGAIN = timedelta(minutes=1)
"""Until a source that could not be opened is tried again: a file may be there by then."""

Open = Callable[[str, ClusterSpec], Source]
"""Opens a cluster's source; raises `EgsError` if it has none."""


@dataclass(frozen=True, slots=True)
class _Opened:
    spec: ClusterSpec
    answers: SharedAnswers | None
    why: Silence | None  # it has no source
    at: datetime

    def serves(self, spec: ClusterSpec, now: datetime) -> bool:
        return self.spec == spec and (self.answers is not None or now - self.at < AGAIN)


class FleetTelemetry:
    """`Telemetry` of the clusters that it follows; thread-safe."""

    def __init__(self, open_source: Open, deadline: timedelta = DEADLINE) -> None:
        self._open, self._deadline_s = open_source, deadline.total_seconds()
        self._lock = Lock()
        self._clusters: dict[str, _Opened] = {}

    def follow(self, specs: Mapping[str, ClusterSpec], now: datetime) -> None:
        """The clusters in force; a source is opened again when its manifest changes. Costs nothing else."""
        with self._lock:
            gone = [name for name in self._clusters if name not in specs]
            changed = {
                name: spec
                for name, spec in specs.items()
                if name not in self._clusters or not self._clusters[name].serves(spec, now)
            }
            for name in (*gone, *changed):
                self._closed(self._clusters.pop(name, None))
            self._clusters |= {name: self._opened(name, spec, now) for name, spec in changed.items()}

    def latest(self, nodes: Collection[NodeKey], now: datetime) -> Latest:
        asked = {
            cluster: (own, opened.answers.latest(own, now))
            for cluster, own, opened in self._own(nodes)
            if opened.answers is not None
        }
        self._wait(answer.future for _, answers in asked.values() for answer in answers.values())
        samples: list[GpuSample] = []
        silences = self._without_source(nodes)
        for cluster, (own, answers) in asked.items():
            late = [node for node in own if node not in answers or not answers[node].future.done()]
            silences |= {_slow(cluster, self._deadline_s)} if late else set()
            for node in own - set(late):
                found = answers[node].future.result()
                samples += [s for s in found.samples if s.gpu.at_node == node]
                silences |= {s for s in found.silences if s.node in ("", node[1])}
        return Latest(tuple(sorted(samples, key=lambda s: s.gpu)), _sorted(silences))

    def range(self, query: Query, now: datetime) -> Ranges:
        asked = {
            cluster: opened.answers.range(replace(query, nodes=own), now)
            for cluster, own, opened in self._own(query.nodes)
            if opened.answers is not None
        }
        self._wait(answer.future for answer in asked.values() if answer is not None)
        series: list[Series] = []
        silences = self._without_source(query.nodes)
        for cluster, answer in sorted(asked.items()):
            if answer is None or not answer.future.done():
                silences.add(_slow(cluster, self._deadline_s))
            else:
                series += answer.future.result().series
                silences |= set(answer.future.result().silences)
        return Ranges(tuple(series), _sorted(silences))

    def close(self) -> None:
        with self._lock:
            for name in list(self._clusters):
                self._closed(self._clusters.pop(name))

    def _own(self, nodes: Collection[NodeKey]) -> list[tuple[str, frozenset[NodeKey], _Opened]]:
        with self._lock:
            opened = dict(self._clusters)
        return [
            (cluster, frozenset(node for node in nodes if node[0] == cluster), opened[cluster])
            for cluster in sorted({cluster for cluster, _ in nodes} & opened.keys())
        ]

    def _without_source(self, nodes: Collection[NodeKey]) -> set[Silence]:
        return {opened.why for _, _, opened in self._own(nodes) if opened.why is not None}

    def _wait(self, futures: Iterable[Future[T]]) -> None:
        wait(set(futures), timeout=self._deadline_s)

    def _opened(self, name: str, spec: ClusterSpec, now: datetime) -> _Opened:
        try:
            return _Opened(spec, SharedAnswers(name, self._open(name, spec)), None, now)
        except EgsError as error:
            return _Opened(spec, None, Silence(name, error.reason, str(error)), now)

    def _closed(self, opened: _Opened | None) -> None:
        if opened is not None and opened.answers is not None:
            opened.answers.close()


def _slow(cluster: str, deadline_s: float) -> Silence:
    text = f"the source of cluster {cluster} did not answer within {deadline_s:g} s"
    return Silence(cluster, "MetricsSlow", text)


def _sorted(silences: set[Silence]) -> tuple[Silence, ...]:
    return tuple(sorted(silences, key=lambda s: (s.cluster, s.node, s.reason)))
