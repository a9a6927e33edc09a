"""What drawn futures are worth is learnt from how earlier ones came out (issue: honest estimates; E1, E9)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.estimates.calibration import Habit, Outcome, habit_of, habits, told
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


def test_what_starts_as_before_is_covered_four_times_in_five() -> None:
    chance = random.Random(3)
    starts = [NOW + round(chance.lognormvariate(9.5, 0.7)) for _ in range(900)]
    hits = 0
    for number in range(300, 900):
        known = [outcome(start, filed_at=NOW + i) for i, start in enumerate(starts[:number])]
        said = told(DRAWN, NOW + 10_000, NOW, NOW, habits(known)[1])
        hits += said.p10 <= starts[number] <= said.p90
    assert 0.77 <= hits / 600 <= 0.83


@given(instants, instants, instants, instants, instants, st.sampled_from([0.0, 0.5, 1.0]))
def test_what_is_told_is_in_order_and_not_in_the_past(
    a: int, b: int, c: int, planned: int, now: int, mix: float
) -> None:
    drawn = Drawn(*sorted((a, b, c)))
    said = told(drawn, planned, NOW, now, Habit(mix, 0.5, 3.0))
    assert now <= said.p10 <= said.p50 <= said.p90
