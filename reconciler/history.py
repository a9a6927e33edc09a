"""A repository's own requests as a trace: who asked when for what, and how long they really used it. Pure.

What counts is what the status has: requests whose files were removed are gone from it. Left out are requests that
never waited for nodes (rejected, still waiting for approval, cancelled before they started, fitting nowhere).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.facts import Facts, Wanted
from scheduler.fit import candidate_pools
from scheduler.simulating.trace import Arrival, Trace
from scheduler.snapshot import Pool, PoolKey, Request
from schemas.status import GPRStatus, Phase
from schemas.units import seconds

_NEVER_WAITED = frozenset({Phase.PENDING_APPROVAL, Phase.REJECTED})


def history(facts: Facts, wanted: Wanted, since: datetime | None = None) -> Trace:
    """Everybody who was filed from `since` on, on the pools as the manifests have them now."""
    pools = {key: pool for key, pool in wanted.pools.items() if not pool.observed} or dict(wanted.pools)
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
    never = status.phase is Phase.CANCELLED and status.start_time is None
    if slice_ is None or never or status.phase in _NEVER_WAITED:
        return None
    usable = candidate_pools(spec, slice_, pools)
    if not usable:
        return None
    duration = int((spec.duration + status.extended_by).total_seconds())
    filed_at = seconds(status.filed_at)
    request = Request(
        key=key,
        slice=spec.slice,
        nodes=spec.nodes,
        duration=duration,
        pools=usable,
        priority=spec.priority,
        move=spec.move,
        filed_at=filed_at,
        not_before=filed_at if spec.not_before is None else max(filed_at, seconds(spec.not_before)),
    )
    return Arrival(request, min(_used(status, duration), duration), key, spec.preemptible)


def _used(status: GPRStatus, duration: int) -> int:
    """Seconds until it gave its nodes back; who still runs or waits uses all of its time as far as anybody knows."""
    start, end = status.start_time, status.end_time
    is_over = status.phase in {Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED, Phase.RELEASING}
    if not is_over or start is None or end is None:
        return duration
    before = timedelta() if status.remaining is None else status.accepted_spec.duration - status.remaining
    return max(0, int((before + (end - start)).total_seconds()))
