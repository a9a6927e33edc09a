"""How much simulated futures are worth, learnt from earlier outcomes. Pure.

There are two estimates: the median of the simulated futures, and the plan, which assumes that every request uses all of
its time. If the simulated arrivals are wrong, the plan may be nearer: p50 is a mix of the two, weighted by how far each
was off lately (exponential weights: Cesa-Bianchi and Lugosi, Prediction, Learning, and Games, 2006).

p10 and p90 start as the outermost of plan and futures. Each end moves outwards with every start that fell beyond it,
and a ninth of that inwards with every one that did not, so that in the long run one in ten falls below and one in ten
above, whatever starts do (adaptive conformal inference: Gibbs and Candès, NeurIPS 2021; the ends themselves move, as
by Angelopoulos, Candès and Tibshirani, NeurIPS 2023). Only what was known at the time counts: a start after p90 is
noticed when p90 passes, any other when it happens. So the history is replayed here in order of time.

The fewer forecasts of the band are open at once, the more each of their outcomes moves an end: then what it teaches
comes in time for the next. Of many that wait together, which start early or late together, each counts little (with
delayed feedback, steps shrink with the delay: Joulani, György and Szepesvári, ICML 2013).

Until there are outcomes, plan and futures are used as they are, with the interval made a quarter wider.

What always holds:
  * whatever starts do, the published interval covers four in five of many;
  * p10 is never after p50 nor p50 after p90, and nothing is estimated before now.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp

from scheduler.estimates.expected_starts import Drawn
from scheduler.fairness.rank import band

KEPT = 1000
"""Most recent outcomes per band that are used: older ones have no weight left."""
STEP = 0.02
"""Least speed of an end: a start beyond it moves it out by about this part of its distance from p50."""
SPEED = 0.3
"""With n forecasts open, an end moves by this part, divided by n, if that is more. Larger values of both make the ends
run after each burst (docs/explain/benchmarks.md)."""
UNSURE = 1.25
"""Initial widening of intervals: plan and futures are both too sure."""
_MISSED = 0.1
"""Share of starts that should fall beyond each end."""
_BOUNDS = (0.05, 12.0)
"""Limits of an interval's scaling: a few odd starts must not make it absurd."""
_MIXES = (0.0, 0.5, 1.0)
"""Weights of the plan that are tried."""
_PRIOR = 2.0
"""Initial error of the plan, as a multiple of the wait: enough to forget the initial mix within a few days."""
_FADING = 0.95
"""Weight of an error when the next one is known: about the last twenty count."""
_LEAST_SHARE, _LEAST_S = 0.05, 120
"""Least reach of an interval from p50, as a share of the wait and in seconds: futures that agree may all be wrong."""
_SHORT_S = 600
"""Errors are relative to the wait, or to this if it is longer, so that no single long wait decides the mix."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A request's plan and simulation when it was filed, and its start; `is_open`: not before `start`."""

    band: int
    filed_at: int
    planned: int
    drawn: Drawn
    start: int
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Habit:
    """A band's calibration: the weight of the plan, and the reach of the interval, in units of its own."""

    mix: float = 0.0
    below: float = UNSURE
    above: float = UNSURE


@dataclass(slots=True)
class _Learning:
    """A habit being learnt, the recent error of each mix, what each request was told, and how many of them wait."""

    habit: Habit = field(default_factory=Habit)
    off: list[float] = field(default_factory=lambda: [0.0] * len(_MIXES))
    said: dict[int, Drawn] = field(default_factory=dict)
    together: dict[int, int] = field(default_factory=dict)  # how many were open when it was filed
    waiting: int = 0

    def filed(self, number: int, one: Outcome) -> Drawn:
        """What it was told."""
        self.said[number] = found = told(one.drawn, one.planned, one.filed_at, one.filed_at, self.habit)
        self.waiting += 1
        self.together[number] = self.waiting
        return found

    def seen_late(self, number: int) -> None:
        """Its p90 passed while it still waits."""
        self.habit = replace(self.habit, above=self._moved(self.habit.above, 1 - _MISSED, number))

    def seen(self, number: int, one: Outcome) -> None:
        """It started."""
        said, above = self.said[number], self.habit.above
        below = self._moved(self.habit.below, (one.start < said.p10) - _MISSED, number)
        if one.start <= said.p90:
            above = self._moved(above, -_MISSED, number)
        self.waiting -= 1
        errors = (_error(one, mix) for mix in _MIXES)
        self.off = [_FADING * old + new for old, new in zip(self.off, errors, strict=True)]
        self.habit = Habit(self._mix(), below, above)

    def _moved(self, reach: float, missed: float, number: int) -> float:
        # Not only those open now: then the last of a burst, which are its latest, would count most.
        many = max(self.together[number], self.waiting)
        least, most = _BOUNDS
        return min(most, max(least, reach * exp(max(STEP, SPEED / many) * missed)))

    def _mix(self) -> float:
        behind = [off + (_PRIOR if mix else 0.0) for off, mix in zip(self.off, _MIXES, strict=True)]
        weights = [exp(min(behind) - one) for one in behind]
        return sum(weight * mix for weight, mix in zip(weights, _MIXES, strict=True)) / sum(weights)


def habits(outcomes: Iterable[Outcome]) -> dict[int, Habit]:
    """By band, from its most recent outcomes. O(n log n)."""
    bands: dict[int, list[Outcome]] = {}
    for one in sorted(outcomes, key=lambda one: (one.filed_at, one.planned, one.start)):
        bands.setdefault(one.band, []).append(one)
    return {number: replayed(found[-KEPT:])[1] for number, found in sorted(bands.items())}


def habit_of(found: Mapping[int, Habit], priority: int) -> Habit:
    """The habit of a priority's band."""
    return found.get(band(priority), Habit())


def told(drawn: Drawn, planned: int, filed_at: int, now: int, habit: Habit) -> Drawn:
    """The published estimate of a request that was planned for `planned`."""
    middle, low, high = _spread(drawn, planned, filed_at, habit.mix)
    p50 = max(now, round(middle))
    p10 = max(now, min(p50, round(middle - habit.below * low)))
    return Drawn(p10, p50, max(p50, round(middle + habit.above * high)))


_PASSED, _STARTED, _FILED = range(3)
"""Kinds of observations, in their order at one instant."""


def replayed(outcomes: Sequence[Outcome]) -> tuple[list[Drawn], Habit]:
    """What each of a band was told, from what was known when it was filed, and the habit after all of them."""
    learning = _Learning()
    events = [(one.filed_at, _FILED, number) for number, one in enumerate(outcomes)]
    heapq.heapify(events)
    while events:
        at, what, number = heapq.heappop(events)
        one = outcomes[number]
        if what == _FILED:
            found = learning.filed(number, one)
            if one.start > found.p90:
                heapq.heappush(events, (found.p90, _PASSED, number))
            if not one.is_open:
                heapq.heappush(events, (max(at, one.start), _STARTED, number))
        elif what == _PASSED:
            learning.seen_late(number)
        else:
            learning.seen(number, one)
    return [learning.said[number] for number in range(len(outcomes))], learning.habit


def _error(one: Outcome, mix: float) -> float:
    """The error of the mix, relative to the wait."""
    wait = max(one.planned, one.drawn.p50) - one.filed_at
    return abs(one.start - _middle(one.drawn, one.planned, mix)) / max(_SHORT_S, wait)


def _middle(drawn: Drawn, planned: int, mix: float) -> float:
    return mix * planned + (1 - mix) * drawn.p50


def _spread(drawn: Drawn, planned: int, filed_at: int, mix: float) -> tuple[float, float, float]:
    """p50, and the reach of the interval below and above before calibration."""
    middle = _middle(drawn, planned, mix)
    least = _LEAST_S + _LEAST_SHARE * max(0.0, middle - filed_at)
    low = middle - min(drawn.p10, planned)
    return middle, max(least, low), max(least, max(drawn.p90, planned) - middle)
