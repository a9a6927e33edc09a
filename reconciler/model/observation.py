"""How a version of an endpoint does, as its cluster's Prometheus shows it, and the question for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from schemas.documents.metrics import Prometheus


@dataclass(frozen=True, slots=True)
class Observation:
    """How a version did during the last interval."""

    requests: float
    error_rate: float | None = None  # share that failed; None: unknown
    first_token_s: float | None = None  # for 95 of 100 requests; None: unknown


@dataclass(frozen=True)
class Asked:
    """Which pods of an endpoint are observed, where, and over how long."""

    endpoint: str  # slice/name
    cluster: str
    source: Prometheus
    namespace: str
    pods: tuple[tuple[str, str], ...]  # version, and what the names of its pods begin with
    window: timedelta  # at most
    since: datetime  # when the present weights began: what was before says nothing of them


@dataclass(frozen=True)
class Load:
    """Which pods' requests are counted, and where."""

    cluster: str
    source: Prometheus
    namespace: str
    pods: str  # what their names begin with


@dataclass(frozen=True)
class Past:
    """Whose requests of the last weeks are counted, and where: a whole endpoint, with versions that are gone."""

    cluster: str
    source: Prometheus
    namespace: str
    endpoint: str  # what the names of its Deployments begin with
    others: tuple[str, ...]  # Deployments of other endpoints there, whose names begin so too


Observed = Mapping[str, Mapping[str, Observation]]
"""By endpoint and version; an endpoint whose source does not answer is absent."""
Watch = Callable[[Sequence[Asked], datetime], Observed]
"""Observes endpoints now. Never raises."""
CountLoad = Callable[[Load, datetime], float | None]
"""Requests that run and wait; None: no pod tells. Raises `Fault` or `UserError`. Called from any thread."""
CountPast = Callable[[Past, datetime], tuple[float | None, ...]]
"""Requests that ran and waited on the mean in each hour of the last two weeks, oldest first; None: no pod told.

Raises `Fault` or `UserError`. Called from any thread."""
