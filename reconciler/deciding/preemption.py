"""Preemption: which running requests are evicted when, for which request, and what is cancelled. Pure.

The decision is committed a notice period before the eviction, together with the promise of the preempting
request; from then on the plan counts the nodes as free. It is cancelled once no promise would move without
it. Held by tests/cases/reconciler/preemption.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from reconciler.deciding.failed_attempts import FailedAttempts
from reconciler.deciding.favour_delays import whom_it_delays
from reconciler.deciding.preemption_limits import losses
from reconciler.lifecycle.checkpoints import NOTHING_SAID, Said, newest, saved_at
from reconciler.lifecycle.early_end import IDLE, PREEMPTED
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Facts, Wanted
from reconciler.model.status_edits import with_condition, without_condition
from reconciler.model.statuses import live, records
from reconciler.planning.reserve import reserved
from reconciler.planning.snapshot import lease_of, returning_requests
from scheduler.choices.preemption import Preempted, Preemption, Terms, preempted, with_ends, with_returns
from scheduler.plan import plan
from scheduler.promises import with_promises
from scheduler.snapshot import Plan, Snapshot
from schemas.documents.scheduling import Preemption as Policy
from schemas.reading.units import format_instant, instant, seconds
from schemas.status.gpr_status import Condition, Eviction, GPRStatus, Phase

NEEDING = frozenset({Phase.QUEUED, Phase.PROVISIONING})


@dataclass(frozen=True, slots=True)
class Made:
    """Facts and snapshot after preemption; `plan` is of that snapshot, if already computed."""

    facts: Facts
    world: Snapshot
    plan: Plan | None
    events: tuple[Event, ...] = ()
    preemptions: tuple[Preemption, ...] = ()

    @property
    def shown(self) -> Snapshot:
        """The snapshot for computing the plan to publish: given capacity is no longer offered."""
        if self.plan is None or not self.preemptions:
            return self.world
        return with_promises(self.world, self.plan)


def with_room_made(
    facts: Facts,
    wanted: Wanted,
    world: Snapshot,
    attempts: FailedAttempts | None = None,
    said: Said = NOTHING_SAID,
) -> Made:
    """Cancels evictions no longer needed, then evicts as the policy allows; `attempts` remembers failed attempts.

    `said` has the pods' newest checkpoints, also those that are not worth a commit yet.
    """
    attempts = FailedAttempts() if attempts is None else attempts
    facts, world, events = _called_off((facts, wanted), world, attempts)
    policy = wanted.project.scheduling.preemption
    going = {} if policy is None else _may_go(facts, world, policy)
    if policy is None or not going or not world.requests:
        return Made(facts, world, None, events)
    terms = _terms(policy)
    if attempts.is_nobody_sent(going, terms, world.now):
        return Made(facts, world, None, events)
    planned = plan(world)
    found = preempted(world, planned, going, terms, _saved(facts, going, said))
    made = Made(facts, world, planned, events)
    if found.preemptions:
        made = _decided_all(found, made, wanted)
    if not made.preemptions:
        attempts.nobody_was_sent(world, going, terms)
        return made
    return replace(made, facts=_with_checkpoints(made.facts, made.preemptions, said))


def _decided_all(found: Preempted, made: Made, wanted: Wanted) -> Made:
    """With these preemptions, except those whose capacity the reserve takes. Costs a plan for each if that happens."""
    decided = _decided_some(found.preemptions, found, made, wanted)
    if decided is None:
        decided = made
        for one in found.preemptions if len(found.preemptions) > 1 else ():
            decided = _decided_some((*decided.preemptions, one), found, made, wanted) or decided
    if decided.plan is None or not decided.preemptions:
        return made
    gone = {key: decided.facts.requests[key] for one in decided.preemptions for key in one.victims}
    back = returning_requests(gone, wanted, decided.facts, decided.world)
    world, planned = with_returns(decided.world, decided.plan, back)
    return replace(decided, world=world, plan=planned)


def _decided_some(some: tuple[Preemption, ...], found: Preempted, made: Made, wanted: Wanted) -> Made | None:
    """With some of them, before any evicted request returns; None if the reserve spoils one of them."""
    facts, world, events = made.facts, made.world, made.events
    for one in some:
        facts, told = _decided(facts, one)
        world, events = with_ends(world, one.victims, one.at), (*events, *told)
    if some == found.preemptions:
        world = found.snapshot
    world = reserved(world, wanted, facts)
    planned = found.plan if world is found.snapshot else plan(world)
    for one in some:
        place = planned.placements.get(one.by)
        if place is None or place.start > found.plan.placements[one.by].start:
            return None
    return Made(facts, world, planned, events, some)


def _saved(facts: Facts, going: Mapping[str, int], said: Said) -> dict[str, int]:
    """Until when the work of these leases is saved, by key."""
    found = {key: saved_at(facts.requests[key], said, facts.at) for key in sorted(going)}
    return {key: seconds(at) for key, at in found.items() if at is not None}


def _with_checkpoints(facts: Facts, decided: tuple[Preemption, ...], said: Said) -> Facts:
    """The chosen requests show by which checkpoint they were chosen."""
    requests = records(facts.requests)
    for key in (key for one in decided for key in one.victims):
        status = requests[key]
        found = newest(status, said, facts.at)
        if found is not status.checkpoint:
            requests[key] = status.edited(checkpoint=found)
    return replace(facts, requests=requests)


def _terms(policy: Policy) -> Terms:
    spans = (policy.notice, policy.guaranteed, policy.spare_last, policy.least_gain)
    return Terms(*(int(span.total_seconds()) for span in spans))


def _may_go(facts: Facts, world: Snapshot, policy: Policy) -> dict[str, int]:
    """Priorities of the running requests that may be evicted, by key."""
    lost = losses(facts)
    return {
        key: status.accepted_spec.priority
        for key, status in live(facts.requests).items()
        if status.phase is Phase.PROVISIONED
        and _stays_until(facts.at + policy.notice, status.eviction)
        and status.accepted_spec.preemptible
        and key in world.leases
        and _is_in_service(key, world)
        and lost[status.accepted_spec.slice] < policy.per_slice_and_day
    }


def sent_away(before: Facts, after: Facts) -> tuple[str, ...]:
    """Requests that are to be evicted in `after`, and not, or at another time, in `before`."""
    going = {
        k: s.eviction for k, s in live(after.requests).items() if s.eviction is not None and s.eviction.by
    }
    known = {k: old.eviction for k in going if (old := before.requests.get(k)) is not None}
    return tuple(sorted(key for key, eviction in going.items() if known.get(key) != eviction))


def _is_in_service(key: str, world: Snapshot) -> bool:
    pool = world.pools.get(world.leases[key].pool)
    return pool is not None and pool.open and not pool.observed


def _stays_until(at: datetime, eviction: Eviction | None) -> bool:
    """True if it keeps its nodes until then; an idle request may be used again and keep its nodes."""
    return eviction is None or (eviction.reason == IDLE and at < eviction.at)


# -- decided ---------------------------------------------------------------------------------------------------------


def _decided(facts: Facts, found: Preemption) -> tuple[Facts, tuple[Event, ...]]:
    requests, at = records(facts.requests), instant(found.at)
    told = []
    for key in found.victims:
        status = requests[key]
        requests[key] = _leaving(status, Eviction(reason=PREEMPTED, at=at, by=found.by), facts.at)
        text = f"{key} is evicted at {format_instant(at)} for {found.by}; save its work before"
        told.append(Event(facts.at, EventReason.PREEMPTED, text, key))
    return replace(facts, requests=requests), tuple(told)


def _leaving(status: GPRStatus, eviction: Eviction, now: datetime) -> GPRStatus:
    message = (
        f"its nodes go to {eviction.by}, which is in a higher band, at {format_instant(eviction.at)}; "
        "it is queued again for its remaining time"
    )
    noted = with_condition(
        without_condition(status, IDLE),
        Condition(type=PREEMPTED, reason=PREEMPTED, message=message, at=now),
    )
    return noted.edited(eviction=eviction, evicted_by=eviction.by, idle_since=None)


# -- cancelled -------------------------------------------------------------------------------------------------------


def _called_off(
    known: tuple[Facts, Wanted], world: Snapshot, attempts: FailedAttempts
) -> tuple[Facts, Snapshot, tuple[Event, ...]]:
    facts, wanted = known
    told: tuple[Event, ...] = ()
    for key in sorted(key for key, status in live(facts.requests).items() if status.eviction is not None):
        status = facts.requests[key]
        if _is_to_leave(status, facts.at) and not _is_needed(status, facts.requests):
            stays = status.edited(eviction=None, evicted_by=None)
            lease = lease_of(key, stays, wanted, facts)
            if lease is None or key not in world.leases:
                continue
            others = {name: request for name, request in world.requests.items() if name != key}
            kept = replace(world, leases={**world.leases, key: lease}, requests=others)
            longer = reserved(kept, wanted, facts)
            if attempts.hurt(key, lease, partial(whom_it_delays, lease, (world, longer), wanted, facts)):
                continue
            facts, event = _staying(facts, key, stays)
            world, told = longer, (*told, event)
    return facts, world, told


def _is_to_leave(status: GPRStatus, now: datetime) -> bool:
    """True if a running lease is to end for another request."""
    eviction = status.eviction
    waits = eviction is not None and eviction.reason == PREEMPTED and now < eviction.at
    return waits and status.phase is Phase.PROVISIONED


def _is_needed(status: GPRStatus, requests: Mapping[str, GPRStatus]) -> bool:
    """True if the preempting request still needs it, judging by its promise."""
    assert status.eviction is not None
    assert status.assignment is not None
    other, held = requests.get(status.eviction.by), status.assignment
    if other is None or other.phase not in NEEDING or other.estimated_start_time is None:
        return False
    there = (other.estimated_cluster, other.estimated_pool) == (held.cluster, held.pool)
    is_own = other.accepted_spec.slice == status.accepted_spec.slice  # it cannot run while this one does
    return (there or is_own) and other.estimated_start_time >= status.eviction.at


def _staying(facts: Facts, key: str, stays: GPRStatus) -> tuple[Facts, Event]:
    was = facts.requests[key].eviction
    assert was is not None
    requests = records(facts.requests)
    requests[key] = without_condition(stays, PREEMPTED)
    text = f"{key} keeps its nodes: {was.by} no longer needs them"
    return replace(facts, requests=requests), Event(facts.at, EventReason.PREEMPTION_OFF, text, key)
