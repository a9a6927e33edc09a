"""How much an endpoint served, by hour, from a cluster's Prometheus.

The metrics are those of vLLM's server. Nothing of a question comes from a caller: its names are those of documents
in force.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

from reconciler.model.observation import Past
from reconciler.telemetry.prometheus_queries import quoted
from reconciler.telemetry.served_sources import OpenSources, SharedQuestions
from schemas.documents.metrics import Prometheus

HISTORY = timedelta(days=14)
WINDOW = timedelta(minutes=15)
ASKED_AT_ONCE = timedelta(days=2)
"""A source answers each question within a deadline: two weeks of many pods at once would be too much."""
HOUR = timedelta(hours=1)
SERVES = timedelta(minutes=5)
NAMES = ("vllm:num_requests_running", "vllm:num_requests_waiting")


class Matrices(Protocol):
    """Answers one question over time with the rows of a matrix. Raises `Fault` or `UserError`."""

    def matrix(
        self, query: str, start: datetime, end: datetime, step: timedelta, /
    ) -> list[dict[str, Any]]: ...


Open = Callable[[str, Prometheus], Matrices]


def requests_by_hour(
    source: Matrices, matchers: Mapping[str, str], asked: Past, now: datetime
) -> tuple[float | None, ...]:
    """Requests that ran and waited on the mean in each hour of the two weeks up to `now`; None: no pod told.

    Seven questions.
    """
    query, windows = _query(matchers, asked), HISTORY // WINDOW
    values: dict[int, float] = {}
    begin = now - HISTORY
    while begin < now:
        end = min(now, begin + ASKED_AT_ONCE)
        rows = source.matrix(query, begin + WINDOW, end, WINDOW)
        values |= dict(_windows(rows, now))
        begin = end
    each = HOUR // WINDOW
    hours = [
        [values.get(back) for back in range(top, top - each, -1)] for top in range(windows - 1, 0, -each)
    ]
    return tuple(_mean(hour) for hour in hours)


def _query(matchers: Mapping[str, str], asked: Past) -> str:
    pairs = [f"{label}={quoted(value)}" for label, value in sorted(matchers.items())]
    pods = quoted(f"{re.escape(asked.endpoint)}-[a-z0-9-]+-[a-z0-9]+-[a-z0-9]+")
    pairs += [f"namespace={quoted(asked.namespace)}", f"pod=~{pods}"]
    if asked.others:
        names = "|".join(re.escape(name) for name in asked.others)
        pairs.append(f"pod!~{quoted(f'({names})-[a-z0-9]+-[a-z0-9]+')}")
    window = int(WINDOW.total_seconds())
    # One sum for each name: functions over time drop names, and two series of a pod would then be the same.
    return " + ".join(f"sum(avg_over_time({name}{{{', '.join(pairs)}}}[{window}s]))" for name in NAMES)


def _windows(rows: Iterable[Mapping[str, Any]], now: datetime) -> Iterator[tuple[int, float]]:
    """How many windows before `now` each ends, and its value."""
    for row in rows:
        for pair in row.get("values") or ():
            try:
                at_s, value = float(pair[0]), float(pair[1])
            except (LookupError, TypeError, ValueError):
                continue
            if isfinite(value):
                yield round((now.timestamp() - at_s) / WINDOW.total_seconds()), value


def _mean(values: list[float | None]) -> float | None:
    """A window of which no pod tells served nothing; without any the hour is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) / len(values) if known else None


class PastLoads:
    """`CountPast` of one process, shared by its callers. `files`: credentials of Prometheus; None: there are none."""

    def __init__(self, files: Path | None = None, open_: Open | None = None) -> None:
        """`open_` gives the source of a cluster's metrics; None: its Prometheus."""
        self._opened = OpenSources(files)
        self._open: Open = open_ or self._opened.source
        self._shared = SharedQuestions(
            self._asked, lambda asked: (asked.namespace, asked.endpoint, asked.others), SERVES
        )

    def __call__(self, asked: Past, now: datetime) -> tuple[float | None, ...]:
        """Raises `Fault` or `UserError`."""
        return self._shared.answer(asked, now)

    def _asked(self, asked: Past, now: datetime) -> tuple[float | None, ...]:
        source = self._open(asked.cluster, asked.source)
        return requests_by_hour(source, asked.source.matchers, asked, now)

    def close(self) -> None:
        with self._shared.end():
            self._opened.close()
