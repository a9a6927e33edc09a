"""When each node of a pool is free, from its windows and leases.

A request needs a node for one unbroken hold, so only a node's free stretches matter, and two stretches with the same
end are interchangeable. The stretches of nodes without windows never end, so such nodes are only counted. A node that
goes down at noon counts until then with those that end at noon, and after its window with those that never end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler.snapshot import FOREVER, Lease, Pool, PoolKey, Window


def free_stretches(pool: Pool, leases: Iterable[Lease], now: int) -> dict[str, tuple[Window, ...]]:
    """Free time of every node from `now` on, in the pool's order; leases of other pools are ignored."""
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
    """The free stretch that contains `hold`, if there is one."""
    return next((w for w in stretches if w.begin <= hold.begin and hold.end <= w.end), None)


def _busy(pool: Pool, leases: Iterable[Lease]) -> dict[str, list[tuple[int, int]]]:
    busy = {name: [(w.begin, w.end) for w in windows] for name, windows in pool.windows.items()}
    for lease in leases:
        if lease.pool == pool.key:
            for name in lease.nodes:
                busy.setdefault(name, []).append((lease.held_from, lease.held_until))
    return busy


def free_gaps(busy: list[tuple[int, int]], now: int) -> tuple[Window, ...]:
    """The free time of one node from `now` on."""
    # Holds may overlap windows (a node fails while in use), so busy times are merged first.
    free, since = [], now
    for begin, end in sorted(busy):
        if begin > since:
            free.append(Window(since, begin))
        since = max(since, end)
    if since < FOREVER:
        free.append(Window(since, FOREVER))
    return tuple(free)
