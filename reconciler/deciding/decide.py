"""From folded facts to decisions: promises, slips with their causes, starts. Pure.

All promises of a plan are published together or not at all, so the committed ones are always consistent. A
move to later is always published, with its cause; moves to earlier wait until one is worth a commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.approvals.is_approved import hard_violations
from reconciler.approvals.used_approvals import spent_after
from reconciler.deciding.extension import extended
from reconciler.deciding.failed_attempts import FailedAttempts
from reconciler.deciding.fold import Folded
from reconciler.deciding.preemption import with_room_made
from reconciler.deciding.slips import CommittedWorld, may_be_late
from reconciler.lifecycle.checkpoints import said_in
from reconciler.lifecycle.early_end import STOPPED, stopped_text
from reconciler.lifecycle.free_nodes import FreeNodes
from reconciler.lifecycle.requeue import returning
from reconciler.lifecycle.warnings import with_warnings
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Context, Facts, Seen, Wanted
from reconciler.model.status_edits import promised_start, with_slip, without_promise
from reconciler.model.statuses import Records, records
from reconciler.planning.elastic_pools import known_causes, rescaled
from reconciler.planning.forecast import with_forecasts
from reconciler.planning.queue_place import with_first_come
from reconciler.planning.snapshot import build_snapshot
from reconciler.settings import Settings
from scheduler.causes.causes import Moved, slips
from scheduler.causes.changes import Known, changes_between, node_key
from scheduler.choices.fit import would_fit
from scheduler.choices.node_choice import in_order_of_begin
from scheduler.lifecycle import Event as Move
from scheduler.lifecycle import advance
from scheduler.plan import plan
from scheduler.reasons import Reason
from scheduler.snapshot import ChangeKind, Placement, Plan, Promise, Refusal, Snapshot
from schemas.reading.units import instant
from schemas.status.gpr_status import Assignment, Cause, GPRStatus, Phase, SlipCause

DAMPED_S = 60
"""A move to earlier is not worth a commit of its own if it is less than a minute …"""
DAMPED_SHARE = 0.05
"""… or less than this share of the wait."""
TRIAL_WORK = 200_000
"""Requests planned again in one cycle to prove causes, at most; `CommittedWorld.has_time` bounds the time."""
FEWEST_TRIALS = 8
URGENT = frozenset(
    {
        EventReason.DELAYED,
        EventReason.REQUEUED,
        EventReason.PROVISIONED,
        EventReason.POOL_GROWS,
        EventReason.PREEMPTED,
    }
)
"""Reported at once, whatever the push budget says: a request waits longer than promised, or has nodes now."""
PLAN_REASONS = frozenset({*Reason, "ClusterObserved"})
"""Reasons that planning sets, and clears."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Facts to commit, events, and whether the push is urgent."""

    facts: Facts
    events: tuple[Event, ...]
    urgent: bool
    plan: Plan
    snapshot: Snapshot


def decide(
    committed: CommittedWorld,
    folded: Folded,
    wanted: Wanted,
    seen: Seen,
    settings: Settings,
    *,
    attempts: FailedAttempts | None = None,
) -> Decision:
    """Plan, name the cause of every slip, publish promises, start what is due; `attempts` remembers failures."""
    attempts = FailedAttempts() if attempts is None else attempts
    world = build_snapshot(wanted, folded.facts, seen, folded.anew)
    attempts.enter(world)
    facts, world, events = extended(folded.facts, wanted, world, attempts)
    made = with_room_made(facts, wanted, world, attempts, said_in(seen.views))
    facts, world = made.facts, made.world
    planned = attempts.planned(world, plan) if made.plan is None else made.plan
    later = _slips(committed, world, planned, folded)
    requests = records(facts.requests)
    told = [*folded.events, *events, *made.events]
    taken = _taken(world, planned)
    for slip in later:
        requests[slip.key] = _slipped(requests[slip.key], slip, facts.at, is_taken=slip.key in taken)
        told.append(_delayed(slip, facts.at))
    context = Context(facts.at, settings, wanted, seen, facts.nodes, faults=facts.faults)
    _say_why_unplaced(requests, world, planned, context)
    requests = with_first_come(requests, folded.anew, world, wanted.project.scheduling)
    due = due_starts(world, planned, settings)
    # Evictions are decided in the same commit as the start they make possible, else the next cycle would see no need.
    if due or later or made.preemptions or worth_publishing(world, planned):
        _publish(requests, world, planned)
        with_forecasts(folded.facts, requests, world, planned)
    lost = _accounted(folded.facts.requests, requests, facts.at)
    started = _start(requests, due, world, context)
    told += [*lost, *started, *with_warnings(requests, wanted.clusters, facts.at)]
    spent = spent_after(folded.facts, requests, wanted, facts.at)
    final = replace(facts, requests=requests, used_approvals=spent)
    final, scaled = rescaled(final, world, planned, wanted)
    told += scaled
    urgent = bool(started) or any(event.reason in URGENT for event in told)
    return Decision(final, tuple(told), urgent, _of_the_queue(world, planned, started), world)


def _of_the_queue(world: Snapshot, planned: Plan, started: Iterable[Event]) -> Plan:
    """The plan, without a rank for requests that still hold nodes (evicted ones) or have just started."""
    holding = world.leases.keys() | {event.request for event in started}
    if holding.isdisjoint(world.requests):
        return planned
    return replace(planned, order=tuple(key for key in planned.order if key not in holding))


def _taken(world: Snapshot, planned: Plan) -> frozenset[str]:
    """Requests displaced, directly or not, by another slice."""
    begun_by: dict[str, str] = {}
    for displaced in planned.displaced:  # before the requests that it displaced in turn
        if displaced.by:
            begun_by[displaced.key] = begun_by.get(displaced.by, displaced.by)
    return frozenset(
        key for key, by in begun_by.items() if world.requests[key].slice != world.requests[by].slice
    )


def _slips(committed: CommittedWorld, world: Snapshot, planned: Plan, folded: Folded) -> tuple[Moved, ...]:
    was = committed.world() if may_be_late(committed.requests, world, planned) else None
    if was is None:
        return ()
    known: dict[tuple[ChangeKind, str], Known] = dict(known_causes(was, world, folded.late_pools))
    for key in world.leases.keys() & world.requests:  # not an edit: it is to return, or no longer
        known[ChangeKind.REQUEST, key] = Known(Cause.REQUEUED, key)
    for key, (cause, by) in folded.causes.items():
        known[ChangeKind.REQUEST, key] = known[ChangeKind.LEASE, key] = Known(cause, by)
    for (cluster, node), cause in folded.failed_nodes.items():
        for pool in world.pools.values():
            if pool.key[0] == cluster and node in pool.nodes:
                known[ChangeKind.NODE, node_key(pool.key, node)] = Known(cause, f"{cluster}/{node}")
    trials = max(FEWEST_TRIALS, TRIAL_WORK // max(1, len(world.requests)))
    return slips(was, world, changes_between(was, world, known), planned, trials, committed.has_time)


def _slipped(status: GPRStatus, slip: Moved, at: datetime, *, is_taken: bool) -> GPRStatus:
    """The status with its slip; `is_taken` counts it among the displacements by other requests."""
    to = None if slip.now is None else instant(slip.now)
    count = status.displaced_count + is_taken
    is_noted = bool(status.slips) and status.slips[-1].at == at  # when it lost its start, before planning
    was = None if is_noted else instant(slip.was)
    first, *also = _causes(slip)
    slipped = with_slip(status, to, first.cause, first.by, at, lost=was)
    if also and slipped is not status:
        last = slipped.slips[-1].edited(also=tuple(also))
        slipped = slipped.edited(slips=(*slipped.slips[:-1], last))
    return slipped.edited(displaced_count=count) if is_taken else slipped


def _causes(slip: Moved) -> tuple[SlipCause, ...]:
    """The causes of a slip, several if no single one explains it; if only time passed, the controller was too late."""
    found = (SlipCause(cause=c.cause, by=c.by or c.key or "controller") for c in slip.causes)
    return tuple(dict.fromkeys(found)) or (SlipCause(cause=Cause.CONTROLLER_ABSENT, by="controller"),)


def _delayed(slip: Moved, at: datetime) -> Event:
    to = "an unknown time" if slip.now is None else f"{instant(slip.now):%Y-%m-%d %H:%M:%SZ}"
    was = f"{instant(slip.was):%Y-%m-%d %H:%M:%SZ}"
    causes = " and ".join(map(str, _causes(slip)))
    return Event(at, EventReason.DELAYED, f"{slip.key} moved from {was} to {to}: {causes}", slip.key)


def _say_why_unplaced(requests: Records, world: Snapshot, planned: Plan, context: Context) -> None:
    """Sets the reason of waiting requests without a start."""
    shown = any(pool.observed for pool in world.pools.values())
    for key, status in list(requests.live.items()):
        if status.phase is not Phase.QUEUED:
            continue
        refusal = planned.refusals.get(key)
        if key not in world.requests:
            refusal = _outside(key, status, context)
        elif refusal is not None and refusal.reason == Reason.FITS_NOWHERE:
            refusal = _nowhere(key, status, context)
        place = planned.placements.get(key) if shown else None
        said = _with_refusal(status, refusal, place, world)
        if said is not status:
            requests[key] = said


def _outside(key: str, status: GPRStatus, context: Context) -> Refusal:
    """Why a waiting request is not planned at all."""
    if status.accepted_spec.stopped:
        return Refusal(key, STOPPED, stopped_text(key, status))
    return Refusal(key, Reason.LIMIT_EXCEEDED, "; ".join(hard_violations(status, context.wanted)))


def _nowhere(key: str, status: GPRStatus, context: Context) -> Refusal:
    """What its clusters offer, for a request that fits none of them."""
    spec, wanted = status.accepted_spec, context.wanted
    fits = would_fit(spec, wanted.slices[spec.slice], wanted.pools)
    return Refusal(key, Reason.FITS_NOWHERE, "it fits no pool that it may use", fits)


def _with_refusal(
    status: GPRStatus, refusal: Refusal | None, place: Placement | None, world: Snapshot
) -> GPRStatus:
    if place is not None and world.pools[place.pool].observed:
        return _only_shown(status, place)
    if refusal is None:
        if status.reason in PLAN_REASONS:
            return status.edited(reason=None, message=None)
        return status
    message = f"{refusal.message}; {refusal.would_fit}" if refusal.would_fit else refusal.message
    if (status.reason, status.message) == (refusal.reason, message) and status.estimated_start_time is None:
        return status
    return without_promise(status).edited(reason=refusal.reason, message=message)


def worth_publishing(world: Snapshot, planned: Plan) -> bool:
    """True if a request has no promise yet, or can start earlier by a minute or 5 % of the wait."""
    return any(
        _is_worth(world.requests[key].promise, place, world.now)
        for key, place in planned.placements.items()
        if not world.pools[place.pool].observed
    )


def _is_worth(promise: Promise | None, place: Placement, now: int) -> bool:
    if promise is None:
        return True
    promised = promise.start
    return promised - place.start >= max(DAMPED_S, DAMPED_SHARE * (promised - now))


def _publish(requests: Records, world: Snapshot, planned: Plan) -> None:
    for key, place in planned.placements.items():
        status = requests[key]
        told = _with_place(status, place, world)
        if told is not status:
            requests[key] = told
    for key in world.leases.keys() & world.requests.keys() - planned.placements.keys():
        requests[key] = returning(requests[key], None)


def _with_place(status: GPRStatus, place: Placement, world: Snapshot) -> GPRStatus:
    if world.pools[place.pool].observed:
        return status
    if status.phase is not Phase.QUEUED:
        return returning(status, place)
    start, end = instant(place.start), instant(place.end)
    if (
        status.estimated_start_time == start
        and status.estimated_end_time == end
        and (status.estimated_cluster, status.estimated_pool) == place.pool
        and status.bound_nodes == place.bound
    ):
        return status
    return status.edited(
        estimated_start_time=start,
        estimated_end_time=end,
        estimated_cluster=place.pool[0],
        estimated_pool=place.pool[1],
        bound_nodes=place.bound,
    )


def _only_shown(status: GPRStatus, place: Placement) -> GPRStatus:
    """An observed cluster promises nothing: the first estimate is shown, and stays."""
    if status.reason == "ClusterObserved":
        return status
    cluster, pool = place.pool
    message = (
        f"would start at {instant(place.start):%Y-%m-%dT%H:%M:%SZ} in {cluster}/{pool}, but that cluster is only "
        "observed; an admin sets its mode to manage"
    )
    return without_promise(status).edited(reason="ClusterObserved", message=message)


def _accounted(committed: Mapping[str, GPRStatus], requests: Records, at: datetime) -> list[Event]:
    """A promise never disappears without a slip: a request that is no longer planned lost it to a policy."""
    told = []
    for key, status in list(requests.live.items()):
        old = committed.get(key)
        if old is None or (status.phase is not Phase.QUEUED and status.eviction is None):
            continue
        if status.slips and status.slips[-1].at == at:
            requests[key] = _with_last_slip_to(status)
            continue
        if old is status:
            continue
        was, now = promised_start(old), promised_start(status)
        if was is None or (now is not None and now <= was):
            continue
        by = status.accepted_spec.slice if status.reason == Reason.LIMIT_EXCEEDED else old.estimated_cluster
        cause, by = (Cause.POLICY_CHANGED, by) if now is None else (Cause.CONTROLLER_ABSENT, "controller")
        slipped = with_slip(old, now, cause, by or "", at)
        requests[key] = status.edited(slips=slipped.slips, delayed_count=slipped.delayed_count)
        told.append(Event(at, EventReason.DELAYED, f"{key} lost its start: {cause} ({by})", key))
    return told


def _with_last_slip_to(status: GPRStatus) -> GPRStatus:
    """A slip noted before planning gets the start that planning found."""
    last, to = status.slips[-1], promised_start(status)
    if last.now == to:
        return status
    return status.edited(slips=(*status.slips[:-1], last.edited(now=to)))


def due_starts(world: Snapshot, planned: Plan, settings: Settings) -> tuple[Placement, ...]:
    """Placements whose nodes must be taken now, in the order in which nodes are chosen."""
    lead = int(settings.start_lead.total_seconds())
    return tuple(
        place
        for place in in_order_of_begin(world, planned)
        if place.key not in world.leases  # it has to release its nodes first
        and not (pool := world.pools[place.pool]).observed
        and pool.open
        and place.start - pool.prepare - lead <= world.now
    )


def _start(requests: Records, due: Iterable[Placement], world: Snapshot, context: Context) -> list[Event]:
    """Gives the due requests their nodes; one whose nodes are not free yet keeps its promise and waits."""
    free_nodes = FreeNodes(world.pools, world.leases, context.now, context.traits)
    told = []
    for place in due:
        status = requests[place.key]
        end = instant(place.end)
        avoid = frozenset(c.node for c in status.checks if c.stage == "pre" and not c.passed)
        nodes = free_nodes.take(place.pool, status.accepted_spec.nodes, end, avoid, place.bound)
        if nodes is None and avoid:
            nodes = free_nodes.take(place.pool, status.accepted_spec.nodes, end, bound=place.bound)
        if nodes is None:
            continue
        requests[place.key] = _provisioning(status, place, nodes, context.now)
        text = f"{place.key} gets {', '.join(nodes)} of {place.pool[0]} at {instant(place.start):%H:%M:%SZ}"
        told.append(Event(context.now, EventReason.PROVISIONING, text, place.key, place.pool[0]))
    return told


def _provisioning(status: GPRStatus, place: Placement, nodes: tuple[str, ...], now: datetime) -> GPRStatus:
    cluster, pool = place.pool
    return status.edited(
        phase=advance(status.phase, Move.DECIDE),
        reason=None,
        message=None,
        estimated_start_time=instant(place.start),
        estimated_end_time=instant(place.end),
        estimated_cluster=cluster,
        estimated_pool=pool,
        bound_nodes=(),
        forecast=None,
        assignment=Assignment(cluster=cluster, pool=pool, nodes=nodes),
        held_from=now,
        checks=(),
    )


def next_instants(world: Snapshot, planned: Plan, settings: Settings) -> tuple[datetime, ...]:
    """When starts are due."""
    lead = int(settings.start_lead.total_seconds())
    found = []
    for place in planned.placements.values():
        pool = world.pools[place.pool]
        if not pool.observed and pool.open:
            found += [place.start - pool.prepare - lead, place.start - pool.prepare, place.start]
    return tuple(instant(at) for at in sorted(set(found)) if at > world.now)
