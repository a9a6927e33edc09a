"""Unused nodes: the request's members are notified first, then the nodes are released. Pure.

A request is idle since all of its nodes are, by their agents; a node with an unknown state is not idle. Any use
cancels the release, so the nodes are promised to no other request before. Nothing is written until the
notification is due. Held by tests/cases/reconciler/idle.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.lifecycle.early_end import IDLE
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Context, NodeKey, RequestOutcome
from reconciler.model.status_edits import with_condition, without_condition
from scheduler.lifecycle import Event as Move
from scheduler.lifecycle import advance
from schemas.documents.scheduling import IdleReclaim
from schemas.reading.units import format_duration, format_instant
from schemas.status.gpr_status import Condition, Eviction, GPRStatus, Phase
from schemas.status.node_status import AgentReport

RECLAIMED = "IdleReclaimed"


@dataclass(frozen=True, slots=True)
class Timeout:
    """How long a request may hold its nodes without use, and where that limit comes from, for messages."""

    after: timedelta
    whose: str


def idle_outcome(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    """Checks whether a running request is used: notified before the timeout, released after it."""
    if status.phase is not Phase.PROVISIONED or (status.eviction is not None and not _is_idle(status)):
        return RequestOutcome(status)
    policy = context.wanted.project.scheduling.idle
    timeout = timeout_of(status, policy)
    since = None if timeout is None else idle_since(status, context.seen.reports)
    if timeout is None or since is None or context.now < since + timeout.after - policy.notice:
        return _kept(key, status, timeout, context)
    soonest, due = context.now + policy.notice, since + timeout.after
    eviction = status.eviction
    if eviction is None or due > eviction.at or max(due, soonest) < eviction.at:
        # The notice period is always given in full, however late it begins.
        return _told(key, status, since, timeout, context)
    return _released(key, status, context) if context.now >= eviction.at else RequestOutcome(status)


def timeout_of(status: GPRStatus, policy: IdleReclaim) -> Timeout | None:
    """The requested timeout, limited by the policy; None: no timeout."""
    own, cap = status.accepted_spec.idle_timeout, policy.max_timeout
    if own is not None and (cap is None or own <= cap):
        return Timeout(own, "its idleTimeout")
    return None if cap is None else Timeout(cap, "the project's idle.maxTimeout")


def idle_since(status: GPRStatus, reports: Mapping[NodeKey, AgentReport]) -> datetime | None:
    """Since when none of its GPUs has been used in this lease; None if one is used, or it is unknown."""
    held = status.assignment
    if held is None or status.start_time is None:
        return None
    said = [reports.get((held.cluster, node)) for node in held.nodes]
    found = [report.idle_since for report in said if report is not None and report.idle_since is not None]
    return max([*found, status.start_time]) if len(found) == len(held.nodes) else None


def told_at(
    status: GPRStatus, policy: IdleReclaim, reports: Mapping[NodeKey, AgentReport]
) -> datetime | None:
    """When the request must be notified that its nodes are unused; None: no need, or done already."""
    timeout = timeout_of(status, policy)
    if timeout is None or status.phase is not Phase.PROVISIONED or status.eviction is not None:
        return None
    since = idle_since(status, reports)
    return None if since is None else since + timeout.after - policy.notice


def _is_idle(status: GPRStatus) -> bool:
    return status.eviction is not None and status.eviction.reason == IDLE


def _kept(key: str, status: GPRStatus, timeout: Timeout | None, context: Context) -> RequestOutcome:
    """It may continue; the earlier notification no longer applies."""
    if not _is_idle(status) and status.idle_since is None:
        return RequestOutcome(status)
    kept = without_condition(status, IDLE).edited(eviction=None, idle_since=None)
    if not _is_idle(status):
        return RequestOutcome(kept)
    if idle_since(status, context.seen.reports) != status.idle_since:
        why = "is used again"
    elif timeout is None:
        why = "may now stay unused without a limit"
    else:
        why = f"may now stay unused for {format_duration(timeout.after)} ({timeout.whose})"
    told = Event(context.now, EventReason.IDLE_OVER, f"{key} {why} and keeps its nodes", key)
    return RequestOutcome(kept, (told,))


def _told(key: str, status: GPRStatus, since: datetime, timeout: Timeout, context: Context) -> RequestOutcome:
    at = max(since + timeout.after, context.now + context.wanted.project.scheduling.idle.notice)
    if status.end_time is None or at >= status.end_time:
        return _kept(key, status, timeout, context)
    text = (
        f"none of its GPUs has been used since {format_instant(since)}; its nodes are released at {format_instant(at)} "
        f"unless they are used before: it may stay unused for {format_duration(timeout.after)} ({timeout.whose})"
    )
    noted = with_condition(status, Condition(type=IDLE, reason=IDLE, message=text, at=context.now))
    warned = noted.edited(eviction=Eviction(reason=IDLE, at=at), idle_since=since)
    return RequestOutcome(warned, (Event(context.now, EventReason.IDLE, f"{key}: {text}", key),))


def _released(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    assert status.end_time is not None
    assert status.idle_since is not None
    text = f"released: none of its GPUs was used since {format_instant(status.idle_since)}"
    ended = without_condition(status, IDLE).edited(
        phase=advance(status.phase, Move.RELEASE),
        end_time=min(status.end_time, context.now),
        reason=RECLAIMED,
        message=text,
        eviction=None,
        idle_since=None,
    )
    return RequestOutcome(ended, (Event(context.now, EventReason.IDLE_RECLAIMED, f"{key} was {text}", key),))
