"""Of leases that could end early, those that leave enough room at the least cost. Pure.

The fewest go; of equally few those with whom the least is lost, then those that began last. The choice is exact as
long as looking at all that could be better takes no more than `MOST_VISITS` steps, and at worst what taking the largest
first gives. Held by tests/scheduler/choices/test_preemption.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.calendars.calendar import Section

MOST_VISITS = 20_000
"""Sets looked at for one choice: a second at the very worst."""


@dataclass(frozen=True, slots=True)
class Option:
    """A lease that could end. `gives`: of each group of nodes, how many, until when they are not free anyway."""

    key: str
    nodes: int
    lost: int  # GPU-seconds
    age: int  # the instant at which it began, with the other sign: smaller is younger
    gives: tuple[tuple[int, int, int], ...]


def cheapest(
    section: Section, nodes: int, options: Sequence[Option], must: Sequence[str] = ()
) -> tuple[Option, ...] | None:
    """The cheapest set with all of `must` that leaves `nodes` free on the whole section; None where none does.

    None as well where nobody has to go: then there is room already, and waiting has another reason.
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
    """Sets of one size after the other, the cheapest first, given up as soon as they cannot be better."""

    def __init__(self, section: Section, nodes: int, options: Sequence[Option]) -> None:
        self.section, self.nodes, self.visits = section, nodes, 0
        until = {at for option in options for _, _, at in option.gives}
        self.steps = {at: int(section.place(np.array([at]))[0]) for at in until}
        self.found: tuple[Option, ...] | None = None
        self.cost: tuple[int, int] | None = None

    def apply(self, option: Option, sign: int) -> None:
        """Gives its room to the section, or takes it back."""
        for group, count, until in option.gives:
            if self.section.has(group):
                self.section.add([(group, count)], 0, self.steps[until], sign)

    def fits(self) -> bool:
        """There is room for the whole of it."""
        return not self.section.short(self.nodes).any()

    def best(self, options: Sequence[Option]) -> tuple[Option, ...] | None:
        """`options` are in the order of what is lost with them."""
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
        """A set that is enough, and in which everyone is needed; None where all together are not."""
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
            # From here on nobody costs less than this one.
            if self.cost is not None and lost + size * options[place].lost > self.cost[0]:
                return
            if self.visits > MOST_VISITS or not self._could_do(options, place, size):
                return
            self.apply(options[place], 1)
            self._look(options, place + 1, size - 1, (*chosen, options[place]))
            self.apply(options[place], -1)

    def _could_do(self, options: Sequence[Option], first: int, size: int) -> bool:
        """Whether the largest of those that are left could be enough: each adds its nodes at the very most."""
        sizes = sorted((option.nodes for option in options[first:]), reverse=True)
        return not self.section.short(self.nodes - sum(sizes[:size])).any()

    def _note(self, chosen: tuple[Option, ...]) -> None:
        cost = (sum(option.lost for option in chosen), sum(option.age for option in chosen))
        if self.cost is None or cost < self.cost:
            self.found, self.cost = chosen, cost
