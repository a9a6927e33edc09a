"""Clocks of processes: what is passed on of a step, what headers say, and what `once` does about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler import clock
from reconciler.clock import SystemClock
from reconciler.main import settle
from reconciler.timekeeping import date_header
from reconciler.timekeeping.date_header import heard_in
from schemas.errors import Fault
from tests.reconciler.timekeeping.test_clock_doubt import HOUR, Hands, running
from tests.support.world import START, at


@pytest.mark.parametrize(
    ("back", "shown"),
    [
        pytest.param(timedelta(seconds=30), timedelta(), id="a small step back is not passed on"),
        pytest.param(timedelta(hours=1), timedelta(hours=-1), id="a large one is: it is for others to judge"),
        pytest.param(timedelta(hours=-1), timedelta(hours=1), id="a step ahead is passed on"),
    ],
)
def test_the_machines_clock_is_set(back, shown, monkeypatch):
    one, read = SystemClock(), [START]
    monkeypatch.setattr(clock, "wall", lambda: read[0])
    one.now()
    read[0] = START - back
    assert one.now() == START + shown


@pytest.mark.parametrize(
    ("header", "says"),
    [
        pytest.param("Sat, 21 Nov 2026 08:00:00 GMT", datetime(2026, 11, 21, 8, tzinfo=UTC), id="a date"),
        pytest.param(None, None, id="none"),
        pytest.param("yesterday", None, id="no date"),
        pytest.param("Sat, 21 Nov 99999 08:00:00 GMT", None, id="a date that cannot be"),
    ],
)
def test_a_header_says_what_the_time_is_there(header, says, monkeypatch):
    monkeypatch.setattr(date_header, "steady_s", lambda: 7.0)
    found = heard_in(header)
    assert (None if found is None else found.says) == says
    assert found is None or found.at(67.0) == found.says + timedelta(minutes=1)


def test_once_says_what_the_clocks_say_and_does_nothing():
    world = running()
    before, hands = world.remote.tips["egs/status"], Hands(world, -HOUR)
    with pytest.raises(Fault, match="the status branch says at least") as error:
        settle(world.start(clock=hands), hands)
    assert error.value.reason == "ClockDoubted"
    assert world.remote.tips["egs/status"] == before
    hands.off = timedelta()
    world.now = at(10)
    assert world.start(clock=hands).cycle(world.now).leading
