"""Leases that end before their strict end, at a committed time; the request queues for its remaining time. Pure.

The time (`status.eviction`) is committed beforehand, by `reconciler.deciding.preemption` or because the
request's own file stops it. After the cleaning the request is queued in its old position, for the whole
minutes that remain. Held by tests/cases/reconciler/preemption.yaml and stop.yaml.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from reconciler.accounts.gpu_hours import returning, served_until
from reconciler.lifecycle.marks import with_marks
from reconciler.lifecycle.provisioning import start_seen
from reconciler.lifecycle.remaining_pods import STAYING
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Context, RequestOutcome
from reconciler.model.status_edits import (
    ENDED_LATE,
    cost_until,
    with_condition,
    with_its_return,
    with_slip,
    without_condition,
    without_promise,
)
from scheduler.lifecycle import Event as Move
from scheduler.lifecycle import advance
from schemas.reading.units import format_duration
from schemas.rules.edits import asks_more_or_other
from schemas.status.gpr_status import Cause, Condition, Eviction, GPRStatus, Phase

NOTHING = timedelta()
MINUTE = timedelta(minutes=1)
"""Durations are whole minutes."""
PREEMPTED: Final = "Preempted"
"""The reason, and the condition until its nodes are released."""
STOPPED: Final = "Stopped"
IDLE: Final = "Idle"
QUEUED_AGAIN = frozenset({PREEMPTED, STOPPED})
"""Reasons for which a request waits for its remaining time after its nodes are released."""


def left_early(key: str, status: GPRStatus, context: Context) -> RequestOutcome | None:
    """Ends a running request whose committed early end has come; None while it keeps its nodes."""
    eviction, end = status.eviction, status.end_time
    if status.phase is not Phase.PROVISIONED or eviction is None or end is None:
        return None
    if eviction.reason not in QUEUED_AGAIN or not eviction.at <= context.now < end:
        return None
    is_late = context.now - eviction.at > context.settings.start_tolerance and _holds(status, context)
    until = context.now if is_late else eviction.at
    left = (end - until) // MINUTE * MINUTE
    if left < MINUTE:
        return None  # its strict end comes first
    outcome = _leaving(key, status, (until, left), context)
    if not is_late or outcome.status is None:
        return outcome
    message = f"its nodes were released at {context.now:%Y-%m-%dT%H:%M:%SZ}: the controller was down"
    late = Condition(type=ENDED_LATE, reason=str(Cause.CONTROLLER_ABSENT), message=message, at=context.now)
    noted = with_condition(outcome.status, late)
    return replace(outcome, status=noted, cause=(Cause.CONTROLLER_ABSENT, "controller"))


def _holds(status: GPRStatus, context: Context) -> bool:
    """True if a cluster still shows one of its nodes; if only the commit was late, the nodes were released in time."""
    held = status.assignment
    leases = () if held is None else (context.seen.lease_of(held.cluster, node) for node in held.nodes)
    return any(lease is not None and lease.uid == status.uid for lease in leases)


def _leaving(
    key: str, status: GPRStatus, when: tuple[datetime, timedelta], context: Context
) -> RequestOutcome:
    until, left = when
    status, marked = with_marks(key, status, context.now, until)
    assert status.eviction is not None
    why = f"for {status.eviction.by}" if status.eviction.by else "as requested"
    text = f"its nodes are released {why}; it is queued again for the remaining {format_duration(left)}"
    gone = without_condition(status, PREEMPTED, "NoSpare", "ExtensionRefused").edited(
        phase=advance(status.phase, Move.EVICT),
        reason=status.eviction.reason,
        message=text,
        end_time=until,
        remaining=left,
        idle_since=None,
    )
    return RequestOutcome(gone, (*marked, Event(context.now, EventReason.EXITING, f"{key}: {text}", key)))


def queues_again(status: GPRStatus) -> bool:
    """True if a request whose nodes are being cleaned waits afterwards for its remaining time."""
    return (
        status.phase is Phase.RELEASING
        and status.eviction is not None
        and status.eviction.reason in QUEUED_AGAIN
        and status.remaining is not None
    )


def requeued(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    """Its last node is clean: queued again with its costs counted; a stopped request waits until it is started."""
    assert status.assignment is not None
    assert status.eviction is not None
    assert status.remaining is not None
    eviction = status.eviction
    cluster = context.wanted.clusters.get(status.assignment.cluster)
    cost = cost_until(status, cluster, context.wanted.project, status.end_time or context.now)
    left = format_duration(status.remaining)
    if status.accepted_spec.stopped:
        status = with_slip(status, None, Cause.REQUEST_CHANGED, key, context.now)
        reason, text = STOPPED, stopped_text(key, status)
    else:
        why = f"evicted for {eviction.by}" if eviction.by else "was stopped"
        reason, text = eviction.reason, f"{why}; queued again for the remaining {left}"
    queued = without_promise(without_condition(status, ENDED_LATE, STAYING)).edited(
        phase=advance(status.phase, Move.REQUEUE),
        reason=reason,
        message=text,
        eviction=None,
        cost=cost,
        cost_before=cost,
        served=served_until(status, status.end_time or context.now),
        charge=returning(status) if eviction.reason == PREEMPTED else None,
        marks=(),
        checks=(),
    )
    queued = with_its_return(queued, eviction) if reason == PREEMPTED else queued
    told = Event(context.now, EventReason.REQUEUED, f"{key}: {text}", key)
    return RequestOutcome(queued, (told,), (Cause.REQUEUED, key))


def given_up(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    """A request whose nodes are being cleaned and whose file ends it: it is not queued again."""
    if not queues_again(status):
        return RequestOutcome(status)
    text = "its remaining time was given up"
    status = status.edited(eviction=None, remaining=None, reason="EarlyRelease", message=text)
    told = Event(context.now, EventReason.EARLY_RELEASED, f"{key}: {text}", key)
    return RequestOutcome(status, (told,))


def with_what_is_left(before: GPRStatus, after: GPRStatus) -> GPRStatus:
    """The edited request keeps the time that its last lease left; a shorter duration reduces it.

    If it asks for another lease, it loses that time, the granted extension and the old approvals.
    """
    old, new = before.accepted_spec, after.accepted_spec
    if before.remaining is None:
        return after
    if asks_more_or_other(old.edited(priority=new.priority), new):
        return after.edited(remaining=None, served=NOTHING, waited_s=None, extended_by=NOTHING, approval=None)
    left = max(MINUTE, before.remaining - (old.duration - new.duration))
    return after if left == before.remaining else after.edited(remaining=left)


# -- stopped by its file ---------------------------------------------------------------------------------------------


def stopped_text(key: str, status: GPRStatus) -> str:
    left = status.accepted_spec.duration if status.remaining is None else status.remaining
    return f"stopped; `egs gpr start {key}` queues it for the remaining {format_duration(left)}"


def stopped(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    """A request whose file stops it: its nodes are released now, and a waiting request loses its start."""
    if (begun := start_seen(key, status, context)) is not None and begun.status is not None:
        outcome = stopped(key, begun.status, context)
        return replace(outcome, events=(*begun.events, *outcome.events))
    if status.phase is Phase.PROVISIONED:
        return _nodes_back(key, status, context)
    if status.phase is Phase.RELEASING:
        return RequestOutcome(status)
    phase = advance(status.phase, Move.STOP) if status.phase is Phase.PROVISIONING else status.phase
    slipped = with_slip(status, None, Cause.REQUEST_CHANGED, key, context.now)
    held = without_promise(slipped)
    if phase is not Phase.PENDING_APPROVAL:  # else it waits for an approval, and says so
        held = held.edited(phase=phase, reason=STOPPED, message=stopped_text(key, status))
    told = Event(context.now, EventReason.STOPPED, f"{key} was stopped before its start", key)
    return RequestOutcome(held, (told,), (Cause.REQUEST_CHANGED, key))


def _nodes_back(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    status, marked = with_marks(key, status, context.now)
    slipped = with_slip(status, None, Cause.REQUEST_CHANGED, key, context.now)
    evicted = slipped.edited(eviction=Eviction(reason=STOPPED, at=context.now))
    outcome = left_early(key, evicted, context)
    if outcome is None:  # less than a minute remains, and the strict end takes the nodes
        return RequestOutcome(status, marked)
    told = Event(context.now, EventReason.STOPPED, f"{key} was stopped", key)
    return replace(outcome, events=(*marked, told, *outcome.events))


def resumed(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    """A stopped request that is started again: queued as if filed now, for its remaining time."""
    status = status.edited(filed_at=context.now)
    if status.phase is not Phase.PENDING_APPROVAL:
        status = status.edited(reason=None, message=None)
    text = f"{key} was started again and is queued for its remaining time"
    told = Event(context.now, EventReason.RESUMED, text, key)
    return RequestOutcome(status, (told,), (Cause.REQUEUED, key))
