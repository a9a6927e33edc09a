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
"""Number of changes up to which single ones and pairs cover all sets."""
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
    """The changes in order of likelihood for a request. Indexed once: a slip costs only the changes looked at."""

    def __init__(self, changes: Sequence[Change], displaced: Iterable[Displaced]) -> None:
        self._displaced = displaced
        self._rest = tuple(sorted(changes, key=lambda change: change.kind is ChangeKind.CLOCK))
        self._of: dict[str, list[Change]] = {}
        for change in changes:
            if change.kind is not ChangeKind.CLOCK:
                self._of.setdefault(change.key, []).append(change)
        self._takers: dict[str, tuple[str, ...]] = {}
        self.count = len(self._rest)

    @cached_property
    def _taken_by(self) -> Mapping[str, str]:
        """Who took the nodes of each displaced request."""
        return {one.key: one.by for one in self._displaced}

    @property
    def all(self) -> tuple[Change, ...]:
        """In no request's order."""
        return self._rest

    def of(self, key: str) -> Iterator[Change]:
        """Its own changes, then those that took its nodes one after the other, first to last, then the clock."""
        near = (key, *self._who_took(key))
        for link in near:
            yield from self._of.get(link, ())
        for change in self._rest:
            if change.kind is ChangeKind.CLOCK or change.key not in near:
                yield change

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
        self.plans: dict[frozenset[Change], Starts] = {}
        self._all: Starts | None = None

    def causes(self, key: str, was: int, suspects: _Suspects) -> tuple[tuple[Change, ...], bool]:
        """The smallest sufficient set found, and whether it is proven."""
        if suspects.count == 1:  # without changes every promise holds: nothing to try
            return suspects.all, True
        try:
            for tried in _small_sets(suspects, key):
                if self._holds_without(tried, key, was):
                    return tried, True
            if self._holds_without_any(suspects, key, was):
                return self._minimised(tuple(suspects.of(key)), key, was), True
        except _BudgetSpent:
            pass
        return tuple(islice(suspects.of(key), 1)), False

    def _minimised(self, suspects: tuple[Change, ...], key: str, was: int) -> tuple[Change, ...]:
        """All of them, without each that makes no difference: every remaining one is needed."""
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
            self.plans[chosen] = self._planned_without(undone)
        return _holds(self.plans[chosen], key, was)

    def _holds_without_any(self, suspects: _Suspects, key: str, was: int) -> bool:
        """With all changes undone: one plan for all slips. For one or two changes this was tried already."""
        if suspects.count <= _TRIED_WHOLE:
            return False
        if self._all is None:
            self._all = self._planned_without(tuple(suspects.of(key)))
        return _holds(self._all, key, was)

    def _planned_without(self, undone: tuple[Change, ...]) -> Starts:
        if self.left <= 0 or not self.has_time():
            raise _BudgetSpent
        self.left -= 1
        return self.without(undone)


class _BudgetSpent(Exception):  # noqa: N818 - a signal within this module, not an error
    pass


def _holds(starts: Starts, key: str, was: int) -> bool:
    start = starts(key)
    return start is not None and start <= was


def _small_sets(suspects: _Suspects, key: str) -> Iterator[tuple[Change, ...]]:
    yield from ((change,) for change in suspects.of(key))
    if suspects.count <= _MOST_IN_PAIRS:
        yield from combinations(suspects.of(key), 2)
    for size in range(3, suspects.count) if suspects.count <= _MOST_IN_ALL else ():
        yield from combinations(suspects.of(key), size)
