"""The nodes of a replay: free, held, or out.

Names are assigned as by the controller: when a hold begins, first those bound by the plan, and never placeholders of
elastic pools.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from scheduler.calendars.elastic import existing
from scheduler.choices.node_choice import Need, choose_nodes
from scheduler.snapshot import FOREVER, Lease, Pool, PoolKey, Request, Window

Ints = NDArray[np.int64]
_OUT = (Window(0, FOREVER),)


class Fleet:
    """Current pools and leases. A node serves at most one lease; a node that is out serves none."""

    def __init__(self, pools: Mapping[PoolKey, Pool], running: Mapping[str, Lease]) -> None:
        self.pools = dict(pools)
        self.leases = dict(running)
        # Dictionaries for their order: every run assigns the same names.
        self._free = {key: dict.fromkeys(existing(pool)) for key, pool in pools.items()}
        self._out: dict[PoolKey, set[str]] = {key: set() for key in pools}
        self._returning: dict[PoolKey, tuple[Ints, Ints]] = {}
        # Where nodes have windows: one that is free now may not be free for long.
        self._differing = {key for key, pool in pools.items() if pool.windows}
        for lease in running.values():
            for name in lease.nodes:
                del self._free[lease.pool][name]

    def free(self, pool: PoolKey) -> int:
        """Nodes that are neither held nor out."""
        return len(self._free[pool])

    def returning(self, pool: PoolKey) -> tuple[Ints, Ints]:
        """When held nodes become free, in order, and how many each time."""
        known = self._returning.get(pool)
        if known is None:
            known = self._returning[pool] = self._read_returning(pool)
        return known

    def _read_returning(self, pool: PoolKey) -> tuple[Ints, Ints]:
        found: dict[int, int] = {}
        for lease in self.leases.values():
            if lease.pool == pool:
                nodes = sum(name not in self._out[pool] for name in lease.nodes)
                found[lease.held_until] = found.get(lease.held_until, 0) + nodes
        instants = sorted(found)
        return np.array(instants, dtype=np.int64), np.array([found[at] for at in instants], dtype=np.int64)

    def _return(self, lease: Lease, sign: int) -> None:
        """Its nodes become free at its end, or (negative) will not."""
        known = self._returning.get(lease.pool)
        if known is None or self._out[lease.pool]:
            self._returning.pop(lease.pool, None)  # computed again when needed
            return
        at, nodes = known
        i = int(at.searchsorted(lease.held_until))
        if i == at.size or at[i] != lease.held_until:
            at, nodes = np.insert(at, i, lease.held_until), np.insert(nodes, i, 0)
        nodes[i] += sign * len(lease.nodes)
        self._returning[lease.pool] = (at, nodes) if nodes[i] else (np.delete(at, i), np.delete(nodes, i))

    def take(self, request: Request, now: int) -> Lease | None:
        """Nodes from now on for a request whose promise is due; None if too few are free."""
        promise = request.promise
        assert promise is not None
        pool, end = self.pools[promise.pool], promise.start + request.duration
        hold = Window(now, end + pool.drain)
        nodes = self._choose(pool, Need(request.nodes, hold, promise.bound))
        if nodes is None:
            return None
        for name in nodes:
            del self._free[pool.key][name]
        lease = Lease(request.key, request.slice, pool.key, nodes, now, promise.start, end, hold.end)
        self.leases[request.key] = lease
        self._return(lease, 1)
        return lease

    def _choose(self, pool: Pool, need: Need) -> tuple[str, ...] | None:
        if pool.key in self._differing:
            return choose_nodes(replace(pool, nodes=existing(pool)), self.leases.values(), need)
        free = self._free[pool.key]
        return tuple(islice(free, need.nodes)) if len(free) >= need.nodes else None

    def stop(self, key: str, now: int, cleaning: str) -> Lease:
        """End the slice's use of the nodes; until they are clean they are held under the name `cleaning`."""
        lease = self.leases.pop(key)
        ended = replace(
            lease, start=min(lease.start, now), end=now, held_until=now + self.pools[lease.pool].drain
        )
        self.leases[cleaning] = replace(ended, key=cleaning)
        self._return(lease, -1)
        self._return(ended, 1)
        return ended

    def give_back(self, key: str) -> Lease:
        """Its nodes are clean: remove the lease."""
        lease = self.leases.pop(key)
        self._return(lease, -1)
        out = self._out[lease.pool]
        self._free[lease.pool].update((name, None) for name in lease.nodes if name not in out)
        return lease

    def fail(self, pool: PoolKey, node: str) -> Lease | None:
        """The node is out until it is repaired; returns the lease that loses it."""
        old = self.pools[pool]
        self.pools[pool] = replace(old, windows={**old.windows, node: _OUT})
        self._out[pool].add(node)
        self._returning.pop(pool, None)
        self._free[pool].pop(node, None)
        return next((lease for lease in self.leases.values() if node in lease.nodes), None)

    def mend(self, pool: PoolKey, node: str, windows: tuple[Window, ...]) -> None:
        """The node is back, with these windows of its own."""
        old = self.pools[pool]
        others = {name: found for name, found in old.windows.items() if name != node}
        self.pools[pool] = replace(old, windows={**others, node: windows} if windows else others)
        self._out[pool].discard(node)
        self._returning.pop(pool, None)
        if not any(node in lease.nodes for lease in self.leases.values()):
            self._free[pool][node] = None

    def replace_node(self, key: str, node: str) -> Lease | None:
        """Replace a bad node of a lease by a free one; None if none is free."""
        lease = self.leases[key]
        spare = next(iter(self._free[lease.pool]), None)
        if spare is None:
            return None
        del self._free[lease.pool][spare]
        nodes = tuple(spare if name == node else name for name in lease.nodes)
        self.leases[key] = replace(lease, nodes=nodes)
        return self.leases[key]
