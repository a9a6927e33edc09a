"""A controller's Prometheus metrics: one registry, updated by the loops, read by `/metrics`.

Counters are updated when cycles end; gauges are computed from the last cycle when requested, so that a
hanging loop still shows its overdue ends. A follower shows no gauges of the fleet: the leader does. Names end
in their unit; docs/reference/metrics.md lists every name.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from reconciler.clock import Clock
from reconciler.cycle import Cycle
from reconciler.model.events import EventReason
from reconciler.model.facts import Facts, Wanted
from reconciler.processes import gauges
from reconciler.processes.wake import Attempt
from reconciler.telling.courier import Answer
from schemas.status.gpr_status import Cause

CYCLE_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
DELAY_S = (0, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600)

FLEET = {
    "egs_requests": ("Requests by slice and phase.", ("slice", "phase")),
    "egs_leases": ("Requests that hold nodes.", ("cluster", "pool")),
    "egs_leased_nodes": ("Nodes that requests hold.", ("cluster", "pool")),
    "egs_nodes": ("Nodes by state for the planner.", ("cluster", "pool", "state")),
    "egs_cluster_reachable": ("1 while the cluster answers.", ("cluster",)),
    "egs_starts_overdue": ("Committed starts that passed by more than a minute without a hand-over.", ()),
    "egs_ends_overdue": (
        "Leases that have nodes more than a minute after their strict end and drain.",
        ("cluster",),
    ),
    "egs_notifications_waiting": ("Events waiting to be sent, by owner kind of their route.", ("scope",)),
}
"""Gauges of the leader's committed facts: their help texts, and their labels besides `repo`."""


class Metrics:
    """The metrics of one process. `attempted` may be called from any thread."""

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self._fleet = _Fleet(clock)
        self._clock = clock
        counter, gauge = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self._duration = histogram(
            "egs_cycle_duration_seconds", "Time of one cycle.", ["repo"], buckets=CYCLE_S
        )
        self._failures = counter("egs_cycle_failures", "Cycles that failed, by reason.", ["repo", "reason"])
        self._succeeded = gauge(
            "egs_last_successful_cycle_timestamp_seconds",
            "Time of the last successful cycle with an answer of the repository; initially the process start.",
            ["repo"],
        )
        self._leading = gauge("egs_leading", "1 while this process leads.", ["repo"])
        self._reachable = gauge("egs_repository_reachable", "1 while the repository answers.", ["repo"])
        self._clocks = gauge(
            "egs_clock_offset_seconds",
            "Another clock minus ours; for a commit or a hand-over, how far ours is behind.",
            ["repo", "clock"],
        )
        self._others: dict[str, set[str]] = {}  # clock names, by repository
        self._pushes = counter("egs_pushes", "Commits of the status branch, by outcome.", ["repo", "outcome"])
        self._actions = counter(
            "egs_actions", "Cluster writes by kind and answer.", ["repo", "action", "answer"]
        )
        self._slips = counter("egs_slips", "Promises that moved later, by cause.", ["repo", "cause"])
        self._events = counter("egs_events", "Events reported, by reason.", ["repo", "reason"])
        self._delay = histogram(
            "egs_start_delay_seconds",
            "Time from a committed start to the hand-over of all its nodes.",
            ["repo"],
            buckets=DELAY_S,
        )
        self._carried = counter(
            "egs_notifications",
            "Messages tried, by owner kind of the route and answer.",
            ["repo", "scope", "answer"],
        )
        self._hooks = counter("egs_hooks", "Webhooks received, by answer.", ["answer"])
        self.registry.register(self._fleet)

    def expect(self, repo: str) -> None:
        """A new repository: its metrics exist from the start, so that rates see the first change."""
        self._leading.labels(repo).set(0)
        self._reachable.labels(repo).set(0)
        self._succeeded.labels(repo).set(self._clock.now().timestamp())
        self._duration.labels(repo)
        self._delay.labels(repo)
        for outcome in ("Committed", "Conflict", "Refused", "Unknown", "Failed"):
            self._pushes.labels(repo, outcome)
        for cause in Cause:
            self._slips.labels(repo, str(cause))
        for told in EventReason:
            self._events.labels(repo, str(told))
        for scope in gauges.SCOPES:
            for answer in Answer:
                self._carried.labels(repo, scope, str(answer))

    def attempted(self, repo: str, attempt: Attempt) -> None:
        self._duration.labels(repo).observe(attempt.took_s)
        cycle = attempt.cycle
        if cycle is None:
            self._failures.labels(repo, attempt.reason).inc()
            return
        self._leading.labels(repo).set(cycle.leading)
        self._tell_clocks(repo, cycle)
        self._reachable.labels(repo).set(cycle.reachable)
        if cycle.reachable:
            self._succeeded.labels(repo).set(self._clock.now().timestamp())
        if cycle.pushed not in {"", "Unchanged"}:
            self._pushes.labels(repo, cycle.pushed).inc()
        for (do, answer), count in cycle.acted.items():
            self._actions.labels(repo, do.name.lower(), answer).inc(count)
        for event in cycle.events:
            self._events.labels(repo, str(event.reason)).inc()
        for (scope, answer), count in cycle.carried.items():
            self._carried.labels(repo, scope, answer).inc(count)
        self._commit(repo, cycle)

    def _tell_clocks(self, repo: str, cycle: Cycle) -> None:
        before, self._others[repo] = self._others.get(repo, set()), set(cycle.clocks)
        for gone in before - self._others[repo]:
            self._clocks.remove(repo, gone)
        for clock, offset_s in cycle.clocks.items():
            self._clocks.labels(repo, clock).set(offset_s)

    def _commit(self, repo: str, cycle: Cycle) -> None:
        before = self._fleet.replace(repo, cycle)
        if cycle.facts is None:
            return
        for cause, count in gauges.slipped(before, cycle.facts).items():
            self._slips.labels(repo, str(cause)).inc(count)
        for delay_s in gauges.start_delays_s(cycle.facts, cycle.events):
            self._delay.labels(repo).observe(delay_s)

    def hooked(self, answer: str) -> None:
        """Records a webhook's answer: Accepted, or why not."""
        self._hooks.labels(answer).inc()

    def page(self, accept: str) -> tuple[bytes, str]:
        """All metrics in the format that `Accept` asks for, and the content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type


class _Fleet(Collector):
    """Gauges of the repositories that this process leads, computed on request."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._last: dict[str, tuple[Facts, Wanted]] = {}

    def replace(self, repo: str, cycle: Cycle) -> Facts | None:
        """Stores a cycle's facts, if it led; returns the previous ones."""
        with self._lock:
            old = self._last.pop(repo, None)
            if cycle.facts is not None and cycle.wanted is not None:
                self._last[repo] = cycle.facts, cycle.wanted
        return None if old is None else old[0]

    def describe(self) -> Iterator[Metric]:
        for name, (text, labels) in FLEET.items():
            yield GaugeMetricFamily(name, text, labels=("repo", *labels))

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            last = dict(self._last)
        now = self._clock.now()
        found = {repo: _series(facts, wanted, now) for repo, (facts, wanted) in last.items()}
        for family in self.describe():
            assert isinstance(family, GaugeMetricFamily)
            for repo, series in found.items():
                for labels, value in sorted(series[family.name].items()):
                    family.add_metric((repo, *labels), value)
            yield family


def _series(facts: Facts, wanted: Wanted, now: datetime) -> dict[str, gauges.Series]:
    return {
        "egs_requests": gauges.requests(facts),
        "egs_leases": gauges.leases(facts, wanted),
        "egs_leased_nodes": gauges.leased_nodes(facts, wanted),
        "egs_nodes": gauges.nodes(facts, wanted),
        "egs_cluster_reachable": gauges.clusters_reachable(facts, wanted),
        "egs_starts_overdue": gauges.starts_overdue(facts, now),
        "egs_ends_overdue": gauges.ends_overdue(facts, wanted, now),
        "egs_notifications_waiting": gauges.entries_waiting(facts),
    }
