"""How served models do, from a cluster's Prometheus: errors, time to the first token, and requests at hand.

The metrics are those of vLLM's server. A source that does not answer stops nothing: nothing is known then.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

from reconciler.clock import monotonic_s
from reconciler.model.observation import Asked, Load, Observation, Observed
from reconciler.telemetry.prometheus_queries import quoted
from reconciler.telemetry.served_sources import OpenSources, SharedQuestions
from reconciler.telemetry.telemetry_port import SHARED
from schemas.documents.metrics import Prometheus
from schemas.errors import Fault, UserError

log = logging.getLogger(__name__)

QUANTILE = 0.95
LOOK_S = 10.0
"""A cycle waits no longer for observations, beyond one question's own limit."""
NEVER = datetime.min.replace(tzinfo=UTC)


class Vectors(Protocol):
    """Answers one question with the rows of a vector. Raises `Fault` or `UserError`."""

    def vector(self, query: str, now: datetime, /) -> list[dict[str, Any]]: ...


Open = Callable[[str, Prometheus], Vectors]


def observation(
    source: Vectors, matchers: Mapping[str, str], asked: Asked, pods: str, now: datetime
) -> Observation:
    """How the pods whose names begin so did in the window before `now`, but under the present weights only.

    Three questions; none in the first second of the weights.
    """
    lasted = min(asked.window, now - asked.since)
    if lasted < timedelta(seconds=1):
        return Observation(0.0)
    window, of_pods = f"[{_s(lasted)}]", _selector(matchers, asked.namespace, pods)
    calls = f'http_requests_total{{{of_pods}, handler=~"/v1/.*"'
    requests = _one(source.vector(f"sum(increase({calls}}}{window}))", now))
    if not requests:
        return Observation(0.0)
    failed = _one(source.vector(f'sum(increase({calls}, status=~"5.*"}}{window}))', now)) or 0.0
    buckets = f"vllm:time_to_first_token_seconds_bucket{{{of_pods}}}{window}"
    slow = _one(source.vector(f"histogram_quantile({QUANTILE}, sum by (le) (rate({buckets})))", now))
    return Observation(requests, min(1.0, failed / requests), slow)


def load(
    source: Vectors, matchers: Mapping[str, str], namespace: str, pods: str, now: datetime
) -> float | None:
    """Requests that run and wait in these pods now; None: no pod tells."""
    of_pods = _selector(matchers, namespace, pods)
    metrics = '__name__=~"vllm:num_requests_(running|waiting)"'
    return _one(source.vector(f"sum({{{metrics}, {of_pods}}})", now))


class ModelLoads:
    """`CountLoad` of one process, shared by its callers. `files`: credentials of Prometheus; None: there are none."""

    def __init__(self, files: Path | None = None, open_: Open | None = None) -> None:
        """`open_` gives the source of a cluster's metrics; None: its Prometheus."""
        self._opened = OpenSources(files)
        self._open: Open = open_ or self._opened.source
        self._shared = SharedQuestions(self._asked, lambda asked: (asked.namespace, asked.pods), SHARED)

    def __call__(self, asked: Load, now: datetime) -> float | None:
        """Raises `Fault` or `UserError`."""
        return self._shared.answer(asked, now)

    def _asked(self, asked: Load, now: datetime) -> float | None:
        source = self._open(asked.cluster, asked.source)
        return load(source, asked.source.matchers, asked.namespace, asked.pods, now)

    def close(self) -> None:
        with self._shared.end():
            self._opened.close()


class _TimeIsUp(Exception):  # noqa: N818 - not an error: the next look goes on
    pass


@dataclass(frozen=True, slots=True)
class _Limited:
    """A source that is asked nothing from an instant on: `_TimeIsUp`."""

    source: Vectors
    end_s: float
    steady_s: Callable[[], float]

    def vector(self, query: str, now: datetime) -> list[dict[str, Any]]:
        if self.steady_s() >= self.end_s:
            raise _TimeIsUp
        return self.source.vector(query, now)


class ModelWatch:
    """`Watch` of one controller. `files`: credentials of Prometheus; None: there are none."""

    def __init__(
        self,
        files: Path | None = None,
        open_: Open | None = None,
        steady_s: Callable[[], float] = monotonic_s,
    ) -> None:
        """`open_` gives the source of a cluster's metrics; None: its Prometheus."""
        self._open: Open = open_ or OpenSources(files).source
        self._steady_s = steady_s
        self._looked: dict[str, datetime] = {}
        self._known: dict[str, tuple[Asked, datetime, dict[str, Observation]]] = {}
        self._told: dict[str, str] = {}

    def __call__(self, asked: Sequence[Asked], now: datetime) -> Observed:
        """An answer serves for a few seconds; of a cluster that fails nothing more is asked in this look.

        No look begins a question after `LOOK_S`: the cycle waits for it. What was asked longest ago comes first; what
        was cut off begins the next look, unless it had a whole one.
        """
        end_s = self._steady_s() + LOOK_S
        found: dict[str, dict[str, Observation]] = {}
        failed: set[str] = set()
        first: str | None = None
        self._known = {each.endpoint: self._known[each.endpoint] for each in self._still(asked, now)}
        self._looked = {each.endpoint: self._looked.get(each.endpoint, NEVER) for each in asked}
        for each in sorted(asked, key=lambda each: (self._looked[each.endpoint], each.endpoint)):
            if each.endpoint in self._known:
                found[each.endpoint] = self._known[each.endpoint][2]
            elif each.cluster not in failed and self._steady_s() < end_s:
                before, self._looked[each.endpoint] = self._looked[each.endpoint], now
                first = first or each.endpoint
                try:
                    found[each.endpoint] = self._observed(each, end_s, now)
                except _TimeIsUp:
                    if first == each.endpoint:
                        self._tell(each.cluster, f"{each.endpoint} took more than {LOOK_S:g} s")
                    else:
                        self._looked[each.endpoint] = before
                except (Fault, UserError) as error:
                    failed.add(each.cluster)
                    self._tell(each.cluster, str(error))
        return found

    def _still(self, asked: Iterable[Asked], now: datetime) -> list[Asked]:
        kept = []
        for each in asked:
            known = self._known.get(each.endpoint)
            if known is not None and known[0] == each and known[1] <= now < known[1] + SHARED:
                kept.append(each)
        return kept

    def _observed(self, each: Asked, end_s: float, now: datetime) -> dict[str, Observation]:
        """Raises `_TimeIsUp` instead of a question after `end_s`."""
        source = _Limited(self._open(each.cluster, each.source), end_s, self._steady_s)
        matchers = each.source.matchers
        found = {name: observation(source, matchers, each, pods, now) for name, pods in each.pods}
        self._known[each.endpoint] = (each, now, found)
        self._told.pop(each.cluster, None)
        return found

    def _tell(self, cluster: str, message: str) -> None:
        if self._told.get(cluster) != message:
            log.warning("endpoints not observed cluster=%s message=%s", cluster, message)
        self._told[cluster] = message


def _selector(matchers: Mapping[str, str], namespace: str, pods: str) -> str:
    """The pods that a Deployment of this name makes, and those of no other."""
    pairs = [f"{label}={quoted(value)}" for label, value in sorted(matchers.items())]
    name = quoted(f"{re.escape(pods)}-[a-z0-9]+-[a-z0-9]+")
    return ", ".join((*pairs, f"namespace={quoted(namespace)}", f"pod=~{name}"))


def _one(rows: list[dict[str, Any]]) -> float | None:
    """The value of a vector with one row; None: it has none, or it is no number."""
    try:
        value = float(rows[0]["value"][1])
    except (LookupError, TypeError, ValueError):
        return None
    return value if isfinite(value) else None


def _s(duration: timedelta) -> str:
    return f"{int(duration.total_seconds())}s"
