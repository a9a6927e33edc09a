"""Free nodes of one pool over time, as sorted integer arrays; the planner's only hot loop.

`scheduler.calendars.bounds` remembers earlier search results, so that few searches have to look far.

Free stretches are counted in groups by the instant at which they end (see `scheduler.calendars.stretches`). Within
a group counts are exact: holds whose number never exceeds the group's can be given concrete nodes in order of their
begin, because a free node stays free until the group's end. A request may mix groups.

Held by tests/scheduler/test_brute_force.py:
  * `earliest` is the first instant at which, over all mixes of groups, enough nodes are free for a whole hold;
  * what is taken can be given concrete nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from scheduler.snapshot import FOREVER, Window

Ints = NDArray[np.int64]
Share = tuple[int, int]
"""(end of the group, nodes taken from it)."""

_FIRST_LOOK = 256
"""Steps searched first: most requests find their place near the front or far away."""


class Steps:
    """An integer over time. `origin` is the first instant; the last value holds for ever."""

    __slots__ = ("_at", "_size", "_value")

    def __init__(self, origin: int, value: int) -> None:
        # `_at[_size]` is always FOREVER, so the end of a step can be read without checking for the last one.
        self._at: Ints = np.full(16, FOREVER, dtype=np.int64)
        self._value: Ints = np.full(16, value, dtype=np.int64)
        self._at[0] = origin
        self._size = 1

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin._at, twin._value, twin._size = self._at.copy(), self._value.copy(), self._size
        return twin

    @classmethod
    def of(cls, at: Ints, value: Ints) -> Self:
        """With these values from each instant on; `at` has FOREVER after the last, and is never changed here.

        Read-only: do not call `add`.
        """
        found = object.__new__(cls)
        found._at, found._value, found._size = at, np.append(value, 0), value.size
        return found

    def instants(self) -> Ints:
        """Instants at which the value may change."""
        return self._at[: self._size]

    def add(self, begin: int, end: int, amount: int) -> None:
        """Add `amount` on [begin, end); the part before the origin is ignored."""
        first = self._cut(begin)
        last = self._size if end >= FOREVER else self._cut(end)
        self._value[first:last] += amount

    def lowest(self, begin: int, end: int) -> int:
        """Least value on [begin, end), which is not empty."""
        first, last = self._span(begin, end)
        return int(self._value[first:last].min())

    def between(self, begin: int, end: int) -> Ints:
        """Instants after `begin` and before `end` at which the value may change."""
        at = self.instants()
        return at[at.searchsorted(begin, "right") : at.searchsorted(end)]

    def values(self, instants: Ints) -> Ints:
        """The value at each of these."""
        found: Ints = self._value[np.maximum(self.instants().searchsorted(instants, "right") - 1, 0)]
        return found

    def lowest_each(self, begins: Ints, length: int) -> Ints:
        """`lowest(b, b + length)` for each b; costs the sum of the steps in those stretches."""
        at = self.instants()
        bounds = np.empty(2 * begins.size, dtype=np.int64)
        bounds[::2] = np.maximum(at.searchsorted(begins, "right") - 1, 0)
        bounds[1::2] = np.maximum(at.searchsorted(begins + length), bounds[::2] + 1)
        # One slot more than there are steps, so that a stretch may end with the last; its value is never used.
        lowest: Ints = np.minimum.reduceat(self._value[: self._size + 1], bounds)[::2]
        return lowest

    def first_gap(self, need: int, length: int, after: int, before: int = FOREVER) -> int | None:
        """First b in [after, before) with at least `need` on all of [b, b + length)."""
        if after >= before:
            return None
        first, last = self._span(after, before + length)
        look = _FIRST_LOOK
        while True:
            stop = min(first + look, last)
            found = self._gap_between(need, length, after, (first, stop, stop == last))
            if found is not None or stop == last:
                return found if found is not None and found < before else None
            look *= 16

    def _gap_between(self, need: int, length: int, after: int, steps: tuple[int, int, bool]) -> int | None:
        first, stop, is_last = steps
        short = np.flatnonzero(self._value[first:stop] < need) + first
        if not short.size:
            return after if is_last else None
        # A gap lies between two steps that are too low; the first begins at `after`, the last may be beyond the view.
        begins = np.empty(short.size + 1, dtype=np.int64)
        begins[0], begins[1:] = after, self._at[short + 1]
        ends = np.empty_like(begins)
        ends[:-1] = self._at[short]
        ends[-1] = 2 * FOREVER if is_last else self._at[stop]
        wide = ends - np.maximum(begins, after) >= length
        choice = int(wide.argmax())
        return int(begins[choice]) if wide[choice] else None

    def _span(self, begin: int, end: int) -> tuple[int, int]:
        """Indices of the steps that [begin, end) touches; at least one."""
        at = self.instants()
        first = max(int(at.searchsorted(begin, "right")) - 1, 0)
        return first, max(int(at.searchsorted(end)), first + 1)

    def _cut(self, instant: int) -> int:
        """Index of the step that begins at `instant`, made if there is none; before the origin: the first."""
        size = self._size
        index = int(self._at[:size].searchsorted(instant))
        if index == 0 or self._at[index] == instant:
            return index
        if size + 2 > self._at.size:
            self._at = np.concatenate((self._at, np.full_like(self._at, FOREVER)))
            self._value = np.concatenate((self._value, np.zeros_like(self._value)))
        for array in (self._at, self._value):
            array[index + 1 : size + 2] = array[index : size + 1]
        self._at[index], self._value[index] = instant, self._value[index - 1]
        self._size = size + 1
        return index


class PoolCalendar:
    """How many nodes of a pool are free, and when. Times are holds, with preparation and draining."""

    __slots__ = ("_ends", "_groups")

    def __init__(self, stretches: Iterable[Sequence[Window]], now: int) -> None:
        """`stretches`: the free time of each node."""
        groups: dict[int, dict[int, int]] = {FOREVER: {}}
        for node in stretches:
            for window in node:
                begins = groups.setdefault(window.end, {})
                begins[window.begin] = begins.get(window.begin, 0) + 1
        self._ends = sorted(groups)
        self._groups = {end: _rising(groups[end], end, now) for end in self._ends}

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin._ends = self._ends
        twin._groups = {end: steps.copy() for end, steps in self._groups.items()}
        return twin

    def having(self, groups: Mapping[int, Steps]) -> Self:
        """A copy with these groups in place of its own with the same end."""
        twin = object.__new__(type(self))
        twin._ends = self._ends
        twin._groups = {end: groups.get(end, steps) for end, steps in self._groups.items()}
        return twin

    def steps(self, end: int) -> Steps:
        """Free nodes of the group that ends then; read-only."""
        return self._groups[end]

    @property
    def uniform(self) -> bool:
        """Whether all free time ends together, so that plain counts suffice."""
        return len(self._ends) == 1

    def room(self, begin: int, end: int) -> int:
        """Nodes free on all of [begin, end)."""
        return sum(group.lowest(begin, end) for at, group in self._groups.items() if at >= end)

    def section(self, begin: int, end: int) -> Section:
        """A copy of [begin, end) for trials."""
        inner = [steps.between(begin, end) for steps in self._groups.values()]
        later = inner[0] if self.uniform else np.unique(np.concatenate(inner))
        instants = np.concatenate((np.array([begin], dtype=np.int64), later))
        free = np.array([steps.values(instants) for steps in self._groups.values()])
        return Section(instants, self._ends, free, end)

    def earliest(self, nodes: int, length: int, after: int, before: int = FOREVER) -> int | None:
        """First b in [after, before) at which `nodes` are free on all of [b, b + length)."""
        lasting = self._groups[FOREVER].first_gap(nodes, length, after, before)
        if self.uniform:
            return lasting
        latest = self._ends[-2] - length + 1
        mixed = self._earliest_mix(nodes, length, after, min(latest, before if lasting is None else lasting))
        return lasting if mixed is None else mixed

    def take(self, nodes: int, begin: int, end: int, wanted: Sequence[Share] = ()) -> tuple[Share, ...]:
        """Take `nodes` that are free on all of [begin, end); returns their groups. `room` must suffice.

        First those `wanted`, then the groups that end soonest: they serve only short holds, so using them first leaves
        lasting nodes for requests that need them.
        """
        if self.uniform:
            taken: tuple[Share, ...] = ((FOREVER, nodes),)
        else:
            taken = share_out(nodes, dict(self.groups_free(begin, end)), wanted)
        self._shift(taken, begin, end, -1)
        return taken

    def take_exactly(self, shares: Sequence[Share], begin: int, end: int) -> None:
        """Take exactly these; the caller knows that they are free."""
        self._shift(shares, begin, end, -1)

    def withhold(self, nodes: int, begin: int, end: int) -> None:
        """Make any `nodes` nodes unavailable on [begin, end).

        They are taken from the group that stays, whose count may become negative: other groups make up for it.
        """
        self._groups[FOREVER].add(begin, end, -nodes)

    def give(self, shares: Sequence[Share], begin: int, end: int) -> None:
        """Gives back what `take` took."""
        self._shift(shares, begin, end, 1)

    def groups_free(self, begin: int, end: int) -> tuple[Share, ...]:
        """Free nodes of each group on all of [begin, end), soonest end first."""
        free = ((at, self._groups[at].lowest(begin, end)) for at in self._ends if at >= end)
        return tuple((at, count) for at, count in free if count > 0)

    def _shift(self, shares: Sequence[Share], begin: int, end: int, sign: int) -> None:
        for at, count in shares:
            self._groups[at].add(begin, end, sign * count)

    def _earliest_mix(self, nodes: int, length: int, after: int, before: int) -> int | None:
        # Room appears only where a group gains a node, so those instants are the only candidates.
        if after >= before:
            return None
        parts = [steps.instants() for steps in self._groups.values()]
        candidates = np.unique(np.concatenate([np.array([after], dtype=np.int64), *parts]))
        candidates = candidates[(candidates >= after) & (candidates < before)]
        look, first = 16, 0
        while first < candidates.size:
            chunk = candidates[first : first + look]
            wide = np.flatnonzero(self._rooms(chunk, length) >= nodes)
            if wide.size:
                return int(chunk[wide[0]])
            first, look = first + look, look * 2
        return None

    def _rooms(self, begins: Ints, length: int) -> Ints:
        total = np.zeros(begins.size, dtype=np.int64)
        for steps in self._groups.values():
            total += steps.lowest_each(begins, length)
        return total


class Section:
    """Free nodes of each group, step by step, on a stretch wanted as one hold."""

    __slots__ = ("_free", "_instants", "_lasting", "_rows")

    def __init__(self, instants: Ints, groups: Sequence[int], free: Ints, end: int) -> None:
        """`free` has a row per group and a column per step; the steps begin at `instants`."""
        self._instants, self._free = instants, free
        self._rows = {group: row for row, group in enumerate(groups)}
        self._lasting = np.array([group >= end for group in groups])

    @property
    def steps(self) -> int:
        return self._instants.size

    def place(self, instants: Ints) -> Ints:
        """The first step that does not begin before each of these instants."""
        found: Ints = self._instants.searchsorted(instants)
        return found

    def has(self, group: int) -> bool:
        """Whether there are nodes whose free time ends at that instant."""
        return group in self._rows

    def add(self, shares: Sequence[Share], first: int, last: int, sign: int) -> None:
        """Add nodes to the steps from `first` to before `last`."""
        for group, count in shares:
            self._free[self._rows[group], first:last] += sign * count

    def short(self, nodes: int) -> NDArray[np.bool_]:
        """The steps in which fewer than `nodes` are free for the whole stretch.

        With unequal nodes no single step is to blame: the result is all steps or none.
        """
        if len(self._rows) == 1:
            lacking: NDArray[np.bool_] = self._free[0] < nodes
            return lacking
        whole = self._free[self._lasting].min(axis=1).sum()
        return np.full(self._instants.size, whole < nodes)


def share_out(nodes: int, free: Mapping[int, int], wanted: Iterable[Share] = ()) -> tuple[Share, ...]:
    """`nodes` out of `free` (groups, soonest end first): those `wanted` first, then in that order."""
    shares: dict[int, int] = {}
    for group, count in (*wanted, *free.items()):
        given = min(count, free.get(group, 0) - shares.get(group, 0), nodes - sum(shares.values()))
        if given > 0:
            shares[group] = shares.get(group, 0) + given
    return tuple(sorted(shares.items()))


def _rising(begins: dict[int, int], end: int, now: int) -> Steps:
    """Free nodes of a group: one more at each begin of a stretch, none from the group's end on."""
    steps = Steps(now, 0)
    for begin, count in sorted(begins.items()):
        steps.add(begin, end, count)
    return steps
