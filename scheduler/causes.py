"""Why a promise moved later: causes that are shown true by planning again without them.

A change is the cause of a slip when, with that one change undone, the request would start no later than it was
promised; if no single one is, a smallest set is named. The work is bounded by `budget` plans; a slip whose
cause could not be shown within it says so.

Held by tests/scheduler/test_causes.py: every slip has a cause, and every cause that is called proven is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from scheduler.changes import promised, undo
from scheduler.plan import plan
from scheduler.snapshot import Change, ChangeKind, Displaced, Plan, Snapshot

BUDGET = 200
"""Plans made at most for one call. One is enough for each change that alone explains a slip; a plan of 10,000
promises takes about a second, so a caller that must not wait passes less."""
Starts = Callable[[str], int | None]
"""The start of a request by its key; None: it has none."""
_MOST_IN_PAIRS = 12
"""Pairs are tried among so few changes only; among more, sets are found by leaving out what is not needed."""
_MOST_IN_ALL = 7
"""Larger sets are all tried among so few, the smaller first, so that what is named is exactly the smallest."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A promise that moved later, or was lost (`now` is None), and the changes that did it.

    `proven` is False when the budget was spent first: then `causes` are the likeliest, not shown to be true.
    """

    key: str
    was: int
    now: int | None
    causes: tuple[Change, ...]
    proven: bool = True


def slips(
    before: Snapshot, after: Snapshot, changes: Sequence[Change], planned: Plan, budget: int = BUDGET
) -> tuple[Moved, ...]:
    """Every waiting request that lost time between the promises of `before` and `planned`, in rank order.

    `before` carries the promises as committed, `planned` is the plan of `after`, and `changes` lead from one to
    the other (see `scheduler.changes.changes_between`).
    """
    moved = []
    for key in planned.order:
        was = promised(before, after, key)
        placement = planned.placements.get(key)
        now = None if placement is None else placement.start
        if was is not None and (now is None or now > was):
            moved.append((key, was, now))

    def without(undone: Sequence[Change]) -> Starts:
        placements = plan(undo(before, after, undone)).placements
        return lambda key: None if (place := placements.get(key)) is None else place.start

    return explained(moved, changes, planned.displaced, without, budget)


def explained(
    moved: Iterable[tuple[str, int, int | None]],
    changes: Sequence[Change],
    displaced: Iterable[Displaced],
    without: Callable[[Sequence[Change]], Starts],
    budget: int = BUDGET,
) -> tuple[Moved, ...]:
    """The causes of these (key, was, now), out of `changes`; `without` plans with some of them undone."""
    trial, taken_by = _Trial(without, budget), {one.key: one.by for one in displaced}
    found = []
    for key, was, now in moved:
        causes, proven = trial.causes(key, was, _suspects(changes, taken_by, key))
        found.append(Moved(key, was, now, causes, proven))
    return tuple(found)


def _suspects(changes: Sequence[Change], taken_by: Mapping[str, str], key: str) -> list[Change]:
    """`changes`, the likeliest first: its own, those that took its room one after the other, the clock last."""
    chain = [key]
    while (by := taken_by.get(chain[-1])) and by not in chain:
        chain.append(by)
    nearness = {link: place for place, link in enumerate((key, *reversed(chain[1:])))}

    def likelihood(change: Change) -> tuple[bool, int]:
        return (change.kind is ChangeKind.CLOCK, nearness.get(change.key, len(nearness)))

    return sorted(changes, key=likelihood)


class _Trial:
    """Plans of the world with some changes undone; each such plan is made once for all slips."""

    def __init__(self, without: Callable[[Sequence[Change]], Starts], budget: int) -> None:
        self.without, self.left = without, budget
        self.plans: dict[frozenset[Change], Starts] = {}

    def causes(self, key: str, was: int, suspects: list[Change]) -> tuple[tuple[Change, ...], bool]:
        """The smallest set found that makes the difference, and whether it is shown to."""
        try:
            for tried in _small_sets(suspects):
                if self._holds_without(tried, key, was):
                    return tried, True
            if self._holds_without(tuple(suspects), key, was):
                return self._minimised(suspects, key, was), True
        except _BudgetSpent:
            pass
        return tuple(suspects[:1]), False

    def _minimised(self, suspects: list[Change], key: str, was: int) -> tuple[Change, ...]:
        """All of them, less each that makes no difference: none of those left can be spared."""
        kept, before = list(suspects), 0
        while before != len(kept):  # one that was needed may not be, once another is left out
            before = len(kept)
            for change in reversed(kept.copy()):
                without = [other for other in kept if other != change]
                if without and self._holds_without(tuple(without), key, was):
                    kept = without
        return tuple(kept)

    def _holds_without(self, undone: tuple[Change, ...], key: str, was: int) -> bool:
        chosen = frozenset(undone)
        if chosen not in self.plans:
            if self.left <= 0:
                raise _BudgetSpent
            self.left -= 1
            self.plans[chosen] = self.without(undone)
        start = self.plans[chosen](key)
        return start is not None and start <= was


class _BudgetSpent(Exception):  # noqa: N818 - a signal within this module, not an error
    pass


def _small_sets(suspects: list[Change]) -> Iterator[tuple[Change, ...]]:
    yield from ((change,) for change in suspects)
    if len(suspects) <= _MOST_IN_PAIRS:
        yield from combinations(suspects, 2)
    for size in range(3, len(suspects)) if len(suspects) <= _MOST_IN_ALL else ():
        yield from combinations(suspects, size)
