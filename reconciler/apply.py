"""Carry actions to the clusters and bring their answers back. A cluster in trouble never holds up another."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.clusters.port import (
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
    Stage,
    Stamp,
)
from reconciler.diff import Action, Do
from schemas.cluster import ClusterSpec
from schemas.errors import EgsError, Fault

log = logging.getLogger(__name__)

STALE = "ClusterStale"
"""Why a cluster that answers counts as out of reach: what it says is old."""
CheckKey = tuple[str, str, Stage]


@dataclass(slots=True)
class Answers:
    """What came of one round of actions."""

    done: list[Action] = field(default_factory=list)
    begun: list[Action] = field(default_factory=list)  # done, or under way
    refused: list[tuple[Action, Refused]] = field(default_factory=list)
    checks: dict[CheckKey, Busy | tuple[CheckResult, ...]] = field(default_factory=dict)
    until: list[datetime] = field(default_factory=list)
    unreachable: set[str] = field(default_factory=set)
    counts: Counter[tuple[Do, str]] = field(default_factory=Counter)  # by kind and answer, for metrics


class Troubles:
    """Which clusters failed at what, so that the log hears of each change once. One owner."""

    def __init__(self) -> None:
        self._reasons: dict[tuple[str, str], str] = {}

    def met(self, cluster: str, doing: str, error: Exception) -> None:
        """That cluster failed at this."""
        reason = error.reason if isinstance(error, EgsError) else type(error).__name__
        if self._reasons.get((cluster, doing)) != reason:
            log.warning(
                "cluster failed cluster=%s doing=%s reason=%s message=%s; tried again, its admin should look",
                cluster,
                doing,
                reason,
                error,
            )
        self._reasons[(cluster, doing)] = reason

    def over(self, cluster: str, doing: str) -> None:
        """That cluster did this without trouble."""
        if self._reasons.pop((cluster, doing), None) is not None:
            log.info("cluster answers again cluster=%s doing=%s", cluster, doing)


def observe(
    drivers: Mapping[str, ClusterDriver],
    troubles: Troubles,
    now: datetime,
    specs: Mapping[str, ClusterSpec],
) -> dict[str, ClusterView]:
    """The view of every cluster that answers; one whose last news are older than its manifest allows does not."""
    views = {}
    for name in sorted(drivers):
        try:
            view = drivers[name].observe(now)
            if (spec := specs.get(name)) is not None and now - view.at > spec.stale:
                raise Fault(f"the last news of cluster {name} are of {view.at:%Y-%m-%dT%H:%M:%SZ}", STALE)
            views[name] = view
        except (EgsError, OSError) as error:
            troubles.met(name, "observe", error)
        else:
            troubles.over(name, "observe")
    return views


def compare(
    drivers: Mapping[str, ClusterDriver],
    terms: Mapping[str, tuple[SliceTerms, ...]],
    troubles: Troubles,
    now: datetime,
) -> dict[str, tuple[Difference, ...]]:
    """What of these slices, by cluster, is not as it should be; a cluster that cannot tell is left out."""
    found = {}
    for name, slices in sorted(terms.items()):
        driver = drivers.get(name)
        if driver is None:
            continue
        try:
            found[name] = driver.differences(slices, now)
        except (EgsError, OSError) as error:
            troubles.met(name, "compare", error)
        else:
            troubles.over(name, "compare")
    return found


def announce(
    drivers: Mapping[str, ClusterDriver],
    notes: Mapping[str, tuple[Note, ...]],
    troubles: Troubles,
    now: datetime,
) -> frozenset[str]:
    """Tell these notes in their clusters; the clusters that took them."""
    told = set()
    for name, news in sorted(notes.items()):
        driver = drivers.get(name)
        if driver is None or not news:
            continue
        try:
            driver.announce(news, now)
        except (EgsError, OSError) as error:
            troubles.met(name, "announce", error)
        else:
            troubles.over(name, "announce")
            told.add(name)
    return frozenset(told)


def apply(
    actions: Iterable[Action],
    drivers: Mapping[str, ClusterDriver],
    troubles: Troubles,
    stamp: Stamp,
    now: datetime,
) -> Answers:
    """Carry out every action once; a cluster that fails is left alone for the rest of the round."""
    answers, answered = Answers(), set[str]()
    for action in actions:
        driver = drivers.get(action.cluster)
        if driver is None or action.cluster in answers.unreachable:
            continue
        try:
            answer = _carry_out(action, driver, stamp, now)
        except (EgsError, OSError) as error:
            troubles.met(action.cluster, "apply", error)
            answers.unreachable.add(action.cluster)
            answers.counts[action.do, "Failed"] += 1
            continue
        answered.add(action.cluster)
        answers.counts[action.do, "Done" if isinstance(answer, tuple) else type(answer).__name__] += 1
        _note(action, answer, answers)
    for cluster in sorted(answered - answers.unreachable):
        troubles.over(cluster, "apply")
    return answers


def _note(action: Action, answer: Answer | tuple[CheckResult, ...], answers: Answers) -> None:
    if not isinstance(answer, Refused):
        answers.begun.append(action)
    match answer:
        case Busy():
            answers.until.append(answer.until)
            if action.do is Do.CHECK and action.lease is not None:
                answers.checks[(action.lease.uid, action.node, action.stage)] = answer
        case Refused():
            answers.refused.append((action, answer))
        case Done():
            answers.done.append(action)
        case _:
            assert action.lease is not None
            answers.checks[(action.lease.uid, action.node, action.stage)] = answer
            answers.done.append(action)


def _carry_out(
    action: Action, driver: ClusterDriver, stamp: Stamp, now: datetime
) -> Answer | tuple[CheckResult, ...]:
    lease = action.lease
    match action.do:
        case Do.ENSURE_FLEET:
            return driver.ensure_fleet(stamp, now)
        case Do.ENSURE_SLICE:
            return driver.ensure_slice(_terms(action), stamp, now)
        case Do.REMOVE_SLICE:
            return driver.remove_slice(action.slice, stamp, now)
        case Do.ISOLATE:
            return driver.isolate(action.node, action.text, stamp, now)
        case Do.RESTORE:
            return driver.restore(action.node, stamp, now)
    assert lease is not None
    calls: dict[Do, Callable[[], Answer | tuple[CheckResult, ...]]] = {
        Do.CHECK: lambda: driver.check(action.node, action.stage, lease, stamp, now),
        Do.ADD: lambda: driver.add(action.node, lease, stamp, now),
        Do.EVICT: lambda: driver.evict(action.node, lease.uid, lease.end, stamp, now),
        Do.REMOVE: lambda: driver.remove(action.node, lease.uid, stamp, now),
    }
    return calls[action.do]()


def _terms(action: Action) -> SliceTerms:
    assert action.terms is not None, "a slice is ensured on its terms"
    return action.terms
