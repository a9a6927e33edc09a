"""When each node of a pool is free, from the windows and leases that are known.

A request needs a node for one unbroken hold, so a node is worth exactly its free stretches, and two stretches
that end together are interchangeable whatever came before them. Nodes without windows of their own end
"never" together, so they are plain numbers; a node that is to go down at noon is, until then, one of those
that end at noon, and after its window one of those that never end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler.snapshot import FOREVER, Lease, Pool, PoolKey, Window


def free_stretches(pool: Pool, leases: Iterable[Lease], now: int) -> dict[str, tuple[Window, ...]]:
    """Free time of every node from `now` on, in the pool's order; leases of other pools are passed over."""
    busy = _busy(pool, leases)
    untouched = (Window(now, FOREVER),)
    return {name: free_gaps(busy[name], now) if name in busy else untouched for name in pool.nodes}


def leases_by_pool(leases: Mapping[str, Lease]) -> dict[PoolKey, list[Lease]]:
    """Leases of each pool that has any."""
    found: dict[PoolKey, list[Lease]] = {}
    for lease in leases.values():
        found.setdefault(lease.pool, []).append(lease)
    return found


def free_throughout(stretches: Iterable[Window], hold: Window) -> Window | None:
    """The free stretch that holds all of `hold`, if there is one."""
    return next((w for w in stretches if w.begin <= hold.begin and hold.end <= w.end), None)


def _busy(pool: Pool, leases: Iterable[Lease]) -> dict[str, list[tuple[int, int]]]:
    busy = {name: [(w.begin, w.end) for w in windows] for name, windows in pool.windows.items()}
    for lease in leases:
        if lease.pool == pool.key:
            for name in lease.nodes:
                busy.setdefault(name, []).append((lease.held_from, lease.held_until))
    return busy


def free_gaps(busy: list[tuple[int, int]], now: int) -> tuple[Window, ...]:
    """What is left from `now` on of one node's time."""
    # Holds may overlap windows (a node fails while it serves), so what is busy is their union.
    free, since = [], now
    for begin, end in sorted(busy):
        if begin > since:
            free.append(Window(since, begin))
        since = max(since, end)
    if since < FOREVER:
        free.append(Window(since, FOREVER))
    return tuple(free)
