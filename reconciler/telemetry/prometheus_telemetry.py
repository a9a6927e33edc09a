"""Values of a cluster's GPUs from a Prometheus: two questions for the newest ones, one for a range."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from reconciler.telemetry import prometheus_queries as queries
from reconciler.telemetry.prometheus_answers import result_of, samples_from, series_from
from reconciler.telemetry.telemetry_port import (
    DEADLINE,
    GpuSample,
    Latest,
    NodeKey,
    Query,
    Ranges,
    Silence,
)
from schemas.documents.metrics import Prometheus
from schemas.errors import Fault, UserError

MOST_BYTES = 64 << 20
"""A longer answer is refused: 2,048 GPUs with every metric have some 8 MB."""

NODES_AT_ONCE, AT_ONCE = 64, 4
"""Nodes in one question, and questions at a time: Prometheus answers each on one core."""


class PrometheusTelemetry:
    """`Telemetry` of one cluster. `files`: the operator's folder of credentials; None: there is none."""

    def __init__(self, cluster: str, source: Prometheus, files: Path | None) -> None:
        """Raises `UserError` (`MetricsAuthMissing`) if a file that the manifest names is missing."""
        self._cluster, self._source, self._files = cluster, source, files
        self._http = httpx.Client(
            base_url=source.url.rstrip("/") + "/api/v1/",
            verify=self._certificates(),
            timeout=DEADLINE.total_seconds(),
            headers={"User-Agent": "egs"},
        )
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix=f"prometheus-{cluster}")
        self._headers()  # a missing file is told now

    def latest(self, nodes: Collection[NodeKey], now: datetime) -> Latest:
        own = sorted(self._own(nodes))
        parts = [own[first : first + NODES_AT_ONCE] for first in range(0, len(own), NODES_AT_ONCE)]
        try:
            found = list(self._pool.map(partial(self._latest_of, now), parts))
        except (Fault, UserError) as error:
            return Latest(silences=(self._silence(error),))
        return Latest(tuple(sample for part in found for sample in part))

    def _latest_of(self, now: datetime, nodes: list[str]) -> tuple[GpuSample, ...]:
        at, own = {"time": _text(now)}, frozenset(nodes)
        values = self._asked("query", queries.latest(self._source.matchers, own), at, "vector")
        seen = self._asked("query", queries.seen(self._source.matchers, own), at, "vector")
        return samples_from(values, seen, self._cluster, own)

    def range(self, query: Query, now: datetime) -> Ranges:
        """As far back as it keeps samples."""
        own, instants = self._own(query.nodes), [at for at in query.instants() if at <= now]
        if not own or not instants:
            return Ranges()
        over = {"start": _text(instants[0]), "end": _text(instants[-1]), "step": _seconds(query.step)}
        asked = queries.over_time(query.metrics, self._source.matchers, own, query.window)
        try:
            rows = self._asked("query_range", asked, over, "matrix")
            return Ranges(series_from(rows, self._cluster, query))
        except (Fault, UserError) as error:
            return Ranges(silences=(self._silence(error),))

    def vector(self, query: str, now: datetime) -> list[dict[str, Any]]:
        """The rows of another question's answer. Raises `Fault` or `UserError`."""
        return self._asked("query", query, {"time": _text(now)}, "vector")

    def matrix(self, query: str, start: datetime, end: datetime, step: timedelta) -> list[dict[str, Any]]:
        """The rows of its answers at each step of that time, both ends included. Raises `Fault` or `UserError`."""
        over = {"start": _text(start), "end": _text(end), "step": _seconds(step)}
        return self._asked("query_range", query, over, "matrix")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._http.close()

    def _own(self, nodes: Collection[NodeKey]) -> frozenset[str]:
        return frozenset(node for cluster, node in nodes if cluster == self._cluster)

    def _asked(self, path: str, query: str, over: dict[str, str], kind: str) -> list[dict[str, Any]]:
        form = {"query": query, "timeout": _seconds(DEADLINE), **over}
        try:
            with self._http.stream("POST", path, data=form, headers=self._headers()) as answer:
                body = _body(answer)
        except httpx.TimeoutException as error:
            raise Fault(f"{self._where} did not answer in time", "MetricsSlow") from error
        except (httpx.HTTPError, ssl.SSLError) as error:
            text = f"{self._where} cannot be reached: {type(error).__name__}"
            raise Fault(text, "MetricsUnreachable") from error
        if not answer.is_success:
            raise Fault(f"{self._where} refused the question: {_why(answer, body)}", "MetricsRefused")
        return result_of(body, kind)

    @property
    def _where(self) -> str:
        return f"the Prometheus of cluster {self._cluster} ({self._http.base_url.host})"

    def _silence(self, error: Fault | UserError) -> Silence:
        return Silence(self._cluster, error.reason, str(error))

    def _headers(self) -> dict[str, str]:
        """The file is read each time: tokens are renewed."""
        auth = self._source.auth
        if auth is None:
            return {}
        secret = self._file(auth.file).strip()
        if auth.kind == "basic":
            return {"Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"}
        return {"Authorization": f"Bearer {secret}"}

    def _certificates(self) -> ssl.SSLContext:
        if self._source.ca is None:
            return ssl.create_default_context()
        try:
            return ssl.create_default_context(cadata=self._file(self._source.ca))
        except ssl.SSLError as error:
            raise self._missing(self._source.ca, "is no certificate in PEM") from error

    def _file(self, name: str) -> str:
        if self._files is None:
            raise self._missing(name, "needs a folder; start this process with --metrics-files DIR")
        try:
            return (self._files / name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise self._missing(name, "is not in the folder for metrics; add it") from error

    def _missing(self, name: str, what: str) -> UserError:
        return UserError(f"clusters/{self._cluster}.yaml: the file {name!r} {what}", "MetricsAuthMissing")


def _body(answer: httpx.Response) -> bytes:
    found = bytearray()
    for chunk in answer.iter_bytes():
        found += chunk
        if len(found) > MOST_BYTES:
            raise Fault(f"the answer is longer than {MOST_BYTES >> 20} MB", "MetricsUnreadable")
    return bytes(found)


def _why(answer: httpx.Response, body: bytes) -> str:
    if answer.status_code in (401, 403):
        return f"{answer.status_code}; look at the file that `auth` names"
    text = body[:300].decode("utf-8", "replace").strip()
    return f"{answer.status_code} {text}"


def _text(at: datetime) -> str:
    return f"{at.timestamp():.3f}"


def _seconds(duration: timedelta) -> str:
    return f"{int(duration.total_seconds())}s"
