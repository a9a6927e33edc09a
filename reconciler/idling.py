"""Nodes that are held and not used: people are told, and then the nodes come back. Pure.

A request is idle since all of its nodes are, as their agents say; a node without a report, or whose agent does not
know, is not idle. Use calls everything off, so nobody is promised the nodes before they are released. Held by
tests/cases/reconciler/idle.yaml.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.conditions import with_condition, without_condition
from reconciler.events import Event, Told
from reconciler.facts import Scene, Turn
from reconciler.leaving import IDLE
from scheduler.lifecycle import Event as Move
from scheduler.lifecycle import advance
from schemas.scheduling import IdleReclaim
from schemas.status import Condition, Eviction, GPRStatus, Phase
from schemas.units import format_duration, format_instant

RECLAIMED = "IdleReclaimed"


def idle_turn(key: str, status: GPRStatus, scene: Scene) -> Turn:
    """One look at whether a running request is used: told a notice before the timeout, released when it is over."""
    if status.phase is not Phase.PROVISIONED or (status.eviction is not None and not _is_idle(status)):
        return Turn(status)
    timeout = timeout_of(status, scene.wanted.project.scheduling.idle)
    since = None if timeout is None else idle_since(status, scene)
    if since != status.idle_since:
        status = status.model_copy(update={"idle_since": since})
    if timeout is None or since is None:
        return _used(key, status, scene)
    warned = since + timeout - scene.wanted.project.scheduling.idle.notice
    if scene.now < warned:
        return _used(key, status, scene)
    if status.eviction is None:
        return _told(key, status, (since, timeout), scene)
    return _released(key, status, scene) if scene.now >= status.eviction.at else Turn(status)


def timeout_of(status: GPRStatus, policy: IdleReclaim) -> timedelta | None:
    """How long it may hold its nodes without use: what it asks for, within the policy's cap; None: for ever."""
    given = [t for t in (status.accepted_spec.idle_timeout, policy.max_timeout) if t is not None]
    return min(given, default=None)


def idle_since(status: GPRStatus, scene: Scene) -> datetime | None:
    """Since when none of its GPUs is used, in this lease; None when one is, or nobody knows."""
    held = status.assignment
    if held is None or status.start_time is None:
        return None
    reports = [scene.seen.reports.get((held.cluster, node)) for node in held.nodes]
    found = [report.idle_since for report in reports if report is not None and report.idle_since is not None]
    return max([*found, status.start_time]) if len(found) == len(held.nodes) else None


def _is_idle(status: GPRStatus) -> bool:
    return status.eviction is not None and status.eviction.reason == IDLE


def _used(key: str, status: GPRStatus, scene: Scene) -> Turn:
    if not _is_idle(status):
        return Turn(status)
    kept = without_condition(status, IDLE).model_copy(update={"eviction": None})
    told = Event(scene.now, Told.IDLE_OVER, f"{key} is used again and keeps its nodes", key)
    return Turn(kept, (told,))


def _told(key: str, status: GPRStatus, idle: tuple[datetime, timedelta], scene: Scene) -> Turn:
    """Its people have the whole notice, however late the idleness was seen."""
    since, timeout = idle
    at = max(since + timeout, scene.now + scene.wanted.project.scheduling.idle.notice)
    if status.end_time is None or at >= status.end_time:
        return Turn(status)
    text = (
        f"none of its GPUs is used since {format_instant(since)}; its nodes are released at {format_instant(at)}, "
        f"after {format_duration(timeout)} without use, unless they are used before"
    )
    noted = with_condition(status, Condition(type=IDLE, reason=IDLE, message=text, at=scene.now))
    warned = noted.model_copy(update={"eviction": Eviction(reason=IDLE, at=at)})
    return Turn(warned, (Event(scene.now, Told.IDLE, f"{key}: {text}", key),))


def _released(key: str, status: GPRStatus, scene: Scene) -> Turn:
    assert status.end_time is not None
    assert status.idle_since is not None
    text = f"released: none of its GPUs was used since {format_instant(status.idle_since)}"
    ended = without_condition(status, IDLE).model_copy(
        update={
            "phase": advance(status.phase, Move.RELEASE),
            "end_time": min(status.end_time, scene.now),
            "reason": RECLAIMED,
            "message": text,
            "eviction": None,
            "idle_since": None,
        }
    )
    return Turn(ended, (Event(scene.now, Told.IDLE_RECLAIMED, f"{key} was {text}", key),))
