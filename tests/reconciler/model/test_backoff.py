"""Pauses grow, end at the longest, and begin anew."""

from __future__ import annotations

from datetime import timedelta
from itertools import accumulate

import pytest

from reconciler.model import backoff
from reconciler.model.backoff import Backoff

SECOND = timedelta(seconds=1)
PAUSES = Backoff(SECOND, 5 * SECOND)
ALL = [value for value in vars(backoff).values() if isinstance(value, Backoff)]


@pytest.mark.parametrize(
    ("failures", "want"),
    [
        pytest.param(1, 1, id="the first"),
        pytest.param(2, 2, id="twice as long"),
        pytest.param(3, 4, id="and again"),
        pytest.param(4, 5, id="up to the longest"),
        pytest.param(10**6, 5, id="however many there were"),
    ],
)
def test_the_pause_after_failures(failures: int, want: int) -> None:
    assert PAUSES.after(failures) == want * SECOND


@pytest.mark.parametrize("pauses", ALL)
def test_one_after_the_other_or_counted_they_are_the_same(pauses: Backoff) -> None:
    steps = accumulate(range(40), lambda pause, _: pauses.longer(pause), initial=pauses.longer(None))
    assert list(steps) == [pauses.after(failures) for failures in range(1, 42)]


@pytest.mark.parametrize("pauses", ALL)
def test_they_have_a_longest(pauses: Backoff) -> None:
    assert timedelta() < pauses.first <= pauses.longest == pauses.after(40)


def test_after_a_success_they_begin_anew() -> None:
    assert PAUSES.longer(None) == PAUSES.first
