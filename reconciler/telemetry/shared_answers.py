"""Answers of one cluster's source, shared between callers for a while.

Newest values are kept by node, so that callers with different nodes share too; ranges by what makes two questions the
same. A question that is under way is not asked again. At most `AT_ONCE` are under way: a source that hangs costs a few
threads and no more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from typing import Generic, Protocol, TypeVar

from reconciler.telemetry.telemetry_port import (
    SHARED,
    Latest,
    Metric,
    NodeKey,
    Query,
    Ranges,
    Silence,
    Telemetry,
)
from schemas.errors import EgsError

log = logging.getLogger(__name__)

T = TypeVar("T", Latest, Ranges)

AT_ONCE = 4
MOST_RANGES = 64
"""Ranges that are kept; one of a large cluster has some megabytes."""

RangeKey = tuple[frozenset[NodeKey], tuple[Metric, ...], timedelta, tuple[datetime, ...]]


class Source(Telemetry, Protocol):
    """Telemetry of one cluster, which holds something."""

    def close(self) -> None:
        """No question follows."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """An answer that is there, or will be."""

    asked_at: datetime
    future: Future[T]

    def serves(self, now: datetime) -> bool:
        return timedelta(0) <= now - self.asked_at < SHARED


class SharedAnswers:
    """Thread-safe; returns at once."""

    def __init__(self, cluster: str, source: Source) -> None:
        self._cluster, self._source = cluster, source
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix=f"telemetry-{cluster}")
        self._lock = Lock()
        self._under_way = 0
        self._latest: dict[NodeKey, Answer[Latest]] = {}
        self._ranges: dict[RangeKey, Answer[Ranges]] = {}

    def latest(self, nodes: Collection[NodeKey], now: datetime) -> dict[NodeKey, Answer[Latest]]:
        """The answer that has each node; nodes without one could not be asked about."""
        with self._lock:
            self._latest = {node: answer for node, answer in self._latest.items() if answer.serves(now)}
            missing = frozenset(node for node in nodes if node not in self._latest)
            if missing:
                answer = self._asked(partial(self._source.latest, missing, now), _silent_latest, now)
                self._latest |= {} if answer is None else dict.fromkeys(missing, answer)
            return {node: self._latest[node] for node in nodes if node in self._latest}

    def range(self, query: Query, now: datetime) -> Answer[Ranges] | None:
        """None: it could not be asked."""
        key = (query.nodes, query.metrics, query.step, query.instants())
        with self._lock:
            known = self._ranges.pop(key, None)
            if known is None or not known.serves(now):
                known = self._asked(partial(self._source.range, query, now), _silent_range, now)
            if known is not None:
                self._ranges[key] = known
            for oldest in list(self._ranges)[:-MOST_RANGES]:
                del self._ranges[oldest]
            return known

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._source.close()

    def _asked(self, ask: Callable[[], T], silent: Callable[[Silence], T], now: datetime) -> Answer[T] | None:
        if self._under_way >= AT_ONCE:
            return None
        self._under_way += 1
        return Answer(now, self._pool.submit(self._safely, ask, silent))

    def _safely(self, ask: Callable[[], T], silent: Callable[[Silence], T]) -> T:
        try:
            return ask()
        except EgsError as error:
            return silent(Silence(self._cluster, error.reason, str(error)))
        except Exception:
            log.exception("telemetry broke cluster=%s; please report it", self._cluster)
            text = f"telemetry of cluster {self._cluster} broke; the portal's log says why"
            return silent(Silence(self._cluster, "MetricsUnreadable", text))
        finally:
            with self._lock:
                self._under_way -= 1


def _silent_latest(silence: Silence) -> Latest:
    return Latest(silences=(silence,))


def _silent_range(silence: Silence) -> Ranges:
    return Ranges(silences=(silence,))
