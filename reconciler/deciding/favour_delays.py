"""Whom a favour would delay: grace for a running request, or a preemption that is called off. Pure.

A favour lasts; trouble of the moment does not. A cluster that does not answer, or a node that is silent, takes promises
out of the plan for a few minutes. So a favour is judged twice: in the world as it is, and in the same world with every
cluster answering and every node in service. There a request counts with the start that it was promised before the
trouble. Held by tests/cases/reconciler/grace.yaml and tests/reconciler/deciding/test_favour_delays.py.
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
"""Causes of slips that may be over soon: the start that they took counts as promised."""


def whom_it_delays(
    lease: Lease, worlds: tuple[Snapshot, Snapshot], wanted: Wanted, facts: Facts
) -> str | None:
    """The first request that starts later than promised when `lease` is as in the second of these worlds.

    None: no request does. Costs two plans, and two more while there is trouble.
    """
    before, after = worlds
    promised = _promised(before, facts)
    found = first_in_the_way(lease, after) or first_later(before, after, promised)
    calm = in_calm(before, wanted, facts)
    if found is not None or calm.pools == before.pools:
        return found
    return first_later(calm, in_calm(after, wanted, facts), promised)


def first_in_the_way(lease: Lease, snapshot: Snapshot) -> str | None:
    """The first request decided already whose nodes, or whose slice, this lease would still hold at its start."""

    def clashes(other: Lease) -> bool:
        meets = other.start < lease.end and lease.start < other.end
        held = other.held_from < lease.held_until and lease.held_from < other.held_until
        shares = other.pool == lease.pool and not set(lease.nodes).isdisjoint(other.nodes)
        return (other.slice == lease.slice and meets) or (shares and held)

    return next((k for k, o in sorted(snapshot.leases.items()) if k != lease.key and clashes(o)), None)


def first_later(before: Snapshot, after: Snapshot, promised: Mapping[str, int]) -> str | None:
    """The first request in rank order that starts later than it was promised, and later than it would else.

    A promise that holds in neither world counts too: what makes it late is no reason to make it later.
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
    """The start that each request was promised: the earliest of those that trouble took and that of now.

    What trouble took counts after it too: the cycle that sees its end has not given the start back yet.
    """
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
    """Starts that it lost to trouble since it asks for what it asks for now."""
    return [
        seconds(slip.was)
        for slip in status.slips
        if slip.at >= status.filed_at and any(one.cause in TROUBLE for one in slip.causes)
    ]
