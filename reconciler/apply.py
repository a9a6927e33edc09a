"""Carry actions to the clusters and bring their answers back. A cluster in trouble never holds up another."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.clusters.port import (
    Answer,
    Busy,
    CheckResult,
    ClusterDriver,
    ClusterView,
    Done,
    Refused,
    Stage,
    Stamp,
)
from reconciler.diff import Action, Do
from schemas.errors import Fault

log = logging.getLogger(__name__)

CheckKey = tuple[str, str, Stage]


@dataclass(slots=True)
class Answers:
    """What came of one round of actions."""

    done: list[Action] = field(default_factory=list)
    refused: list[tuple[Action, Refused]] = field(default_factory=list)
    checks: dict[CheckKey, Busy | tuple[CheckResult, ...]] = field(default_factory=dict)
    until: list[datetime] = field(default_factory=list)
    unreachable: set[str] = field(default_factory=set)


def observe(drivers: Mapping[str, ClusterDriver], now: datetime) -> dict[str, ClusterView]:
    """The view of every cluster that answers."""
    views = {}
    for name in sorted(drivers):
        try:
            views[name] = drivers[name].observe(now)
        except Fault as fault:
            log.debug("cluster not observed cluster=%s reason=%s", name, fault.reason)
    return views


def apply(
    actions: Iterable[Action], drivers: Mapping[str, ClusterDriver], stamp: Stamp, now: datetime
) -> Answers:
    """Carry out every action once; a cluster that fails is left alone for the rest of the round."""
    answers = Answers()
    for action in actions:
        driver = drivers.get(action.cluster)
        if driver is None or action.cluster in answers.unreachable:
            continue
        try:
            answer = _carry_out(action, driver, stamp, now)
        except Fault as fault:
            log.warning(
                "action failed cluster=%s action=%s node=%s reason=%s; tried again in the next cycle",
                action.cluster,
                action.do.name,
                action.node,
                fault.reason,
            )
            answers.unreachable.add(action.cluster)
            continue
        _note(action, answer, answers)
    return answers


def _note(action: Action, answer: Answer | tuple[CheckResult, ...], answers: Answers) -> None:
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
        case Do.ENSURE_SLICE:
            return driver.ensure_slice(action.slice, action.namespaces, stamp, now)
        case Do.REMOVE_SLICE:
            return driver.remove_slice(action.slice, stamp, now)
        case Do.ISOLATE:
            return driver.isolate(action.node, action.text, stamp, now)
        case Do.RESTORE:
            return driver.restore(action.node, stamp, now)
    assert lease is not None
    calls: dict[Do, Callable[[], Answer | tuple[CheckResult, ...]]] = {
        Do.CHECK: lambda: driver.check(action.node, action.stage, lease, now),
        Do.ADD: lambda: driver.add(action.node, lease, stamp, now),
        Do.EVICT: lambda: driver.evict(action.node, lease.uid, lease.end, stamp, now),
        Do.REMOVE: lambda: driver.remove(action.node, lease.uid, stamp, now),
    }
    return calls[action.do]()
