"""What drawn futures are worth, learnt from how earlier ones came out. Pure.

Two figures stand beside each other: the middle of the drawn futures, and the plan, by which everybody uses all of
their time. Where the drawn arrivals are wrong the plan may be nearer: p50 is a mix of the two, whose weights follow
from how far each was off lately (exponential weights: Cesa-Bianchi and Lugosi, Prediction, Learning, and Games, 2006).

p10 and p90 begin as the outermost of plan and futures. Each end moves a little further out with every start that fell
beyond it, and a ninth of that back with every one that did not, so that in the long run one in ten falls below and one
in ten above whatever starts do (adaptive conformal inference: Gibbs and Candès, NeurIPS 2021; the ends themselves
are moved, as by Angelopoulos, Candès and Tibshirani, NeurIPS 2023). What counts is what was known: a start after p90 is
seen when p90 passes, every other one when it comes. So all that was told is told again here, in order of time.

Until there is anything to learn from, plan and futures are believed, and the interval made a quarter wider.

Held by tests/scheduler/estimates/test_calibration.py:
  * whatever starts do, the told interval covers four in five of many;
  * p10 is never after p50 nor p50 after p90, and nothing is told before now.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp

from scheduler.estimates.expected_starts import Drawn
from scheduler.fairness.rank import band

KEPT = 1000
"""Outcomes of a band that are learnt from, the last filed: what is older weighs nothing any more."""
STEP = 0.02
"""How fast an end moves: a start beyond it moves it out by this part of its distance from p50, about. With larger
steps intervals are twice as wide for the same coverage, with smaller ones a change is learnt within weeks."""
UNSURE = 1.25
"""Before anything is learnt intervals reach so much further than plan and futures say: both are too sure."""
_MISSED = 0.1
"""Starts that are to fall beyond each end."""
_BOUNDS = (0.1, 12.0)
"""No interval shrinks or grows further than by these: a few odd starts must not make it absurd."""
_MIXES = (0.0, 0.5, 1.0)
"""Weights of the plan that are tried."""
_PRIOR = 2.0
"""Errors, each as a share of the wait, that the plan begins with: as many as forget the first in a few days."""
_FADING = 0.95
"""What is left of an error when the next one is known: the last twenty count."""
_LEAST_SHARE, _LEAST_S = 0.05, 120
"""An interval reaches at least so far from p50, as a share of the wait and in seconds: futures that agree with each
other may all be wrong."""
_SHORT_S = 600
"""Errors count relative to the wait, and to no less than this: else a single long wait would decide the mix."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one request was planned and drawn when it was filed, and when it started; `is_open`: not before `start`."""

    band: int
    filed_at: int
    planned: int
    drawn: Drawn
    start: int
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Habit:
    """How starts of a band fell: the weight of the plan, and how far the interval reaches, in units of its own."""

    mix: float = 0.0
    below: float = UNSURE
    above: float = UNSURE


@dataclass(slots=True)
class _Learning:
    """A habit as it becomes, and what each mix was off by, lately."""

    habit: Habit = field(default_factory=Habit)
    off: list[float] = field(default_factory=lambda: [0.0] * len(_MIXES))

    def seen_late(self) -> None:
        """Its p90 passed, and it still waits."""
        self.habit = replace(self.habit, above=_moved(self.habit.above, 1 - _MISSED))

    def seen(self, one: Outcome, said: Drawn) -> None:
        """It started."""
        below = _moved(self.habit.below, (one.start < said.p10) - _MISSED)
        above = self.habit.above if one.start > said.p90 else _moved(self.habit.above, -_MISSED)
        errors = (_error(one, mix) for mix in _MIXES)
        self.off = [_FADING * old + new for old, new in zip(self.off, errors, strict=True)]
        self.habit = Habit(self._mix(), below, above)

    def _mix(self) -> float:
        behind = [off + (_PRIOR if mix else 0.0) for off, mix in zip(self.off, _MIXES, strict=True)]
        weights = [exp(min(behind) - one) for one in behind]
        return sum(weight * mix for weight, mix in zip(weights, _MIXES, strict=True)) / sum(weights)


def habits(outcomes: Iterable[Outcome]) -> dict[int, Habit]:
    """By band, from its last outcomes. O(n log n)."""
    bands: dict[int, list[Outcome]] = {}
    for one in sorted(outcomes, key=lambda one: (one.filed_at, one.planned, one.start)):
        bands.setdefault(one.band, []).append(one)
    return {number: _habit(found[-KEPT:]) for number, found in sorted(bands.items())}


def habit_of(found: Mapping[int, Habit], priority: int) -> Habit:
    """That of a priority's band."""
    return found.get(band(priority), Habit())


def told(drawn: Drawn, planned: int, filed_at: int, now: int, habit: Habit) -> Drawn:
    """What people are told of a request that was planned for `planned`."""
    middle, low, high = _spread(drawn, planned, filed_at, habit.mix)
    p50 = max(now, round(middle))
    p10 = max(now, min(p50, round(middle - habit.below * low)))
    return Drawn(p10, p50, max(p50, round(middle + habit.above * high)))


_PASSED, _STARTED, _FILED = range(3)
"""What is learnt of a request, in the order in which it is at one instant."""


def _habit(outcomes: Sequence[Outcome]) -> Habit:
    """What is known after all that happened to these, one after the other."""
    learning = _Learning()
    said: dict[int, Drawn] = {}
    events = [(one.filed_at, _FILED, number) for number, one in enumerate(outcomes)]
    heapq.heapify(events)
    while events:
        at, what, number = heapq.heappop(events)
        one = outcomes[number]
        if what == _FILED:
            found = said[number] = told(one.drawn, one.planned, at, at, learning.habit)
            if one.start > found.p90:
                heapq.heappush(events, (found.p90, _PASSED, number))
            if not one.is_open:
                heapq.heappush(events, (max(at, one.start), _STARTED, number))
        elif what == _PASSED:
            learning.seen_late()
        else:
            learning.seen(one, said[number])
    return learning.habit


def _moved(reach: float, missed: float) -> float:
    least, most = _BOUNDS
    return min(most, max(least, reach * exp(STEP * missed)))


def _error(one: Outcome, mix: float) -> float:
    """How far the mix was off, relative to the wait."""
    wait = max(one.planned, one.drawn.p50) - one.filed_at
    return abs(one.start - _middle(one.drawn, one.planned, mix)) / max(_SHORT_S, wait)


def _middle(drawn: Drawn, planned: int, mix: float) -> float:
    return mix * planned + (1 - mix) * drawn.p50


def _spread(drawn: Drawn, planned: int, filed_at: int, mix: float) -> tuple[float, float, float]:
    """p50, and how far the interval reaches below and above before it is calibrated."""
    middle = _middle(drawn, planned, mix)
    least = _LEAST_S + _LEAST_SHARE * max(0.0, middle - filed_at)
    low = middle - min(drawn.p10, planned)
    return middle, max(least, low), max(least, max(drawn.p90, planned) - middle)
