"""How far ahead starts are decided, and how long causes may be tried, follow from the length of cycles."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.clock import ManualClock
from reconciler.settings import Settings
from reconciler.timekeeping.cycle_pace import MOST_AHEAD, TRIALS, Pace
from tests.support.world import START

SETTINGS = Settings(repo="memory", state=Path("unused"))
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("took_s", "has_more", "sooner_s"),
    [
        pytest.param(0, False, 0, id="cycles are short: the lead is the operator's"),
        pytest.param(15, False, 30, id="a long cycle: twice as much sooner"),
        pytest.param(0, True, 60, id="a large push is read: its plan takes long"),
        pytest.param(600, True, 120, id="never sooner than the most"),
    ],
)
def test_lead(took_s: int, has_more: bool, sooner_s: int) -> None:
    clock = ManualClock(START)
    pace = Pace(SETTINGS, clock)
    pace.begin(START)
    clock.set(START + took_s * SECOND)
    pace.end(START)
    lead = pace.ahead(has_more=has_more).start_lead
    assert lead - SETTINGS.start_lead == sooner_s * SECOND
    assert sooner_s * SECOND <= MOST_AHEAD


def test_time_for_trials_counts_from_the_first() -> None:
    """The plan before them may have taken as long as it did: one cause at least is tried."""
    clock = ManualClock(START)
    has_time = Pace(SETTINGS, clock).trials(START)
    clock.set(START + timedelta(minutes=5))
    assert has_time()
    clock.set(clock.now() + TRIALS - SECOND)
    assert has_time()
    clock.set(clock.now() + SECOND)
    assert not has_time()


def test_without_a_clock_time_stands_still() -> None:
    pace = Pace(SETTINGS)
    has_time = pace.trials(START)
    assert all(has_time() for _ in range(1000))
    assert pace.read(START) == START
