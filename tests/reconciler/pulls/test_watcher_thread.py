"""The thread of a watcher: what breaks in it is told and tried again, and never leaves it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event
from typing import cast

import pytest

from reconciler.clock import ManualClock, SystemClock
from reconciler.cycle import Cycle
from reconciler.forges.forge_port import RateLimited
from reconciler.model import backoff
from reconciler.pulls.watcher import Watcher
from reconciler.pulls.watcher_thread import Attending
from schemas.errors import Fault, UserError
from tests.support.world import START

PATIENCE_S = 60.0


@dataclass
class Fake:
    """A watcher that breaks as it is told to."""

    troubles: list[Exception] = field(default_factory=list)
    rounds: int = 0
    noted: list[Cycle] = field(default_factory=list)
    met: Event = field(default_factory=Event)
    closed: Event = field(default_factory=Event)

    def note(self, cycle: Cycle) -> None:
        self.noted.append(cycle)

    def round(self, now: datetime) -> datetime:
        self.rounds += 1
        self.met.set()
        if self.troubles:
            raise self.troubles.pop(0)
        return now + timedelta(minutes=1)

    def close(self) -> None:
        self.closed.set()


def attending(fake: Fake) -> Attending:
    return Attending(lambda: cast(Watcher, fake), ManualClock(START), "fleet")


def cycle(changed: bool = False) -> Cycle:
    return Cycle(START, leading=True, wake=START, changed=changed)


def test_a_round_tells_when_the_next_is_due() -> None:
    assert attending(Fake()).step(START) == START + timedelta(minutes=1)


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(Fault("the forge is gone", "ForgeUnreachable"), id="a fault"),
        pytest.param(UserError("no such forge", "BadForge"), id="a person's mistake"),
        pytest.param(ZeroDivisionError(), id="a bug"),
    ],
)
def test_trouble_is_tried_again_ever_more_seldom(
    trouble: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    one = attending(Fake([trouble] * 12))
    pauses = [one.step(START) - START for _ in range(12)]
    assert pauses[0] == backoff.PULLS.first
    assert pauses == sorted(pauses)
    assert pauses[-1] == backoff.PULLS.longest
    assert one.step(START) == START + timedelta(minutes=1)
    if not isinstance(trouble, ZeroDivisionError):
        assert caplog.text.count(str(trouble)) == 1, "the same trouble is told once"


def test_a_forge_that_wants_rest_gets_exactly_that() -> None:
    until = START + timedelta(minutes=7)
    assert attending(Fake([RateLimited("later", until)])).step(START) == until


def test_a_watcher_that_cannot_be_made_is_made_later() -> None:
    fake, tries = Fake(), iter([True, False])

    def make() -> Watcher:
        if next(tries):
            raise UserError("give a token", "BadForge")
        return cast(Watcher, fake)

    one = Attending(make, ManualClock(START), "fleet")
    assert one.step(START) == START + backoff.PULLS.first
    one.step(START)
    assert fake.rounds == 1


def test_the_latest_cycle_is_what_a_round_knows() -> None:
    fake = Fake()
    one = attending(fake)
    one.note(cycle())
    one.note(newest := cycle(changed=True))
    one.step(START)
    assert fake.noted == [newest]


def test_the_thread_turns_is_woken_and_stops() -> None:
    fake = Fake()
    one = Attending(lambda: cast(Watcher, fake), SystemClock(), "fleet", timedelta())
    one.start()
    assert fake.met.wait(PATIENCE_S)
    fake.met.clear()
    one.note(cycle(changed=True))
    assert fake.met.wait(PATIENCE_S), "a change in the loop is looked at at once"
    one.end()
    assert fake.closed.wait(PATIENCE_S)
    one.stop()


def test_a_hook_before_the_start_does_no_harm() -> None:
    one = attending(Fake())
    one.wake()
    one.stop()
