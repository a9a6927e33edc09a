"""Nodes that leave before the strict end: given back at their instant, and a request that queues for the rest. Pure.

The instant is committed before (`status.eviction`), by `reconciler.deciding.preemption` for whom room is made, or by
the request's own people who stop it. The nodes are cleaned as after any lease; then the request is in the queue
again, in the place that it had, for the whole minutes that are left. Held by tests/cases/reconciler/preemption.yaml
and stop.yaml.
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
"""Durations are written in whole minutes."""
PREEMPTED: Final = "Preempted"
"""The reason, and the condition as long as its nodes have not left."""
STOPPED: Final = "Stopped"
IDLE: Final = "Idle"
QUEUED_AGAIN = frozenset({PREEMPTED, STOPPED})
"""Why a request whose nodes left waits for the rest of its time."""


def left_early(key: str, status: GPRStatus, context: Context) -> RequestOutcome | None:
    """A running request whose nodes leave now, before its strict end; None while it keeps them."""
    eviction, end = status.eviction, status.end_time
    if status.phase is not Phase.PROVISIONED or eviction is None or end is None:
        return None
    if eviction.reason not in QUEUED_AGAIN or not eviction.at <= context.now < end:
        return None
    is_late = context.now - eviction.at > context.settings.start_tolerance and _holds(status, context)
    until = context.now if is_late else eviction.at
    left = (end - until) // MINUTE * MINUTE
    if left < MINUTE:
        return None  # its own end comes first
    outcome = _leaving(key, status, (until, left), context)
    if not is_late or outcome.status is None:
        return outcome
    message = f"its nodes left at {context.now:%Y-%m-%dT%H:%M:%SZ}: the controller was away"
    late = Condition(type=ENDED_LATE, reason=str(Cause.CONTROLLER_ABSENT), message=message, at=context.now)
    noted = with_condition(outcome.status, late)
    return replace(outcome, status=noted, cause=(Cause.CONTROLLER_ABSENT, "controller"))


def _holds(status: GPRStatus, context: Context) -> bool:
    """Whether a node is still its own: where only the commit had to wait, the nodes left at their instant."""
    held = status.assignment
    leases = () if held is None else (context.seen.lease_of(held.cluster, node) for node in held.nodes)
    return any(lease is not None and lease.uid == status.uid for lease in leases)


def _leaving(
    key: str, status: GPRStatus, when: tuple[datetime, timedelta], context: Context
) -> RequestOutcome:
    until, left = when
    status, marked = with_marks(key, status, context.now, until)
    assert status.eviction is not None
    why = f"for {status.eviction.by}" if status.eviction.by else "as its people asked"
    text = f"its nodes leave {why}; it is queued again for the {format_duration(left)} that are left"
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
    """Whether a request whose nodes are being cleaned waits afterwards for the rest of its time."""
    return (
        status.phase is Phase.RELEASING
        and status.eviction is not None
        and status.eviction.reason in QUEUED_AGAIN
        and status.remaining is not None
    )


def requeued(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    """Its last node is clean: back in the queue, with its costs counted; one that is stopped waits for its people."""
    assert status.assignment is not None
    assert status.eviction is not None
    assert status.remaining is not None
    eviction = status.eviction
    cluster = context.wanted.clusters.get(status.assignment.cluster)
    cost = cost_until(status, cluster, context.wanted.project.currency, status.end_time or context.now)
    left = format_duration(status.remaining)
    if status.accepted_spec.stopped:
        status = with_slip(status, None, Cause.REQUEST_CHANGED, key, context.now)
        reason, text = STOPPED, stopped_text(key, status)
    else:
        why = f"made room for {eviction.by}" if eviction.by else "was stopped"
        reason, text = eviction.reason, f"{why}; queued again for the {left} that are left"
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
    """A request whose nodes are being cleaned and whose file asks for the end: it does not come back."""
    if not queues_again(status):
        return RequestOutcome(status)
    text = "its people gave up the time that was left"
    status = status.edited(eviction=None, remaining=None, reason="EarlyRelease", message=text)
    told = Event(context.now, EventReason.EARLY_RELEASED, f"{key}: {text}", key)
    return RequestOutcome(status, (told,))


def with_what_is_left(before: GPRStatus, after: GPRStatus) -> GPRStatus:
    """The request as its people edited it, after a lease of which something is left: they keep that and no more.

    Whoever asks for another lease has what was left of the old one no more, nor the grace that was given to it, nor
    the words that let it in. A shorter duration is shorter by what is not to come.
    """
    old, new = before.accepted_spec, after.accepted_spec
    if before.remaining is None:
        return after
    if asks_more_or_other(old.edited(priority=new.priority), new):
        return after.edited(remaining=None, served=NOTHING, waited_s=None, extended_by=NOTHING, approval=None)
    left = max(MINUTE, before.remaining - (old.duration - new.duration))
    return after if left == before.remaining else after.edited(remaining=left)


# -- its people stop it ----------------------------------------------------------------------------------------------


def stopped_text(key: str, status: GPRStatus) -> str:
    """What a request that is stopped says of itself."""
    left = status.accepted_spec.duration if status.remaining is None else status.remaining
    return f"stopped by its people; `egs gpr start {key}` queues it for the {format_duration(left)} that are left"


def stopped(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    """A request whose file asks to stop: its nodes go back now, and one that only waits has no start any more."""
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
    text = f"{key} was stopped before its start"
    return RequestOutcome(
        held, (Event(context.now, EventReason.STOPPED, text, key),), (Cause.REQUEST_CHANGED, key)
    )


def _nodes_back(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    status, marked = with_marks(key, status, context.now)
    slipped = with_slip(status, None, Cause.REQUEST_CHANGED, key, context.now)
    evicted = slipped.edited(eviction=Eviction(reason=STOPPED, at=context.now))
    outcome = left_early(key, evicted, context)
    if outcome is None:  # less than a minute is left, and its strict end takes the nodes
        return RequestOutcome(status, marked)
    told = Event(context.now, EventReason.STOPPED, f"{key} was stopped by its people", key)
    return replace(outcome, events=(*marked, told, *outcome.events))


def resumed(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    """A stopped request that shall run: queued as if it were filed now, for the time that is left."""
    status = status.edited(filed_at=context.now)
    if status.phase is not Phase.PENDING_APPROVAL:
        status = status.edited(reason=None, message=None)
    text = f"{key} is started again and queues anew for the rest of its time"
    told = Event(context.now, EventReason.RESUMED, text, key)
    return RequestOutcome(status, (told,), (Cause.REQUEUED, key))
