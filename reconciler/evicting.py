"""Preemption as facts: which running requests leave when, for whom, and what is called off. Pure.

The decision is committed a notice before anybody leaves: the one for whom room is made has its promise in the same
commit, and the plan counts the nodes as free from the eviction on. It is called off when nobody needs it any more,
which is when no promise would move for it. Held by tests/cases/reconciler/preemption.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.conditions import with_condition, without_condition
from reconciler.events import Event, Told
from reconciler.extension import first_hurt, first_in_the_way
from reconciler.facts import Facts, Wanted
from reconciler.leaving import PREEMPTED
from reconciler.records import live, records
from reconciler.reserving import reserved
from reconciler.world import lease_of
from scheduler.plan import plan
from scheduler.preempting import Preemption, Terms, preempted
from scheduler.snapshot import Plan, Snapshot
from schemas.base import Metadata
from schemas.scheduling import Preemption as Policy
from schemas.status import Condition, Eviction, GPRStatus, Phase
from schemas.units import format_instant, instant
from schemas.usage import UsageRecord

DAY = timedelta(days=1)
NEEDING = frozenset({Phase.QUEUED, Phase.PROVISIONING})


@dataclass(frozen=True, slots=True)
class Made:
    """Facts and world with room made for whom it is worth it; `plan` is of that world, where there is one already."""

    facts: Facts
    world: Snapshot
    plan: Plan | None
    events: tuple[Event, ...] = ()


def with_room_made(facts: Facts, wanted: Wanted, world: Snapshot) -> Made:
    """Calls off what nobody needs, then sends away whom the project's policy lets go."""
    facts, world, events = _called_off(facts, wanted, world)
    policy = wanted.project.scheduling.preemption
    going = {} if policy is None else _may_go(facts, world, policy)
    if policy is None or not going or not world.requests:
        return Made(facts, world, None, events)
    found = preempted(world, plan(world), going, _terms(policy))
    for preemption in found.preemptions:
        facts, told = _decided(facts, wanted, preemption)
        events = (*events, *told)
    world = reserved(found.snapshot, wanted, facts)  # who leaves draws less on it
    return Made(facts, world, found.plan if world is found.snapshot else None, events)


def _terms(policy: Policy) -> Terms:
    spans = (policy.notice, policy.guaranteed, policy.spare_last, policy.least_gain)
    return Terms(*(int(span.total_seconds()) for span in spans))


def _may_go(facts: Facts, world: Snapshot, policy: Policy) -> dict[str, int]:
    """Priorities of the running requests that let themselves be sent away, by key."""
    lost = {name: len(_within_a_day(record, facts.at)) for name, record in facts.usage.items()}
    return {
        key: status.accepted_spec.priority
        for key, status in live(facts.requests).items()
        if status.phase is Phase.PROVISIONED
        and status.eviction is None
        and status.accepted_spec.preemptible
        and key in world.leases
        and _is_in_service(key, world)
        and lost.get(status.accepted_spec.slice, 0) < policy.per_slice_and_day
    }


def sent_away(before: Facts, after: Facts) -> tuple[str, ...]:
    """Who is to leave for somebody in `after`, and was not, or not then, in `before`."""
    going = {k: s.eviction for k, s in after.requests.items() if s.eviction is not None and s.eviction.by}
    known = {k: old.eviction for k in going if (old := before.requests.get(k)) is not None}
    return tuple(sorted(key for key, eviction in going.items() if known.get(key) != eviction))


def _is_in_service(key: str, world: Snapshot) -> bool:
    pool = world.pools.get(world.leases[key].pool)
    return pool is not None and pool.open and not pool.observed


def _within_a_day(record: UsageRecord, now: datetime) -> tuple[datetime, ...]:
    return tuple(at for at in record.preempted if now - at < DAY)


# -- decided ---------------------------------------------------------------------------------------------------------


def _decided(facts: Facts, wanted: Wanted, found: Preemption) -> tuple[Facts, tuple[Event, ...]]:
    requests, usage, at = records(facts.requests), dict(facts.usage), instant(found.at)
    told = []
    for key in found.victims:
        status = requests[key]
        requests[key] = _leaving(status, Eviction(reason=PREEMPTED, at=at, by=found.by), facts.at)
        text = f"{key} leaves its nodes at {format_instant(at)} for {found.by}; save its work until then"
        told.append(Event(facts.at, Told.PREEMPTED, text, key))
        name = status.accepted_spec.slice
        record = usage.get(name) or _blank(name, wanted.project.currency)
        kept = (*_within_a_day(record, facts.at), at)
        usage[name] = record.model_copy(update={"preempted": kept})
    return replace(facts, requests=requests, usage=usage), tuple(told)


def _blank(name: str, currency: str) -> UsageRecord:
    return UsageRecord(metadata=Metadata(name=name), currency=currency)


def _leaving(status: GPRStatus, eviction: Eviction, now: datetime) -> GPRStatus:
    message = (
        f"its nodes leave at {format_instant(eviction.at)} for {eviction.by}, which is of a higher band; "
        "it is queued again for the rest of its time"
    )
    noted = with_condition(status, Condition(type=PREEMPTED, reason=PREEMPTED, message=message, at=now))
    return noted.model_copy(update={"eviction": eviction, "evicted_by": eviction.by})


# -- called off ------------------------------------------------------------------------------------------------------


def _called_off(facts: Facts, wanted: Wanted, world: Snapshot) -> tuple[Facts, Snapshot, tuple[Event, ...]]:
    told: tuple[Event, ...] = ()
    for key in sorted(key for key, status in live(facts.requests).items() if status.eviction is not None):
        status = facts.requests[key]
        if _is_to_leave(status, facts.at) and not _is_needed(status, facts.requests):
            stays = status.model_copy(update={"eviction": None, "evicted_by": None})
            lease = lease_of(key, stays, wanted, facts)
            if lease is None or key not in world.leases:
                continue
            longer = reserved(replace(world, leases={**world.leases, key: lease}), wanted, facts)
            if first_in_the_way(lease, longer) or first_hurt(world, longer):
                continue
            facts, event = _staying(facts, key, stays)
            world, told = longer, (*told, event)
    return facts, world, told


def _is_to_leave(status: GPRStatus, now: datetime) -> bool:
    """Whether somebody else's need is to end a lease that still goes on."""
    eviction = status.eviction
    waits = eviction is not None and eviction.reason == PREEMPTED and now < eviction.at
    return waits and status.phase is Phase.PROVISIONED


def _is_needed(status: GPRStatus, requests: Mapping[str, GPRStatus]) -> bool:
    """Whether the one for whom room is made still counts on it, as far as its promise tells."""
    assert status.eviction is not None
    assert status.assignment is not None
    other, held = requests.get(status.eviction.by), status.assignment
    if other is None or other.phase not in NEEDING or other.estimated_start_time is None:
        return False
    there = (other.estimated_cluster, other.estimated_pool) == (held.cluster, held.pool)
    return there and other.estimated_start_time >= status.eviction.at


def _staying(facts: Facts, key: str, stays: GPRStatus) -> tuple[Facts, Event]:
    was, name = facts.requests[key].eviction, stays.accepted_spec.slice
    assert was is not None
    usage = dict(facts.usage)
    if name in usage:
        left = list(usage[name].preempted)
        if was.at in left:
            left.remove(was.at)
        usage[name] = usage[name].model_copy(update={"preempted": tuple(left)})
    requests = records(facts.requests)
    requests[key] = without_condition(stays, PREEMPTED)
    text = f"{key} keeps its nodes: {was.by} does not need them any more"
    return replace(facts, requests=requests, usage=usage), Event(facts.at, Told.PREEMPTION_OFF, text, key)
