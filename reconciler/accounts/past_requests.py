"""A repository's requests as a trace: what was requested when, and how long it was really used. Pure.

Requests whose files were removed are missing, and so are those that never waited for nodes (rejected, waiting
for approval, cancelled before the start, fitting nowhere). Pools are chosen as in the controller.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from reconciler.accounts.insights import time_used
from reconciler.model.facts import Facts, Wanted
from scheduler.calendars.elastic import existing
from scheduler.choices.fit import candidate_pools, usable_pools
from scheduler.choices.pool_choice import Choosing, choice
from scheduler.replay.trace import Arrival, Trace
from scheduler.snapshot import Pool, PoolKey, Request
from schemas.reading.units import seconds
from schemas.status.gpr_status import GPRStatus, Phase

_NEVER_WAITED = frozenset({Phase.PENDING_APPROVAL, Phase.REJECTED})


def history(facts: Facts, wanted: Wanted, since: datetime | None = None) -> Trace:
    """All requests filed from `since` on, on the pools of today's manifests with their existing nodes."""
    there = {key: replace(pool, nodes=existing(pool)) for key, pool in wanted.pools.items()}
    pools = {key: pool for key, pool in there.items() if not pool.observed} or there
    found = [
        arrival
        for key, status in sorted(facts.requests.items())
        if (since is None or status.filed_at >= since)
        and (arrival := _arrival(key, status, wanted, pools)) is not None
    ]
    found.sort(key=lambda arrival: (arrival.request.filed_at, arrival.request.key))
    return Trace(
        begin=min((arrival.request.filed_at for arrival in found), default=seconds(facts.at)),
        pools=pools,
        arrivals=tuple(found),
        weights={name: float(spec.weight) for name, spec in wanted.slices.items()},
        order=tuple(arrival.request.key for arrival in found),
    )


def _arrival(key: str, status: GPRStatus, wanted: Wanted, pools: dict[PoolKey, Pool]) -> Arrival | None:
    spec, slice_ = status.accepted_spec, wanted.slices.get(status.accepted_spec.slice)
    never = status.phase is Phase.CANCELLED and status.start_time is None and not status.served
    if slice_ is None or never or status.phase in _NEVER_WAITED:
        return None
    usable = _usable(status, wanted, pools)
    if not usable:
        return None
    duration = int((spec.duration + status.extended_by).total_seconds())
    filed_at = seconds(status.filed_at)
    not_before = filed_at if spec.not_before is None else max(filed_at, seconds(spec.not_before))
    bursts = {name: cluster.burst for name, cluster in wanted.clusters.items() if cluster.burst is not None}
    chosen = choice(Choosing(spec, not_before), usable, pools, bursts)
    request = Request(
        key=key,
        slice=spec.slice,
        nodes=spec.nodes,
        duration=duration,
        pools=chosen.pools,
        fallback=chosen.fallback,
        priority=spec.priority,
        move=spec.move,
        filed_at=filed_at,
        not_before=not_before,
    )
    return Arrival(request, min(_used(status, duration), duration), key, spec.preemptible)


def _usable(status: GPRStatus, wanted: Wanted, pools: dict[PoolKey, Pool]) -> tuple[PoolKey, ...]:
    """Where it might run, with or without an approval; wherever it fits, if today's policy allows nothing."""
    spec, limit = status.accepted_spec, None if status.approval is None else status.approval.limit
    slice_ = wanted.slices[spec.slice]
    return usable_pools(spec, slice_, wanted.project, pools, limit) or candidate_pools(spec, slice_, pools)


def _used(status: GPRStatus, duration: int) -> int:
    """Seconds until it released its nodes; a running or waiting request counts with its full duration."""
    if status.phase not in {Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED, Phase.RELEASING}:
        return duration
    used = time_used(status, status.end_time or status.filed_at)
    return duration if used is None else int(used.total_seconds())
