"""Hands out nodes, and time of a slice, to the decisions of one cycle; each is given only once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from scheduler.choices.node_choice import Need, choose_nodes
from scheduler.choices.topology import PLAIN, Traits
from scheduler.snapshot import Lease, Pool, PoolKey, Window
from schemas.reading.units import seconds


class FreeNodes:
    """Free nodes of every pool at one instant, given all leases; promises are not considered."""

    def __init__(
        self,
        pools: Mapping[PoolKey, Pool],
        leases: Mapping[str, Lease],
        now: datetime,
        traits: Callable[[str], Mapping[str, Traits]] = lambda _: {},
    ) -> None:
        """`traits` describes the nodes of a cluster; it is called only when nodes are chosen."""
        self._pools = pools
        self._traits = traits
        self._leases = dict(leases)
        self._now = now
        self._taken: dict[PoolKey, set[str]] = {}

    def take(
        self,
        pool: PoolKey,
        count: int,
        until: datetime,
        avoid: frozenset[str] = frozenset(),
        bound: tuple[str, ...] = (),
        *,
        beside: tuple[str, ...] = (),
    ) -> tuple[str, ...] | None:
        """`count` nodes of an open, managed pool, free from now to `until` and its drain; None: not enough.

        `bound` nodes are fixed by the plan, `avoid` are excluded, `beside` are the lease's other nodes.
        """
        found = self._pools.get(pool)
        if found is None or found.observed or not found.open:
            return None
        taken = self._taken.setdefault(pool, set())
        hold = Window(seconds(self._now), seconds(until) + found.drain)
        leases = [lease for lease in self._leases.values() if lease.pool == pool]
        traits = self._traits(pool[0])
        wanted = Need(count, hold, bound, beside)
        nodes = choose_nodes(found, leases, wanted, avoid | taken, lambda name: traits.get(name, PLAIN))
        if nodes is not None:
            taken.update(nodes)
        return nodes

    def move(self, key: str, start: datetime, end: datetime) -> bool:
        """Moves a decided lease to another time; False, without a change, if its slice has another lease then."""
        lease, begin, until = self._leases.get(key), seconds(start), seconds(end)
        if lease is None or any(
            other.slice == lease.slice and other.start < until and begin < other.end
            for other in self._leases.values()
            if other.key != key
        ):
            return False
        later = until - lease.end
        self._leases[key] = replace(lease, start=begin, end=until, held_until=lease.held_until + later)
        return True
