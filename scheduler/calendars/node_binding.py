"""Which free stretches a reservation uses if the nodes of a pool differ.

Reservations have fixed times here. What is chosen is the group of nodes (see `scheduler.calendars.calendar`) and, in
groups that end, their names. A bad choice could break a promise that can be kept, so a promise carries the names that
it was bound to; if those no longer fit, all are chosen again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from scheduler.calendars.calendar import PoolCalendar, Share
from scheduler.calendars.stretches import free_throughout
from scheduler.snapshot import FOREVER, Window

Stretches = Mapping[str, tuple[Window, ...]]

_REORDERINGS = 64
"""Restarts with the misfit first; each costs one pass over the pool's reservations."""
_STEPS = 4_000
"""Single choices examined after that: all there are for six requests of one node on four groups."""


@dataclass(frozen=True, slots=True)
class Held:
    """A reservation of nodes of one pool."""

    key: str
    nodes: int
    hold: Window
    shares: tuple[Share, ...] = ()


def wanted_shares(stretches: Stretches, held: Held, bound: Sequence[str]) -> tuple[Share, ...]:
    """The current groups of the names bound last time; unbound nodes use lasting ones."""
    shares: dict[int, int] = {}
    for name in bound[: held.nodes]:
        window = free_throughout(stretches.get(name, ()), held.hold)
        if window is not None:
            shares[window.end] = shares.get(window.end, 0) + 1
    shares[FOREVER] = shares.get(FOREVER, 0) + held.nodes - sum(shares.values())
    return tuple(sorted(shares.items()))


def rebind(empty: PoolCalendar, reservations: Sequence[Held]) -> tuple[tuple[Share, ...], ...] | None:
    """Groups for all `reservations` at once, in their order; None if none were found.

    `empty` is the pool without them. The problem is hard in general (interval scheduling on machines that come and
    go), so the search is bounded: it may miss a solution with dozens of windows and reservations.
    """
    found = _by_reordering(empty, reservations) or _by_search(empty, reservations)
    return None if found is None else tuple(found[held.key] for held in reservations)


def name_nodes(stretches: Stretches, reservations: Sequence[Held]) -> dict[str, tuple[str, ...]]:
    """Names for the nodes taken from groups that end, by request; lasting nodes are named at their start.

    Within a group, in order of begin, the first free node in the pool's order is used: there is always one.
    """
    names: dict[str, tuple[str, ...]] = {}
    order, groups = list(stretches), dict[int, _Group]()
    for place, windows in enumerate(stretches.values()):
        for window in windows:
            if window.end < FOREVER:
                groups.setdefault(window.end, _Group()).free(place, window.begin)
    for held in sorted(reservations, key=lambda held: (held.hold.begin, held.key)):
        for end, count in held.shares:
            if end < FOREVER:
                taken = groups[end].take(count, held.hold) if end in groups else ()
                names[held.key] = (*names.get(held.key, ()), *(order[place] for place in taken))
    return names


class _Group:
    """Nodes whose free time ends together, by position in the pool, for holds in order of begin."""

    def __init__(self) -> None:
        self._ready: list[int] = []  # both are heaps
        self._later: list[tuple[int, int]] = []

    def free(self, place: int, at: int) -> None:
        """The node at `place` is free from then on."""
        heappush(self._later, (at, place))

    def take(self, count: int, hold: Window) -> list[int]:
        """Take the first free nodes for this hold."""
        while self._later and self._later[0][0] <= hold.begin:
            heappush(self._ready, heappop(self._later)[1])
        taken = [heappop(self._ready) for _ in range(min(count, len(self._ready)))]
        for place in taken:
            self.free(place, hold.end)
        return taken


def _by_reordering(empty: PoolCalendar, reservations: Sequence[Held]) -> dict[str, tuple[Share, ...]] | None:
    """Each takes the group that ends soonest, in order of begin; a misfit goes first in the next try."""
    order = sorted(reservations, key=lambda held: (held.hold.begin, held.hold.end, held.key))
    for _ in range(_REORDERINGS):
        calendar, found = empty.copy(), {}
        for place, held in enumerate(order):
            begin, end = held.hold.begin, held.hold.end
            if calendar.room(begin, end) < held.nodes:
                order.insert(0, order.pop(place))
                break
            found[held.key] = calendar.take(held.nodes, begin, end)
        else:
            return found
    return None


def _by_search(empty: PoolCalendar, reservations: Sequence[Held]) -> dict[str, tuple[Share, ...]] | None:
    """Depth-first over all choices for the first, then the second, and so on, for `_STEPS` choices."""
    order = sorted(reservations, key=lambda held: (held.hold.begin, held.hold.end, held.key))
    calendar, chosen = empty.copy(), list[tuple[Share, ...]]()
    choices = [_choices(calendar, order[0])]
    for _ in range(_STEPS):
        if len(chosen) == len(choices):
            held = order[len(chosen) - 1]
            calendar.give(chosen.pop(), held.hold.begin, held.hold.end)
        shares = next(choices[-1], None)
        if shares is None:
            choices.pop()
            if not choices:
                return None
            continue
        held = order[len(chosen)]
        calendar.take_exactly(shares, held.hold.begin, held.hold.end)
        chosen.append(shares)
        if len(chosen) == len(order):
            return {held.key: shares for held, shares in zip(order, chosen, strict=True)}
        choices.append(_choices(calendar, order[len(chosen)]))
    return None


def _choices(calendar: PoolCalendar, held: Held) -> Iterator[tuple[Share, ...]]:
    """All ways to take the nodes from groups, those that end soonest first."""
    begin, end = held.hold.begin, held.hold.end
    # With withheld nodes, groups may have more in total than there is room for.
    return _splits(
        held.nodes, calendar.groups_free(begin, end) if calendar.room(begin, end) >= held.nodes else ()
    )


def _splits(nodes: int, free: Sequence[Share]) -> Iterator[tuple[Share, ...]]:
    if not free:
        if nodes == 0:
            yield ()
        return
    (group, most), rest = free[0], free[1:]
    for count in range(min(nodes, most), -1, -1):
        for others in _splits(nodes - count, rest):
            yield ((group, count), *others) if count else others
