"""What drawn futures are worth, learnt from how earlier ones came out. Pure.

Two figures stand beside each other: the plan, by which everybody uses all of their time, and the middle of the drawn
futures, in which nobody ever loses anything to not knowing them. Starts lie between the two or near one of them, and
where is learnt by band: p50 is their mix that was nearest to the last starts (the best expert of a few: Cesa-Bianchi
and Lugosi, Prediction, Learning, and Games, 2006).

p10 and p90 begin as the outermost of plan and futures. Each earlier start is scored by where it fell: 0 at p50, -1 at
the lower end, 1 at the upper, beyond in the same measure (locally weighted conformal prediction: Lei and others, JASA
2018), and the ends are moved so that one in ten fell below and one in ten above.

Who still waits counts as well, as somebody whose start is later than now; else the quick starts, which are known
first, would speak for all (the estimator of Kaplan and Meier, JASA 1958). Until there is enough to learn from, the
futures are believed: twenty scores, spread as they say, stand in.

Held by tests/scheduler/test_calibrating.py:
  * where starts fall as before, the told interval covers four in five;
  * p10 is never after p50 nor p50 after p90, and nothing is told before now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduler.expecting import Drawn
from scheduler.rank import band

KEPT = 150
"""Outcomes of a band that the interval is learnt from, the last filed."""
RECENT = 60
"""Of them, those that the mix is learnt from: how full it is changes within days."""
_MIXES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Weights of the plan that are tried; the first is taken unless another is better."""
_PRIOR = (-1.3, -1.1, -0.9, -0.7, -0.55, -0.42, -0.3, -0.2, -0.12, -0.04)
"""Half of twenty scores of which one in ten is below -1 and one in ten above 1, as of a normal distribution."""
_BOUNDS = (0.2, 6.0)
"""No interval shrinks or grows further than by these: a few odd scores must not make it absurd."""
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
    below: float = 1.0
    above: float = 1.0


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


def _habit(outcomes: Sequence[Outcome]) -> Habit:
    mix = min(_MIXES, key=lambda mix: sum(_error(one, mix) for one in outcomes[-RECENT:]))
    scores = [(_score(one, mix), one.is_open) for one in outcomes]
    scores += [(sign * value, False) for value in _PRIOR for sign in (1, -1)]
    least, most = _BOUNDS
    below, above = (_quantile(scores, share) for share in (0.1, 0.9))
    return Habit(mix, min(most, max(least, -below)), min(most, max(least, above)))


def _error(one: Outcome, mix: float) -> float:
    """How far the mix was off, relative to the wait; of who still waits only what is certain."""
    off = one.start - _middle(one.drawn, one.planned, mix)
    wait = max(one.planned, one.drawn.p50) - one.filed_at
    return (max(0.0, off) if one.is_open else abs(off)) / max(_SHORT_S, wait)


def _score(one: Outcome, mix: float) -> float:
    middle, low, high = _spread(one.drawn, one.planned, one.filed_at, mix)
    off = one.start - middle
    return off / (low if off < 0 else high)


def _middle(drawn: Drawn, planned: int, mix: float) -> float:
    return mix * planned + (1 - mix) * drawn.p50


def _spread(drawn: Drawn, planned: int, filed_at: int, mix: float) -> tuple[float, float, float]:
    """p50, and how far the interval reaches below and above before it is calibrated."""
    middle = _middle(drawn, planned, mix)
    least = _LEAST_S + _LEAST_SHARE * max(0.0, middle - filed_at)
    low = middle - min(drawn.p10, planned)
    return middle, max(least, low), max(least, max(drawn.p90, planned) - middle)


def _quantile(scores: Iterable[tuple[float, bool]], share: float) -> float:
    """The score below which this share falls, those that are open counted as no less than they are."""
    ordered = sorted(scores)
    staying = 1.0
    for place, (value, is_open) in enumerate(ordered):
        if not is_open:
            staying *= 1 - 1 / (len(ordered) - place)
            if 1 - staying >= share - 1e-9:
                return value
    return float("inf")
