"""Why a promise moved later: causes are proven by planning again without them.

A change is the cause of a slip if the request would start no later than promised with that one change undone; if no
single change suffices, a smallest set is named. The work is bounded by `budget` plans and by the caller's time
(`has_time`, asked before each plan). Every slip gets a cause, and says whether it was proven within these bounds. Apart
from those plans the cost is linear in changes and slips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice

from scheduler.causes.changes import promised, undo
from scheduler.plan import plan
from scheduler.snapshot import Change, ChangeKind, Displaced, Plan, Snapshot

BUDGET = 200
"""Most plans per call. One suffices for each change that alone explains a slip; a plan of 10,000 promises takes
about a second, so a caller in a hurry passes less."""
HasTime = Callable[[], bool]
"""Whether one more plan may be made. The caller measures time; nothing here reads a clock."""
Starts = Callable[[str], int | None]
"""The start of a request by its key; None: it has none."""
_TRIED_WHOLE = 2
"""Number of changes of which only both together remain when neither suffices alone."""
_MOST_IN_PAIRS = 12
"""Most changes among which pairs are tried; of more, those that are not needed are left out one by one."""
_MOST_IN_ALL = 7
"""Most changes among which all larger sets are tried, smaller ones first, so that the result is minimal."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A promise that moved later, or was lost (`now` is None), and the changes that caused it.

    `proven` is False if the budget ran out: then `causes` are the likeliest ones.
    """

    key: str
    was: int
    now: int | None
    causes: tuple[Change, ...]
    proven: bool = True


def always() -> bool:
    return True


def slips(
    before: Snapshot,
    after: Snapshot,
    changes: Sequence[Change],
    planned: Plan,
    budget: int = BUDGET,
    has_time: HasTime = always,
) -> tuple[Moved, ...]:
    """Every waiting request whose start in `planned` is later than its promise in `before`, in rank order.

    `before` carries the promises as committed, `planned` is the plan of `after`, and `changes` lead from one to
    the other (see `scheduler.causes.changes.changes_between`).
    """
    starts = planned.starts()
    pairs = ((key, promised(before, after, key), starts.get(key)) for key in planned.order)
    moved = [(key, was, now) for key, was, now in pairs if was is not None and (now is None or now > was)]
    return slipped(moved, (before, after), changes, planned, budget, has_time)


def slipped(
    moved: Iterable[tuple[str, int, int | None]],
    worlds: tuple[Snapshot, Snapshot],
    changes: Sequence[Change],
    planned: Plan,
    budget: int = BUDGET,
    has_time: HasTime = always,
) -> tuple[Moved, ...]:
    """The same for these (key, was, now); `worlds` are before and after."""
    before, after = worlds

    def without(undone: Sequence[Change]) -> Starts:
        return plan(undo(before, after, undone)).starts().get

    return explained(moved, changes, planned.displaced, without, budget, has_time)


def explained(
    moved: Iterable[tuple[str, int, int | None]],
    changes: Sequence[Change],
    displaced: Iterable[Displaced],
    without: Callable[[Sequence[Change]], Starts],
    budget: int = BUDGET,
    has_time: HasTime = always,
) -> tuple[Moved, ...]:
    """The causes of these (key, was, now) among `changes`; `without` plans with some of them undone."""
    trial, suspects = _Trial(without, budget, has_time), _Suspects(changes, displaced)
    found = []
    for key, was, now in moved:
        causes, proven = trial.causes(key, was, suspects)
        found.append(Moved(key, was, now, causes, proven))
    return tuple(found)


class _Suspects:
    """The changes in order of likelihood for a request, indexed once for all slips.

    Changes are told by their numbers, because comparing them would cost more than looking at them.
    """

    def __init__(self, changes: Sequence[Change], displaced: Iterable[Displaced]) -> None:
        self._displaced = displaced
        self.changes = tuple(sorted(changes, key=lambda change: change.kind is ChangeKind.CLOCK))
        self._of: dict[str, list[int]] = {}
        for number, change in enumerate(self.changes):
            if change.kind is not ChangeKind.CLOCK:
                self._of.setdefault(change.key, []).append(number)
        self._takers: dict[str, tuple[str, ...]] = {}
        self.count = len(self.changes)

    @cached_property
    def _taken_by(self) -> Mapping[str, str]:
        """Who took the nodes of each displaced request."""
        return {one.key: one.by for one in self._displaced}

    @cached_property
    def _has_takers(self) -> bool:
        """Whether a changed request took nodes; of nodes that are away there is none."""
        return any(by in self._of for by in self._taken_by.values())

    def of(self, key: str) -> Sequence[int]:
        """Its own changes, then those that took its nodes one after the other, first to last, then the clock."""
        takers = self._who_took(key) if self._has_takers else ()
        near = [number for link in (key, *takers) for number in self._of.get(link, ())]
        if not near:
            return range(self.count)
        first = frozenset(near)
        return [*near, *(number for number in range(self.count) if number not in first)]

    def _who_took(self, key: str) -> tuple[str, ...]:
        """The changed requests that took its nodes one after the other, first to last; walked once for all slips."""
        walked, link = {key: None}, key
        while link not in self._takers and (by := self._taken_by.get(link)) and by not in walked:
            walked[by] = None
            link = by
        found = self._takers.setdefault(link, ())
        for below in list(walked)[-2::-1]:
            found = (*found, link) if link in self._of else found
            self._takers[below], link = found, below
        return found


class _Trial:
    """Plans of the world with some changes undone; each is made once for all slips."""

    def __init__(self, without: Callable[[Sequence[Change]], Starts], budget: int, has_time: HasTime) -> None:
        self.without, self.left, self.has_time = without, budget, has_time
        self._single: dict[int, Starts] = {}
        self._several: dict[frozenset[int], Starts] = {}
        self._all: Starts | None = None

    def causes(self, key: str, was: int, suspects: _Suspects) -> tuple[tuple[Change, ...], bool]:
        """The smallest sufficient set found, and whether it is proven."""
        changes = suspects.changes
        if suspects.count == 1:  # without changes every promise holds: nothing to try
            return changes, True
        order = suspects.of(key)
        try:
            found = self._smallest(order, changes, key, was)
        except _BudgetSpent:
            return tuple(changes[number] for number in islice(order, 1)), False
        if found is None:
            return tuple(changes[number] for number in islice(order, 1)), False
        return tuple(changes[number] for number in found), True

    def _smallest(
        self, order: Sequence[int], changes: Sequence[Change], key: str, was: int
    ) -> Sequence[int] | None:
        """A smallest set without which it starts in time; None: none was found."""
        for number in order:
            starts = self._single.get(number)
            if starts is None:
                starts = self._single[number] = self._planned_without((number,), changes)
            start = starts(key)
            if start is not None and start <= was:
                return (number,)
        if len(order) == _TRIED_WHOLE:  # again: without changes every promise holds
            return order
        for tried in _larger_sets(order):
            if self._holds_without(tried, changes, key, was):
                return tried
        if self._all is None:  # one plan for all slips
            self._all = self._planned_without(order, changes)
        return self._minimised(order, changes, key, was) if _holds(self._all, key, was) else None

    def _minimised(
        self, suspects: Sequence[int], changes: Sequence[Change], key: str, was: int
    ) -> Sequence[int]:
        """All of them, without each that makes no difference: every remaining one is needed."""
        kept, before = list(suspects), 0
        while before != len(kept):  # one that was needed may not be, once another is left out
            before = len(kept)
            for change in reversed(kept.copy()):
                without = [other for other in kept if other != change]
                if without and self._holds_without(without, changes, key, was):
                    kept = without
        return kept

    def _holds_without(self, undone: Sequence[int], changes: Sequence[Change], key: str, was: int) -> bool:
        chosen = frozenset(undone)
        if len(chosen) == 1 and undone[0] in self._single:
            return _holds(self._single[undone[0]], key, was)
        if chosen not in self._several:
            self._several[chosen] = self._planned_without(undone, changes)
        return _holds(self._several[chosen], key, was)

    def _planned_without(self, undone: Sequence[int], changes: Sequence[Change]) -> Starts:
        if self.left <= 0 or not self.has_time():
            raise _BudgetSpent
        self.left -= 1
        return self.without([changes[number] for number in undone])


class _BudgetSpent(Exception):  # noqa: N818 - a signal within this module, not an error
    pass


def _holds(starts: Starts, key: str, was: int) -> bool:
    start = starts(key)
    return start is not None and start <= was


def _larger_sets(order: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Sets of two and more, smaller ones first, of so many changes as can be tried."""
    if len(order) <= _MOST_IN_PAIRS:
        yield from combinations(order, 2)
    for size in range(3, len(order)) if len(order) <= _MOST_IN_ALL else ():
        yield from combinations(order, size)
