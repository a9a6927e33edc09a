"""What drawn futures are worth is learnt from how earlier ones came out (issue: honest estimates; E1, E9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.estimates.calibration import Habit, Outcome, habit_of, habits, replayed, told
from scheduler.estimates.expected_starts import Drawn

NOW = 1_000_000
DRAWN = Drawn(NOW + 3600, NOW + 7200, NOW + 14_400)
instants = st.integers(NOW, NOW + 10**6)


def outcome(
    start: int, *, planned: int = NOW + 10_000, is_open: bool = False, filed_at: int = NOW
) -> Outcome:
    return Outcome(1, filed_at, planned, DRAWN, start, is_open)


def test_without_outcomes_the_futures_are_believed_and_a_little_more() -> None:
    said = told(DRAWN, DRAWN.p50, NOW, NOW, habit_of(habits([]), 150))
    assert said == Drawn(NOW + 2700, NOW + 7200, NOW + 16_200)


@pytest.mark.parametrize(
    ("starts", "least", "most"),
    [
        pytest.param([DRAWN.p50] * 60, 0.0, 0.1, id="starts fell where they were drawn"),
        pytest.param([NOW + 10_000] * 60, 0.9, 1.0, id="starts fell where they were planned"),
        pytest.param([(DRAWN.p50 + NOW + 10_000) // 2] * 60, 0.3, 0.7, id="starts fell half-way"),
    ],
)
def test_the_middle_is_where_starts_fell(starts: list[int], least: float, most: float) -> None:
    assert least <= habits([outcome(start) for start in starts])[1].mix <= most


def test_who_still_waits_counts_as_late() -> None:
    quick = [outcome(NOW + 4000, filed_at=NOW + i) for i in range(30)]
    slow = [outcome(NOW + 40_000, filed_at=NOW + i, is_open=True) for i in range(30)]
    assert habits([*quick, *slow])[1].above > habits(quick)[1].above


def stream(waits: Sequence[float], every: int = 1200) -> list[Outcome]:
    """Requests with one plan, filed one after the other."""
    return [
        Outcome(1, at, at + 10_000, Drawn(at + 3600, at + 7200, at + 14_400), at + round(wait))
        for at, wait in zip(count(NOW, every), waits)
    ]


def covered(found: Sequence[Outcome], after: int) -> float:
    """Share of starts within what was told, without the first ones."""
    told_then, _ = replayed(found)
    both = list(zip(found, told_then, strict=True))[after:]
    return sum(said.p10 <= one.start <= said.p90 for one, said in both) / len(both)


@pytest.mark.parametrize(
    ("middle", "spread"),
    [
        pytest.param(9.2, 0.7, id="about as wide as expected"),
        pytest.param(8.9, 0.15, id="far closer together"),
        pytest.param(10.2, 0.9, id="far later, and far apart"),
    ],
)
def test_what_starts_as_before_is_covered_four_times_in_five(middle: float, spread: float) -> None:
    chance = random.Random(3)
    found = stream([chance.lognormvariate(middle, spread) for _ in range(1200)])
    assert 0.77 <= covered(found, 400) <= 0.83


def test_what_becomes_later_is_soon_covered_again() -> None:
    chance = random.Random(4)
    waits = [chance.lognormvariate(9.2, 0.4) * (1 if number < 600 else 3) for number in range(1200)]
    assert 0.72 <= covered(stream(waits), 600) <= 0.88


def test_what_is_told_follows_from_what_was_known_then() -> None:
    chance = random.Random(6)
    found = stream([chance.lognormvariate(9.2, 0.7) for _ in range(40)])
    said, _ = replayed(found)
    for number, one in enumerate(found):
        at = one.filed_at
        known = [
            past if past.start <= at else replace(past, start=at, is_open=True) for past in found[:number]
        ]
        assert told(one.drawn, one.planned, at, at, habit_of(habits(known), 150)) == said[number]


def test_each_of_those_that_wait_together_counts_less() -> None:
    together = [outcome(NOW + 90_000, filed_at=NOW + i) for i in range(5)]
    apart = [
        replace(one, filed_at=NOW + i * 10**5, start=NOW + i * 10**5 + 90_000)
        for i, one in enumerate(together)
    ]
    assert Habit().above < habits(together)[1].above < habits(apart)[1].above / 2


def test_the_order_in_which_outcomes_are_read_does_not_matter() -> None:
    chance = random.Random(5)
    found = [outcome(NOW + chance.randrange(50_000), filed_at=NOW + i // 2 * 300) for i in range(60)]
    shuffled = chance.sample(found, len(found))
    assert habits(shuffled) == habits(found)


@given(instants, instants, instants, instants, instants, st.sampled_from([0.0, 0.5, 1.0]))
def test_what_is_told_is_in_order_and_not_in_the_past(
    a: int, b: int, c: int, planned: int, now: int, mix: float
) -> None:
    drawn = Drawn(*sorted((a, b, c)))
    said = told(drawn, planned, NOW, now, Habit(mix, 0.5, 3.0))
    assert now <= said.p10 <= said.p50 <= said.p90
