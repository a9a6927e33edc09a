"""Names for many planned requests, one after the other: what `node_choice.choose_nodes` would choose for each.

Each choice there looks at every node again, which takes half a minute for 10,000 requests on 2,000 nodes. Here nodes
with the same windows stand together, and a node moves between free and held only when a hold begins or ends.

Held by tests/scheduler/choices/test_node_turns.py: the same names as `choose_nodes`, on every world.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field

from scheduler.calendars.elastic import is_placeholder
from scheduler.calendars.stretches import free_gaps, free_throughout
from scheduler.choices.node_choice import Need
from scheduler.snapshot import FOREVER, Lease, Pool


@dataclass(slots=True)
class _Alike:
    """Nodes with the same windows."""

    windows: list[tuple[int, int]]
    free: list[int] = field(default_factory=list)
    """Places of those that no hold has, in the pool's order."""

    def take(self, place: int) -> None:
        del self.free[bisect_left(self.free, place)]

    def has(self, place: int) -> bool:
        at = bisect_left(self.free, place)
        return at < len(self.free) and self.free[at] == place


class NodesInTurn:
    """The nodes of one pool. Ask in order of `hold.begin`; the standing leases are those of the pool."""

    def __init__(self, pool: Pool, leases: Iterable[Lease], now: int) -> None:
        self._names = pool.nodes
        self._places = {name: place for place, name in enumerate(pool.nodes)}
        self._holds = [0] * len(pool.nodes)
        self._held: list[tuple[int, int]] = []
        windows = {name: [(one.begin, one.end) for one in of] for name, of in pool.windows.items()}
        standing: list[tuple[int, int]] = []
        for lease in leases:
            for name in lease.nodes:
                if name not in self._places or lease.held_until <= now:
                    continue
                if lease.held_from > now:
                    windows.setdefault(name, []).append((lease.held_from, lease.held_until))
                else:
                    standing.append((lease.held_until, self._places[name]))
        self._alike = self._grouped(windows)
        for until, place in standing:
            self._hold(place, until)

    def _grouped(self, windows: dict[str, list[tuple[int, int]]]) -> list[_Alike]:
        groups: dict[tuple[tuple[int, int], ...], _Alike] = {}
        self._group: list[_Alike | None] = []
        for place, name in enumerate(self._names):
            if is_placeholder(name):
                self._group.append(None)
                continue
            busy = windows.get(name, [])
            group = groups.setdefault(tuple(busy), _Alike(busy))
            group.free.append(place)
            self._group.append(group)
        return list(groups.values())

    def choose(self, wanted: Need) -> tuple[str, ...] | None:
        """Names free for the whole hold, which they serve from now on; None if there are too few."""
        self._release(wanted.hold.begin)
        open_ = [
            ((window.end < FOREVER, window.end), group)
            for group in self._alike
            if group.free
            and (window := free_throughout(free_gaps(group.windows, wanted.hold.begin), wanted.hold))
            is not None
        ]
        if sum(len(group.free) for _, group in open_) < wanted.nodes:
            return None
        chosen = self._bound(wanted, open_)
        taken = set(chosen)
        by_end: dict[tuple[bool, int], list[_Alike]] = {}
        for end, group in sorted(open_, key=lambda one: one[0]):
            by_end.setdefault(end, []).append(group)
        for groups in by_end.values():
            for place in heapq.merge(*(group.free for group in groups)):
                if len(chosen) == wanted.nodes:
                    break
                if place not in taken:
                    chosen.append(place)
        for place in chosen:
            self._hold(place, wanted.hold.end)
        return tuple(self._names[place] for place in sorted(chosen))

    def _bound(self, wanted: Need, open_: list[tuple[tuple[bool, int], _Alike]]) -> list[int]:
        """The named ones that are free, as many as are wanted: those first whose free time suits best."""

        ends = {id(group): end for end, group in open_}
        found = set[tuple[tuple[bool, int], int]]()
        for name in wanted.bound:
            place = self._places.get(name, -1)
            group = self._group[place] if place >= 0 else None
            if group is not None and id(group) in ends and group.has(place):
                found.add((ends[id(group)], place))
        return [place for _, place in sorted(found)[: wanted.nodes]]

    def _hold(self, place: int, until: int) -> None:
        group = self._group[place]
        if group is not None and self._holds[place] == 0:
            group.take(place)
        self._holds[place] += 1
        heapq.heappush(self._held, (until, place))

    def _release(self, begin: int) -> None:
        while self._held and self._held[0][0] <= begin:
            _, place = heapq.heappop(self._held)
            self._holds[place] -= 1
            group = self._group[place]
            if group is not None and self._holds[place] == 0:
                insort(group.free, place)
