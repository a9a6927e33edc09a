"""Clusters' Prometheus as the sources of what served models do, and their answers, shared between callers."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Generic, Protocol, TypeVar

from reconciler.telemetry.prometheus_telemetry import PrometheusTelemetry
from reconciler.telemetry.telemetry_port import SHARED
from schemas.documents.metrics import Prometheus
from schemas.errors import Fault, UserError


@dataclass(slots=True)
class OpenSources:
    """A connection for each cluster's Prometheus, opened again when its manifest changes."""

    files: Path | None
    _open: dict[str, tuple[Prometheus, PrometheusTelemetry]] = field(default_factory=dict)

    def source(self, cluster: str, source: Prometheus) -> PrometheusTelemetry:
        known = self._open.get(cluster)
        if known is not None and known[0] == source:
            return known[1]
        if known is not None:
            known[1].close()
        made = PrometheusTelemetry(cluster, source, self.files)
        self._open[cluster] = (source, made)
        return made

    def close(self) -> None:
        for _, source in self._open.values():
            source.close()


class Question(Protocol):
    """What is asked of one cluster."""

    @property
    def cluster(self) -> str: ...

    @property
    def source(self) -> Prometheus: ...


Q = TypeVar("Q", bound=Question)
A = TypeVar("A")


@dataclass(slots=True)
class _Cluster(Generic[A]):
    """What one cluster's Prometheus answered last, and that it did not. Used under its lock alone."""

    source: Prometheus
    lock: Lock = field(default_factory=Lock)
    known: dict[Hashable, tuple[datetime, A]] = field(default_factory=dict)
    failed: tuple[datetime, Fault | UserError] | None = None


class SharedQuestions(Generic[Q, A]):
    """Asks each cluster one question at a time, from any thread. An answer serves for `serves`, a failure for `SHARED`.

    So a cluster that is silent keeps no other waiting, and costs its callers one limit of a question together.
    """

    def __init__(
        self, ask: Callable[[Q, datetime], A], key: Callable[[Q], Hashable], serves: timedelta
    ) -> None:
        """`key`: what makes two questions to a cluster the same."""
        self._ask, self._key, self._serves = ask, key, serves
        self._lock = Lock()
        self._of: dict[str, _Cluster[A]] = {}

    def answer(self, asked: Q, now: datetime) -> A:
        """Raises `Fault` or `UserError`."""
        with self._lock:
            cluster = self._of.setdefault(asked.cluster, _Cluster(asked.source))
        with cluster.lock:
            return self._of_cluster(cluster, asked, now)

    def _of_cluster(self, cluster: _Cluster[A], asked: Q, now: datetime) -> A:
        if asked.source != cluster.source:
            cluster.source, cluster.known, cluster.failed = asked.source, {}, None
        if cluster.failed is not None and abs(now - cluster.failed[0]) < SHARED:
            raise cluster.failed[1].with_traceback(None)
        key = self._key(asked)
        known = cluster.known.get(key)
        if known is None or not known[0] <= now < known[0] + self._serves:
            try:
                known = now, self._ask(asked, now)
            except (Fault, UserError) as error:
                cluster.failed = now, error
                raise
            cluster.failed = None
            serving = {k: v for k, v in cluster.known.items() if now < v[0] + self._serves}
            cluster.known = serving | {key: known}
        return known[1]

    def end(self) -> ExitStack:
        """Waits for questions that are under way; none begins until the result is closed."""
        held = ExitStack()
        held.enter_context(self._lock)
        for cluster in self._of.values():
            held.enter_context(cluster.lock)
        return held
