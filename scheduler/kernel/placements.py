"""Placements that become objects on access.

A plan of a hundred thousand requests is two arrays; most readers look at a few placements, and creating all objects
would delay the next answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from scheduler.calendars.node_binding import Held, name_nodes
from scheduler.kernel.fleet import Fleet
from scheduler.kernel.rows import Rows
from scheduler.snapshot import Displaced, Placement, Window

if TYPE_CHECKING:
    from scheduler.kernel.world import Shares

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Placed:
    """A plan as arrays, by rank: each request's pool (-1: no start), its start, and the groups of its nodes."""

    rows: Rows
    fleet: Fleet
    pool: Ints
    start: Ints
    shares: Shares
    now: int


class Displacements(Sequence[Displaced]):
    """Which request gave way to which, in order; equals a tuple of the same."""

    __slots__ = ("_keys", "_who", "_whom")

    def __init__(self, keys: Sequence[str], who: Ints, whom: Ints) -> None:
        """`who` and `whom` are indices of keys; `whom` is -1 if a promise could not hold any more."""
        self._keys, self._who, self._whom = keys, who, whom

    def __len__(self) -> int:
        return int(self._who.size)

    @overload
    def __getitem__(self, index: int) -> Displaced: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Displaced]: ...
    def __getitem__(self, index: int | slice) -> Displaced | Sequence[Displaced]:
        if isinstance(index, slice):
            return Displacements(self._keys, self._who[index], self._whom[index])
        who, whom = int(self._who[index]), int(self._whom[index])
        return Displaced(self._keys[who], "" if whom < 0 else self._keys[whom])

    def __iter__(self) -> Iterator[Displaced]:
        for who, whom in zip(self._who.tolist(), self._whom.tolist(), strict=True):
            yield Displaced(self._keys[who], "" if whom < 0 else self._keys[whom])

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class Placements(Mapping[str, Placement]):
    """By request, in rank order; equals a dict of the same."""

    __slots__ = ("_bound", "_made", "_numbers", "placed")

    def __init__(self, placed: Placed) -> None:
        self.placed = placed
        self._numbers: dict[str, int] | None = None
        self._made: dict[int, Placement] = {}
        self._bound: dict[int, dict[str, tuple[str, ...]]] = {}

    def __getitem__(self, key: str) -> Placement:
        return self._at(self._places()[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._places())

    def __len__(self) -> int:
        return int(np.count_nonzero(self.placed.pool >= 0))

    def __contains__(self, key: object) -> bool:
        return key in self._places()

    def __repr__(self) -> str:
        return repr(dict(self))

    def starts(self) -> dict[str, int]:
        """Without the objects."""
        starts = self.placed.start.tolist()
        return {key: starts[i] for key, i in self._places().items()}

    def _places(self) -> dict[str, int]:
        if self._numbers is None:
            keys = self.placed.rows.keys
            self._numbers = {keys[i]: i for i in np.flatnonzero(self.placed.pool >= 0).tolist()}
        return self._numbers

    def _at(self, i: int) -> Placement:
        known = self._made.get(i)
        if known is None:
            placed = self.placed
            request, number, start = placed.rows.requests[i], int(placed.pool[i]), int(placed.start[i])
            bound = self._bound_in(number).get(request.key, ())
            end = start + request.duration
            known = self._made[i] = Placement(request.key, placed.fleet.keys[number], start, end, bound)
        return known

    def _bound_in(self, number: int) -> dict[str, tuple[str, ...]]:
        """Names of nodes with calendars of their own; assigned for a whole pool at once."""
        if self.placed.fleet.groups[number] == 1:  # all free time ends together
            return {}
        if number not in self._bound:
            held = [self._held(number, i) for i in np.flatnonzero(self.placed.pool == number).tolist()]
            self._bound[number] = name_nodes(self.placed.fleet.free[number].stretches(), held)
        return self._bound[number]

    def _held(self, number: int, i: int) -> Held:
        placed, pool = self.placed, self.placed.fleet.pools[number]
        request, start = placed.rows.requests[i], int(placed.start[i])
        hold = Window(max(placed.now, start - pool.prepare), start + request.duration + pool.drain)
        first = int(placed.shares.first[i])
        shares = range(first, first + int(placed.shares.counts[i]))
        ends, nodes = placed.fleet.ends, placed.shares.nodes
        found = tuple((int(ends[placed.shares.group[k]]), int(nodes[k])) for k in shares)
        return Held(request.key, request.nodes, hold, found)
