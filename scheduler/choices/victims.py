"""The leases to evict: those that leave enough room at the least cost. Pure.

The fewest leases go; among equally few those with the least lost, then those that began last. The choice is exact if
the search ends within `MOST_VISITS` steps; otherwise it may take the largest leases first.
Held by tests/scheduler/choices/test_preemption.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.calendars.calendar import Section

MOST_VISITS = 20_000
"""Most sets examined for one choice: a second in the worst case."""


@dataclass(frozen=True, slots=True)
class Option:
    """A lease that could end. `gives`: nodes per group, and the instant from which they are free anyway."""

    key: str
    nodes: int
    lost: int  # GPU-seconds
    age: int  # minus the instant at which it began: smaller is younger
    gives: tuple[tuple[int, int, int], ...]


def cheapest(
    section: Section, nodes: int, options: Sequence[Option], must: Sequence[str] = ()
) -> tuple[Option, ...] | None:
    """The cheapest set including `must` that frees `nodes` on the whole section; None if none does.

    Also None if no lease must go: then there is room already, and waiting has another reason.
    """
    search = _Search(section, nodes, options)
    forced = [option for option in options if option.key in must]
    for option in forced:
        search.apply(option, 1)
    found = search.best(sorted((o for o in options if o.key not in must), key=_order))
    chosen = None if found is None else (*forced, *found)
    return chosen or None


def _order(option: Option) -> tuple[int, int, str]:
    return (option.lost, option.age, option.key)


class _Search:
    """Sets of increasing size, cheapest first, abandoned as soon as they cannot be better."""

    def __init__(self, section: Section, nodes: int, options: Sequence[Option]) -> None:
        self.section, self.nodes, self.visits = section, nodes, 0
        until = {at for option in options for _, _, at in option.gives}
        self.steps = {at: int(section.place(np.array([at]))[0]) for at in until}
        self.found: tuple[Option, ...] | None = None
        self.cost: tuple[int, int] | None = None

    def apply(self, option: Option, sign: int) -> None:
        """Add its room to the section, or remove it."""
        for group, count, until in option.gives:
            if self.section.has(group):
                self.section.add([(group, count)], 0, self.steps[until], sign)

    def fits(self) -> bool:
        """Whether there is room for all of it."""
        return not self.section.short(self.nodes).any()

    def best(self, options: Sequence[Option]) -> tuple[Option, ...] | None:
        """`options` are sorted by what is lost with them."""
        if self.fits():
            return ()
        rough = self._largest_first(options)
        for size in range(1, 1 if rough is None else len(rough) + 1):
            self._look(options, 0, size, ())
            if self.found is not None:
                return self.found
            if self.visits > MOST_VISITS:
                break
        return rough

    def _largest_first(self, options: Sequence[Option]) -> tuple[Option, ...] | None:
        """A sufficient set in which every lease is needed; None if all together do not suffice."""
        taken: list[Option] = []
        for option in sorted(options, key=lambda o: (-o.nodes, *_order(o))):
            if self.fits():
                break
            self.apply(option, 1)
            taken.append(option)
        enough, kept = self.fits(), list(taken)
        for option in sorted(taken, key=_order, reverse=True):
            self.apply(option, -1)
            if enough and self.fits():
                kept.remove(option)
            else:
                self.apply(option, 1)
        for option in kept:
            self.apply(option, -1)
        return tuple(kept) if enough else None

    def _look(self, options: Sequence[Option], first: int, size: int, chosen: tuple[Option, ...]) -> None:
        self.visits += 1
        if size == 0:
            if self.fits():
                self._note(chosen)
            return
        lost = sum(option.lost for option in chosen)
        for place in range(first, len(options) - size + 1):
            # From here on no option costs less than this one.
            if self.cost is not None and lost + size * options[place].lost > self.cost[0]:
                return
            if self.visits > MOST_VISITS or not self._could_do(options, place, size):
                return
            self.apply(options[place], 1)
            self._look(options, place + 1, size - 1, (*chosen, options[place]))
            self.apply(options[place], -1)

    def _could_do(self, options: Sequence[Option], first: int, size: int) -> bool:
        """Whether the largest remaining options could suffice: an upper bound."""
        sizes = sorted((option.nodes for option in options[first:]), reverse=True)
        return not self.section.short(self.nodes - sum(sizes[:size])).any()

    def _note(self, chosen: tuple[Option, ...]) -> None:
        cost = (sum(option.lost for option in chosen), sum(option.age for option in chosen))
        if self.cost is None or cost < self.cost:
            self.found, self.cost = chosen, cost
