"""A project's reserve: nodes of a pool that nobody is planned on, and what draws on them. Pure.

Extensions and replacements are served from the reserve. What a lease holds beyond the time it was planned with, and
each node that is out of service, makes it smaller for as long as that is so, and nobody else notices; what is left of
it stays free. All of it follows from committed facts, and the passing of time alone changes nothing. Held by
tests/reconciler/test_reserving.py and tests/cases/reconciler/reserve.yaml.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.conditions import lease_duration
from reconciler.facts import IN_SERVICE, Facts, Wanted
from reconciler.leaving import queues_again
from scheduler.snapshot import FOREVER, Lease, Pool, PoolKey, Snapshot, Withheld
from schemas.status import GPRStatus
from schemas.units import seconds

Draw = tuple[int, int, int]
"""So many nodes on [begin, end), as (begin, end, nodes)."""


def with_reserve(
    pools: Mapping[PoolKey, Pool], leases: Mapping[str, Lease], wanted: Wanted, facts: Facts
) -> dict[PoolKey, Pool]:
    """The pools less what the project keeps of them; of two entries for one pool both count."""
    found = dict(pools)
    kept: dict[PoolKey, int] = {}
    for entry in wanted.project.scheduling.reserve:
        key = (entry.cluster, entry.pool)
        kept[key] = kept.get(key, 0) + entry.nodes
    for key, nodes in kept.items():
        if key in found:
            left = nodes - _out(found[key], facts)
            missing = (entry for entry in found[key].withheld if not entry.reserve)
            withheld = (*missing, *left_over(left, _draws(key, leases, facts)))
            found[key] = replace(found[key], reserve=nodes, withheld=withheld)
    return found


def reserved(world: Snapshot, wanted: Wanted, facts: Facts) -> Snapshot:
    """The world with its reserve as its leases leave it."""
    if not wanted.project.scheduling.reserve:
        return world
    pools = with_reserve(world.pools, world.leases, wanted, facts)
    return world if pools == world.pools else replace(world, pools=pools)


def left_over(kept: int, draws: Iterable[Draw]) -> Iterator[Withheld]:
    """What stays withheld when, of so many nodes, of which each of these draws takes its own as far as they go."""
    drawn = list(draws)
    instants = sorted({0, *(at for begin, end, _ in drawn for at in (begin, end)), FOREVER})
    since, value = 0, -1
    for begin in instants:
        left = max(0, kept - sum(n for first, end, n in drawn if first <= begin < end))
        if begin == FOREVER:
            left = -1
        if left != value:
            if value > 0:
                yield Withheld(since, begin, value, reserve=True)
            since, value = begin, left


def _out(pool: Pool, facts: Facts) -> int:
    """Its nodes that serve nobody new for their health, or because somebody else has taken them."""
    return sum(
        cluster == pool.key[0] and record.state not in IN_SERVICE and node in pool.nodes
        for (cluster, node), record in facts.nodes.items()
    )


def _draws(pool: PoolKey, leases: Mapping[str, Lease], facts: Facts) -> Iterator[Draw]:
    for key, lease in sorted(leases.items()):
        status = facts.requests.get(key)
        if lease.pool == pool and lease.nodes and status is not None:
            since = _planned_until(status, lease)
            if since is not None and since < lease.held_until:
                yield (since, lease.held_until, len(lease.nodes))


def _planned_until(status: GPRStatus, lease: Lease) -> int | None:
    """Until when its nodes were its own when they were planned, drain included; None: not known, or nothing beyond."""
    if status.start_time is None or queues_again(status):
        return None
    return seconds(status.start_time + lease_duration(status)) + lease.held_until - lease.end
