"""Carries actions to the clusters and collects their answers. A failing cluster never blocks another.

Clusters with an API server of their own are called in parallel, one thread each; answers are merged in one
thread. After a slow failure a cluster is not called for a while, as if unreachable.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from reconciler.acting.actions import Action, Do
from reconciler.clock import monotonic_s
from reconciler.model import backoff
from reconciler.model.cluster_port import (
    Answer,
    Busy,
    CheckResult,
    ClusterDriver,
    ClusterView,
    Difference,
    Done,
    Note,
    Refused,
    SliceTerms,
    Stamp,
    Topic,
)
from schemas.documents.cluster import ClusterSpec
from schemas.errors import EgsError, Fault

log = logging.getLogger(__name__)

T = TypeVar("T")

STALE = "ClusterStale"
"""Why a cluster that answers counts as unreachable: its data is old."""
SLOW_S = 2.0
"""A failed call that took longer than this was a vain wait; the next one soon would be too."""
MOST_AT_ONCE = 16
"""Clusters called in parallel."""
IN_PROCESS = ""
"""Stands for all clusters without a server of their own, called one after the other by the caller's thread."""
CheckKey = tuple[str, str, Topic]


@dataclass(slots=True)
class Answers:
    done: list[Action] = field(default_factory=list)
    begun: list[Action] = field(default_factory=list)  # done or running
    refused: list[tuple[Action, Refused]] = field(default_factory=list)
    checks: dict[CheckKey, Busy | tuple[CheckResult, ...]] = field(default_factory=dict)
    until: list[datetime] = field(default_factory=list)
    unreachable: set[str] = field(default_factory=set)
    counts: Counter[tuple[Do, str]] = field(default_factory=Counter)  # by kind and answer, for metrics


@dataclass(frozen=True, slots=True)
class Failed:
    error: EgsError | OSError
    took_s: float

    @property
    def in_vain(self) -> bool:
        """There was no answer after a long wait."""
        unanswered = isinstance(self.error, OSError) or self.error.reason == "ClusterUnreachable"
        return unanswered and self.took_s > SLOW_S


@dataclass(frozen=True, slots=True)
class Rest:
    until: datetime
    length: timedelta


class ClusterFailures:
    """Failing clusters: each change is logged once, and a hanging cluster pauses. One owner."""

    def __init__(self) -> None:
        self._reasons: dict[tuple[str, str], str] = {}
        self._said: dict[tuple[str, str], str] = {}
        self._rests: dict[tuple[str, str], Rest] = {}

    def rests(self, cluster: str, now: datetime) -> bool:
        """True while that cluster is not called, because of a vain wait."""
        return any(rest.until > now for (of, _), rest in self._rests.items() if of == cluster)

    def failed(self, cluster: str, doing: str, failed: Failed, now: datetime) -> None:
        """That cluster failed at this; `now` is when the round began."""
        self.met(cluster, doing, failed.error)
        if not failed.in_vain:
            return
        before, took = self._rests.get((cluster, doing)), timedelta(seconds=failed.took_s)
        length = backoff.CLUSTERS.longer(None if before is None else before.length)
        # At least half of the time belongs to the others.
        length = min(max(length, took), backoff.CLUSTERS.longest)
        self._rests[(cluster, doing)] = Rest(now + took + length, length)

    def met(self, cluster: str, doing: str, error: Exception) -> None:
        reason = error.reason if isinstance(error, EgsError) else type(error).__name__
        if self._reasons.get((cluster, doing)) != reason:
            log.warning(
                "cluster failed cluster=%s doing=%s reason=%s message=%s; retrying, the cluster's admin should check",
                cluster,
                doing,
                reason,
                error,
            )
        self._reasons[(cluster, doing)] = reason
        self._said[(cluster, doing)] = str(error) if isinstance(error, EgsError) else reason

    def silences(self) -> dict[str, str]:
        return {cluster: said for (cluster, doing), said in self._said.items() if doing == "observe"}

    def over(self, cluster: str, doing: str) -> None:
        self._rests.pop((cluster, doing), None)
        self._said.pop((cluster, doing), None)
        if self._reasons.pop((cluster, doing), None) is not None:
            log.info("cluster answers again cluster=%s doing=%s", cluster, doing)


def observe(
    drivers: Mapping[str, ClusterDriver],
    failures: ClusterFailures,
    now: datetime,
    specs: Mapping[str, ClusterSpec],
) -> dict[str, ClusterView]:
    """The view of every cluster that answers; data older than its manifest allows counts as no answer."""
    calls = {name: partial(_fresh, name, drivers[name], specs.get(name), now) for name in sorted(drivers)}
    return dict(_succeeded("observe", calls, drivers, failures, now))


def _fresh(name: str, driver: ClusterDriver, spec: ClusterSpec | None, now: datetime) -> ClusterView:
    view = driver.observe(now)
    if spec is not None and now - view.at > spec.stale:
        raise Fault(f"the last report of cluster {name} is of {view.at:%Y-%m-%dT%H:%M:%SZ}", STALE)
    return view


def compare(
    drivers: Mapping[str, ClusterDriver],
    terms: Mapping[str, tuple[SliceTerms, ...]],
    failures: ClusterFailures,
    now: datetime,
) -> dict[str, tuple[Difference, ...]]:
    """How these slices differ from their terms, by cluster; a cluster that cannot tell is left out."""
    calls = {
        name: partial(drivers[name].differences, slices, now)
        for name, slices in sorted(terms.items())
        if name in drivers
    }
    return dict(_succeeded("compare", calls, drivers, failures, now))


def announce(
    drivers: Mapping[str, ClusterDriver],
    notes: Mapping[str, tuple[Note, ...]],
    failures: ClusterFailures,
    now: datetime,
) -> frozenset[str]:
    """Writes these notes into their clusters; returns the clusters that accepted them."""
    calls = {
        name: partial(drivers[name].announce, news, now)
        for name, news in sorted(notes.items())
        if news and name in drivers
    }
    return frozenset(name for name, _ in _succeeded("announce", calls, drivers, failures, now))


def apply(
    actions: Iterable[Action],
    drivers: Mapping[str, ClusterDriver],
    failures: ClusterFailures,
    stamp: Stamp,
    now: datetime,
) -> Answers:
    """Carries out every action once; after a failure, a cluster gets no more actions in this round."""
    turns: dict[str, list[tuple[int, Action]]] = {}
    for turn, action in enumerate(actions):
        if action.cluster in drivers and not _left_alone(action.cluster, drivers, failures, now):
            key = action.cluster if _is_remote(drivers[action.cluster]) else IN_PROCESS
            turns.setdefault(key, []).append((turn, action))
    calls = {key: partial(_in_turn, mine, drivers, stamp, now) for key, mine in turns.items()}
    carried = [found for mine in _side_by_side(calls, calls.keys() - {IN_PROCESS}).values() for found in mine]
    answers, answered = Answers(), set[str]()
    for _, action, answer in sorted(carried, key=lambda found: found[0]):
        if isinstance(answer, Failed):
            failures.failed(action.cluster, "apply", answer, now)
            answers.unreachable.add(action.cluster)
            answers.counts[action.do, "Failed"] += 1
            continue
        answered.add(action.cluster)
        answers.counts[action.do, "Done" if isinstance(answer, tuple) else type(answer).__name__] += 1
        _note(action, answer, answers)
    for cluster in sorted(answered - answers.unreachable):
        failures.over(cluster, "apply")
    return answers


def _in_turn(
    turns: Iterable[tuple[int, Action]], drivers: Mapping[str, ClusterDriver], stamp: Stamp, now: datetime
) -> list[tuple[int, Action, Answer | tuple[CheckResult, ...] | Failed]]:
    """These actions one after the other, skipping clusters that failed before."""
    found: list[tuple[int, Action, Answer | tuple[CheckResult, ...] | Failed]] = []
    failed = set[str]()
    for turn, action in turns:
        if action.cluster in failed:
            continue
        answer = _tried(partial(_carry_out, action, drivers[action.cluster], stamp, now))
        if isinstance(answer, Failed):
            failed.add(action.cluster)
        found.append((turn, action, answer))
    return found


def _succeeded(
    doing: str,
    calls: Mapping[str, Callable[[], T]],
    drivers: Mapping[str, ClusterDriver],
    failures: ClusterFailures,
    now: datetime,
) -> Iterator[tuple[str, T]]:
    """The clusters' answers, in the order of `calls`; failed and pausing clusters are missing."""
    tries: dict[str, Callable[[], T | Failed]] = {
        name: partial(_tried, call)
        for name, call in calls.items()
        if not _left_alone(name, drivers, failures, now)
    }
    remote = {name for name in tries if _is_remote(drivers[name])}
    for name, found in _side_by_side(tries, remote).items():
        if isinstance(found, Failed):
            failures.failed(name, doing, found, now)
        else:
            failures.over(name, doing)
            yield name, found


def _left_alone(
    cluster: str, drivers: Mapping[str, ClusterDriver], failures: ClusterFailures, now: datetime
) -> bool:
    """A cluster pauses only if there are others that it would delay."""
    return len(drivers) > 1 and failures.rests(cluster, now)


def _is_remote(driver: ClusterDriver) -> bool:
    """True if it has a server of its own. Other drivers are fast, and share a store that needs one thread."""
    return bool(getattr(driver, "remote", False))


def _side_by_side(calls: Mapping[str, Callable[[], T]], remote: Collection[str]) -> dict[str, T]:
    """The result of each call, in the order of `calls`; several remote calls run in threads."""
    if len(remote) < 2:
        return {name: call() for name, call in calls.items()}
    with ThreadPoolExecutor(min(len(remote), MOST_AT_ONCE), "cluster") as pool:
        begun = {name: pool.submit(calls[name]) for name in calls if name in remote}
        here = {name: call() for name, call in calls.items() if name not in begun}
        return {name: begun[name].result() if name in begun else here[name] for name in calls}


def _tried(call: Callable[[], T]) -> T | Failed:
    begun_s = monotonic_s()
    try:
        return call()
    except (EgsError, OSError) as error:
        return Failed(error, monotonic_s() - begun_s)


def _note(action: Action, answer: Answer | tuple[CheckResult, ...], answers: Answers) -> None:
    if not isinstance(answer, Refused):
        answers.begun.append(action)
    match answer:
        case Busy():
            answers.until.append(answer.until)
            if (key := _check_key(action)) is not None:
                answers.checks[key] = answer
        case Refused():
            answers.refused.append((action, answer))
        case Done():
            answers.done.append(action)
        case _:
            key = _check_key(action)
            assert key is not None, "only checks and remedies have results"
            answers.checks[key] = answer
            answers.done.append(action)


def _check_key(action: Action) -> CheckKey | None:
    """Under what the action's results are kept; None: it has none."""
    if action.do is Do.REMEDIATE and action.order is not None:
        return action.order.uid, action.node, "remedy"
    if action.do is Do.CHECK and action.lease is not None:
        return action.lease.uid, action.node, action.stage
    return None


def _carry_out(
    action: Action, driver: ClusterDriver, stamp: Stamp, now: datetime
) -> Answer | tuple[CheckResult, ...]:
    lease = action.lease
    match action.do:
        case Do.REMEDIATE:
            assert action.order is not None, "an order says what to do"
            return driver.remediate(action.node, action.order, stamp, now)
        case Do.ENSURE_FLEET:
            return driver.ensure_fleet(stamp, now)
        case Do.ENSURE_SLICE:
            assert action.terms is not None, "a slice is ensured on its terms"
            return driver.ensure_slice(action.terms, stamp, now)
        case Do.REMOVE_SLICE:
            return driver.remove_slice(action.slice, stamp, now)
        case Do.ISOLATE:
            return driver.isolate(action.node, action.text, stamp, now)
        case Do.RESTORE:
            return driver.restore(action.node, stamp, now)
        case Do.DRAINED:
            return driver.drained(action.node, stamp, now)
        case Do.RUN_WORKLOAD | Do.END_WORKLOAD:
            return _on_workload(action, driver, stamp, now)
        case Do.SCALE:
            return driver.scale(action.node, action.count, action.leaving, stamp, now)
    assert lease is not None
    calls: dict[Do, Callable[[], Answer | tuple[CheckResult, ...]]] = {
        Do.CHECK: lambda: driver.check(action.node, action.stage, lease, stamp, now),
        Do.ADD: lambda: driver.add(action.node, lease, stamp, now),
        Do.SHOW_END: lambda: driver.show_end(lease, stamp, now),
        Do.EVICT: lambda: driver.evict(action.node, lease.uid, lease.end, stamp, now),
        Do.REMOVE: lambda: driver.remove(action.node, lease.uid, stamp, now),
    }
    return calls[action.do]()


def _on_workload(action: Action, driver: ClusterDriver, stamp: Stamp, now: datetime) -> Answer:
    if action.do is Do.END_WORKLOAD:
        return driver.end_workload(action.workload, stamp, now)
    assert action.objects is not None, "a workload is run on its terms"
    return driver.run_workload(action.objects, stamp, now)
