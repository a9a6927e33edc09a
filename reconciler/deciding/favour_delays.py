"""Which request a favour would delay: an extension of a running request, or a cancelled preemption. Pure.

A favour lasts, trouble passes: an unreachable cluster takes promises out of the plan for minutes only. So a
favour is judged twice: as things are, and with every cluster answering and every node in service, where a
request counts with the start promised before the trouble. Held by tests/cases/reconciler/grace.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconciler.model.facts import IN_SERVICE, Facts, Reachability, Wanted
from reconciler.model.pools import pools_at, with_guests
from reconciler.planning.reserve import with_reserve
from scheduler.plan import plan
from scheduler.snapshot import Lease, Snapshot
from schemas.reading.units import seconds
from schemas.status.gpr_status import Cause, GPRStatus

TROUBLE = frozenset({Cause.CLUSTER_UNREACHABLE, Cause.NODE_LOST, Cause.NODE_REPLACED, Cause.CHECKS_FAILED})
"""Causes of slips that may soon be over: the start lost to them still counts as promised."""


def whom_it_delays(
    lease: Lease, worlds: tuple[Snapshot, Snapshot], wanted: Wanted, facts: Facts
) -> str | None:
    """The first request that starts later than promised with `lease` as in the second snapshot; None: none.

    Costs two plans, and two more during trouble.
    """
    before, after = worlds
    promised = _promised(before, facts)
    found = first_in_the_way(lease, after) or first_later(before, after, promised)
    calm = in_calm(before, wanted, facts)
    if found is not None or calm.pools == before.pools:
        return found
    return first_later(calm, in_calm(after, wanted, facts), promised)


def first_in_the_way(lease: Lease, snapshot: Snapshot) -> str | None:
    """The first decided request whose nodes, or whose slice, this lease would still hold at its start."""

    def clashes(other: Lease) -> bool:
        meets = other.start < lease.end and lease.start < other.end
        held = other.held_from < lease.held_until and lease.held_from < other.held_until
        shares = other.pool == lease.pool and not set(lease.nodes).isdisjoint(other.nodes)
        return (other.slice == lease.slice and meets) or (shares and held)

    return next((k for k, o in sorted(snapshot.leases.items()) if k != lease.key and clashes(o)), None)


def first_later(before: Snapshot, after: Snapshot, promised: Mapping[str, int]) -> str | None:
    """The first request by rank that starts later than promised, and later than without the change.

    A promise that fails in both snapshots counts too: a late request must not be delayed further.
    """
    as_is, would_be = plan(before), plan(after)
    for key in would_be.order:
        was, now = as_is.placements.get(key), would_be.placements.get(key)
        if key not in promised or was is None:
            continue
        if now is None or now.start > max(promised[key], was.start):
            return key
    return None


def in_calm(world: Snapshot, wanted: Wanted, facts: Facts) -> Snapshot:
    """The same leases and requests, with every cluster answering and every node in service."""
    clusters = {name: Reachability(True, known.since) for name, known in facts.clusters.items()}
    nodes = {key: record for key, record in facts.nodes.items() if record.state in IN_SERVICE}
    quiet = replace(facts, clusters=clusters, nodes=nodes)
    pools = with_guests(pools_at(wanted, quiet), world.leases.values())
    return replace(world, pools=with_reserve(pools, world.leases, wanted, quiet))


def _promised(world: Snapshot, facts: Facts) -> dict[str, int]:
    """The earliest of each request's promised start and the starts that it lost to trouble, even if that is over."""
    found: dict[str, int] = {}
    for key, request in world.requests.items():
        status = facts.requests.get(key)
        starts = [] if status is None else _taken(status)
        if request.promise is not None:
            starts.append(request.promise.start)
        if starts:
            found[key] = min(starts)
    return found


def _taken(status: GPRStatus) -> list[int]:
    """Starts lost to trouble since its spec last changed."""
    return [
        seconds(slip.was)
        for slip in status.slips
        if slip.at >= status.filed_at and any(one.cause in TROUBLE for one in slip.causes)
    ]
