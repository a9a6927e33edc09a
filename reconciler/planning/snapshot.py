"""Builds the planner's `Snapshot` from documents, statuses and node records. Pure.

One function builds the snapshot as committed and as of now: the difference is what happened, and every cause
of a slip can be tested by undoing it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import is_

from reconciler.accounts.monthly_limits import is_out
from reconciler.lifecycle.requeue import as_queued, is_overdue
from reconciler.model.facts import Facts, NodeKey, Seen, Wanted
from reconciler.model.pools import home_of, pools_at, with_guests
from reconciler.model.status_edits import clean_by, counted_end, lease_duration
from reconciler.model.statuses import holders, live
from reconciler.planning.pool_choice import Offering, offering, remembered
from reconciler.planning.queue_place import latest_of, standing
from reconciler.planning.reserve import with_reserve
from scheduler.plan import plan
from scheduler.snapshot import Lease, Pool, PoolKey, Promise, Request, Snapshot, shown_slice
from schemas.reading.units import seconds
from schemas.status.gpr_status import GPRStatus, Phase
from schemas.status.node_status import NodeState


def build_snapshot(
    wanted: Wanted, facts: Facts, seen: Seen | None, anew: Collection[str] | None = None
) -> Snapshot:
    """The planner's snapshot at `facts.at`; `seen` None: as committed, without workloads.

    `anew` (see `queue_place.asked_anew`) may displace others and have no promise; None: all without a promise may.
    """
    pools, leases = pools_and_leases(wanted, facts)
    ready = slices_with_waiting_pods(seen)

    def world(offered: Offering) -> Snapshot:
        look = _Look(ready, facts.at, offered)
        requests = {
            key: request
            for key, status in live(facts.requests).items()
            if (request := _known_request(key, status, wanted, look, anew)) is not None
        }
        requests |= {
            key: request
            for key in leases
            if (request := _returning(key, facts.requests[key], wanted, look)) is not None
        }
        return Snapshot(now=seconds(facts.at), pools=pools, leases=leases, requests=requests)

    everyone = offering(wanted, facts, pools)
    return world(remembered(everyone, facts, lambda offered: plan(world(offered)).placements))


def returning_requests(
    leaving: Mapping[str, GPRStatus], wanted: Wanted, facts: Facts, world: Snapshot
) -> dict[str, Request]:
    """Evicted requests, planned for their remaining time while they still hold nodes."""
    look = _Look(None, facts.at, offering(wanted, facts, world.pools))
    found = ((key, _returning(key, status, wanted, look)) for key, status in leaving.items())
    return {key: request for key, request in found if request is not None}


def _returning(key: str, status: GPRStatus, wanted: Wanted, look: _Look) -> Request | None:
    if status.eviction is None or status.assignment is None:
        return None
    cluster = wanted.clusters.get(status.assignment.cluster)
    drain = timedelta() if cluster is None else cluster.drain
    found = as_queued(status, drain)
    request = None if found is None else _request(key, found[0], wanted, look)
    if found is None or request is None:
        return None
    if is_overdue(status, drain, look.now):  # it keeps its promise while possible, but gets no other one
        start = None if request.promise is None else request.promise.start
        return None if start is None else replace(request, not_before=max(request.not_before, start))
    prepare = max((wanted.pools[pool].prepare for pool in request.pools), default=0)
    after = max(request.not_before, seconds(found[1]) + prepare)
    return replace(request, not_before=after, may_displace=request.promise is not None)


def pools_and_leases(wanted: Wanted, facts: Facts) -> tuple[dict[PoolKey, Pool], dict[str, Lease]]:
    """The pools at `facts.at`, and the leases that hold their nodes."""
    leases = {
        key: lease
        for key, status in holders(facts.requests).items()
        if (lease := lease_of(key, status, wanted, facts)) is not None
    }
    pools = with_guests(pools_at(wanted, facts), leases.values())
    return with_reserve(pools, leases, wanted, facts), leases


def _as_asked(request: Request, anew: bool) -> Request:
    if anew:
        return replace(request, promise=None, may_displace=True)
    return replace(request, may_displace=request.promise is not None)


def lease_of(key: str, status: GPRStatus, wanted: Wanted, facts: Facts) -> Lease | None:
    """The nodes a request holds; after its lease they count until they are clean or overdue."""
    held = status.assignment
    start = status.start_time or status.estimated_start_time
    end = counted_end(status) or status.estimated_end_time
    if held is None or start is None or end is None or status.held_from is None:
        return None
    spec = wanted.clusters.get(held.cluster)
    nodes, drain = held.nodes, 0 if spec is None else int(spec.drain.total_seconds())
    held_until = seconds(end) + drain
    if status.phase is Phase.RELEASING:
        clean = {c.node for c in status.checks if c.stage == "post"}
        nodes = tuple(n for n in nodes if n not in clean and not _is_dirty(facts, held.cluster, n))
        due = clean_by(status, timedelta(seconds=drain))
        held_until = max(held_until, seconds(due or end), seconds(facts.at) + 1)
    elif status.phase not in {Phase.PROVISIONING, Phase.PROVISIONED}:
        return None
    return Lease(
        key=key,
        slice=status.accepted_spec.slice,
        pool=home_of(held, wanted.pools),
        nodes=nodes,
        held_from=seconds(status.held_from),
        start=min(seconds(start), seconds(end)),
        end=seconds(end),
        held_until=held_until,
    )


def _is_dirty(facts: Facts, cluster: str, node: str) -> bool:
    record = facts.nodes.get((cluster, node))
    return record is not None and record.state is NodeState.DIRTY


@dataclass(frozen=True, slots=True)
class _Look:
    """What all waiting requests are judged with; `ready`: slices with a pending GPU pod, None: unknown."""

    ready: frozenset[str] | None
    now: datetime
    offering: Offering


@dataclass(frozen=True, slots=True)
class _Known:
    """A cached request with its inputs; valid while these are the same and the time is within limits."""

    made_from: tuple[object, ...]
    shut: frozenset[str]
    request: Request | None
    since: int
    until: int


STEADY = timedelta(minutes=10)
"""How far ahead a request's rank is checked for changes."""


def _steady_until(request: Request | None, status: GPRStatus, wanted: Wanted, look: _Look) -> int:
    """Until when waiting adds nothing to its rank: what it adds only grows, so two equal values suffice."""
    later, is_steady = look.now + STEADY, False
    if request is not None and _is_plain(status, look):
        is_steady = _at(request, status, wanted, later) is request
    return seconds(later if is_steady else look.now)


def _known_request(
    key: str, status: GPRStatus, wanted: Wanted, look: _Look, anew: Collection[str] | None
) -> Request | None:
    """The request for the planner; the same object as the last time if none of its inputs differ."""
    if status.phase is not Phase.QUEUED:
        return None
    spec = status.accepted_spec
    asks_anew = None if anew is None else key in anew
    waits = spec.start == "ready" and look.ready is not None and spec.slice not in look.ready
    made_from = (status, wanted.slices.get(spec.slice), wanted.project, wanted.pools, asks_anew, waits)
    shut, now = look.offering.shut.get(key, _NOWHERE), seconds(look.now)
    known = wanted.worked_out.get(key) if _is_plain(status, look) else None
    if isinstance(known, _Known) and known.shut == shut and all(map(is_, known.made_from, made_from)):
        if known.request is None or known.since == now or known.since <= now < known.until:
            return known.request
        request: Request | None = _at(known.request, status, wanted, look.now)
    else:
        request = _request(key, status, wanted, look)
        if request is not None and asks_anew is not None:
            request = _as_asked(request, asks_anew)
    wanted.worked_out[key] = _Known(
        made_from, shut, request, now, _steady_until(request, status, wanted, look)
    )
    return request


_NOWHERE: frozenset[str] = frozenset()


def _is_plain(status: GPRStatus, look: _Look) -> bool:
    """True if its burst pools follow from its cached inputs, not from node health or the clock."""
    is_dated = not look.offering.bursts or seconds(status.filed_at) > 0
    return status.accepted_spec.prefer == "earliest" and is_dated


def _at(request: Request, status: GPRStatus, wanted: Wanted, now: datetime) -> Request:
    """With the priority gained by waiting until now."""
    pools = request.pools
    gpus = wanted.pools[pools[0]].gpus_per_node if pools else status.accepted_spec.gpus_per_node
    place = standing(request.key, status, gpus, wanted, now)
    if (place.boost, place.share, place.service) == (request.boost, request.share, request.service):
        return request
    return replace(request, boost=place.boost, share=place.share, service=place.service)


def _request(key: str, status: GPRStatus, wanted: Wanted, look: _Look) -> Request | None:
    ready, now = look.ready, look.now
    spec = status.accepted_spec
    slice_ = wanted.slices.get(spec.slice)
    if status.phase is not Phase.QUEUED or spec.stopped or slice_ is None or is_out(status, wanted):
        return None
    promise = promise_of(status)
    chosen = look.offering.of(key, status, promise)
    pools, policy = chosen.pools, wanted.project.scheduling
    is_shown = all(wanted.pools[pool].observed for pool in pools)
    if is_shown:
        promise = None
    waits = spec.start == "promised" or (
        spec.start == "ready" and ready is not None and spec.slice not in ready
    )
    gpus = wanted.pools[pools[0]].gpus_per_node if pools else spec.gpus_per_node
    place = standing(key, status, gpus, wanted, now)
    return Request(
        key=key,
        slice=shown_slice(spec.slice) if pools and is_shown else spec.slice,
        nodes=spec.nodes,
        duration=int(lease_duration(status).total_seconds()),
        pools=pools,
        fallback=chosen.fallback,
        priority=spec.priority,
        boost=place.boost,
        move=spec.move,
        share=place.share,
        service=place.service,
        filed_at=seconds(status.filed_at),
        latest=latest_of(status, policy),
        not_before=0 if spec.not_before is None else seconds(spec.not_before),
        promise=promise,
        movable=not waits,
    )


def promise_of(status: GPRStatus) -> Promise | None:
    start, cluster, pool = status.estimated_start_time, status.estimated_cluster, status.estimated_pool
    if start is None or cluster is None or pool is None:
        return None
    return Promise(pool=(cluster, pool), start=seconds(start), bound=status.bound_nodes)


def slices_with_waiting_pods(seen: Seen | None) -> frozenset[str] | None:
    """Slices with a pending GPU workload; None if unknown."""
    if seen is None:
        return None
    return frozenset(
        w.slice for view in seen.views.values() for w in view.workloads if w.gpus > 0 and w.phase == "Pending"
    )


def leased_nodes(facts: Facts) -> dict[NodeKey, str]:
    """The request (uid) that each node belongs to, as committed."""
    return {
        (status.assignment.cluster, node): status.uid
        for status in holders(facts.requests).values()
        if status.assignment is not None
        for node in status.assignment.nodes
    }


def stray_nodes(facts: Facts, seen: Seen) -> frozenset[NodeKey]:
    """Nodes with a lease in the cluster that no request has: not clean, whatever the reason."""
    holders = leased_nodes(facts)
    return frozenset(
        (cluster, node.name)
        for cluster, view in seen.views.items()
        for node in view.nodes.values()
        if node.lease is not None and holders.get((cluster, node.name)) != node.lease.uid
    )


def at(facts: Facts, now: datetime) -> Facts:
    return replace(facts, at=now)
