"""A project's reserve: nodes of a pool on which no request is planned, and what draws on them. Pure.

Extensions, replacements, and nodes out of service or in maintenance reduce the reserve for their time, without
affecting other requests; what remains of it stays free. All follows from committed facts. Held by
tests/cases/reconciler/reserve.yaml.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.lifecycle.early_end import queues_again
from reconciler.model.facts import Facts, Wanted
from reconciler.model.pools import ALWAYS
from reconciler.model.status_edits import lease_duration
from scheduler.snapshot import FOREVER, Lease, Pool, PoolKey, Snapshot, Window, Withheld
from schemas.reading.units import seconds
from schemas.status.gpr_status import GPRStatus

Draw = tuple[int, int, int]
"""Nodes drawn during [begin, end), as (begin, end, nodes)."""


def with_reserve(
    pools: Mapping[PoolKey, Pool], leases: Mapping[str, Lease], wanted: Wanted, facts: Facts
) -> dict[PoolKey, Pool]:
    """The pools minus their reserve; two entries for one pool add up."""
    found = dict(pools)
    kept: dict[PoolKey, int] = {}
    for entry in wanted.project.scheduling.reserve:
        key = (entry.cluster, entry.pool)
        kept[key] = kept.get(key, 0) + entry.nodes
    for key, nodes in kept.items():
        if key in found:
            missing = (entry for entry in found[key].withheld if not entry.reserve)
            draws = (*_out(found[key], leases), *_draws(key, leases, facts))
            withheld = (*missing, *left_over(nodes, draws))
            found[key] = replace(found[key], reserve=nodes, withheld=withheld)
    return found


def reserved(world: Snapshot, wanted: Wanted, facts: Facts) -> Snapshot:
    """The snapshot with the reserve that its leases leave."""
    if not wanted.project.scheduling.reserve:
        return world
    pools = with_reserve(world.pools, world.leases, wanted, facts)
    return world if pools == world.pools else replace(world, pools=pools)


def left_over(kept: int, draws: Iterable[Draw]) -> Iterator[Withheld]:
    """When how many of the kept nodes remain withheld after these draws."""
    steps: dict[int, int] = {0: 0}
    for begin, end, nodes in draws:
        steps[max(0, begin)] = steps.get(max(0, begin), 0) - nodes
        steps[end] = steps.get(end, 0) + nodes
    since, value, free = 0, 0, kept
    for begin, change in sorted(steps.items()):
        free += change
        if begin < FOREVER and max(0, free) != value:
            if value > 0:
                yield Withheld(since, begin, value, reserve=True)
            since, value = begin, max(0, free)
    if value > 0:
        yield Withheld(since, FOREVER, value, reserve=True)


def _out(pool: Pool, leases: Mapping[str, Lease]) -> Iterator[Draw]:
    """Its nodes that serve no new request: unhealthy, taken by others, or in maintenance once their lease ends."""
    held = {
        node: lease.held_until for lease in leases.values() for node in lease.nodes if lease.pool == pool.key
    }
    # By identity: most nodes share one calendar.
    alike: dict[tuple[int, int], tuple[tuple[Window, ...], int, int]] = {}
    for node, windows in pool.windows.items():
        until = held.get(node, 0)
        _, _, count = alike.get((id(windows), until), (windows, until, 0))
        alike[id(windows), until] = (windows, until, count + 1)
    for windows, until, count in alike.values():
        for window in windows:
            if window == ALWAYS[0]:
                yield (0, FOREVER, count)
            # A window that begins at 0 is a lease of another pool.
            elif window.begin > 0 and until < window.end:
                yield (max(window.begin, until), window.end, count)


def _draws(pool: PoolKey, leases: Mapping[str, Lease], facts: Facts) -> Iterator[Draw]:
    for key, lease in sorted(leases.items()):
        status = facts.requests.get(key)
        if lease.pool == pool and lease.nodes and status is not None:
            since = _planned_until(status, lease)
            if since is not None and since < lease.held_until:
                yield (since, lease.held_until, len(lease.nodes))


def _planned_until(status: GPRStatus, lease: Lease) -> int | None:
    """The end of its nodes' planned time, drain included; None: unknown, or not exceeded."""
    if status.start_time is None or queues_again(status):
        return None
    return seconds(status.start_time + lease_duration(status)) + lease.held_until - lease.end
