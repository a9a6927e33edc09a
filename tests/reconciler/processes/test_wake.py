"""The loop is woken at the instants that matter, and early by whoever knows something; a flood of that costs little."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from reconciler.clock import SystemClock, monotonic_s
from reconciler.cycle import Cycle
from reconciler.processes import wake
from reconciler.processes.wake import Attempt, Waking
from schemas.errors import Fault, UserError

HOUR, MOMENT = timedelta(hours=1), timedelta(milliseconds=50)


class Loop:
    """Cycles that take as long as the test wants, and then sleep for `pause`."""

    def __init__(
        self, pause: timedelta = HOUR, fail: Callable[[int], Exception | None] = lambda _: None
    ) -> None:
        self.pause = pause
        self.fail = fail
        self.begun = self.ended = self.together = self.most_together = 0
        self.go = threading.Event()
        self.go.set()
        self.changed = threading.Condition()

    def cycle(self, now):
        with self.changed:
            self.begun += 1
            self.together += 1
            self.most_together = max(self.most_together, self.together)
            self.changed.notify_all()
        self.go.wait(20)
        with self.changed:
            self.ended += 1
            self.together -= 1
            number = self.ended
            self.changed.notify_all()
        if (error := self.fail(number)) is not None:
            raise error
        return Cycle(now, True, now + self.pause)

    def reaches(self, *, begun: int = 0, ended: int = 0) -> bool:
        """True as soon as so many cycles began and ended; False when they do not within a while."""
        with self.changed:
            return self.changed.wait_for(lambda: self.begun >= begun and self.ended >= ended, timeout=60)


@pytest.fixture
def started(monkeypatch) -> Iterator[Callable[..., Waking]]:
    made: list[Waking] = []

    def start(loop: Loop, gap: timedelta = MOMENT, **more: object) -> Waking:
        monkeypatch.setattr(wake, "WAKE_GAP", gap)
        made.append(Waking(loop, SystemClock(), **more))  # type: ignore[arg-type]
        made[-1].start()
        return made[-1]

    yield start
    for one in made:
        one.stop()


def rests(one: Waking) -> bool:
    """True as soon as no cycle runs."""
    end_s = monotonic_s() + 10
    while one.progress.due is None and monotonic_s() < end_s:
        threading.Event().wait(0.002)
    return one.progress.due is not None


def test_the_first_cycle_begins_at_once_and_the_next_when_it_said(started):
    loop = Loop(pause=MOMENT)
    started(loop)
    assert loop.reaches(ended=4)


def test_a_wake_up_is_not_waited_for(started):
    loop = Loop()
    one = started(loop)
    assert loop.reaches(ended=1)
    assert rests(one)
    one.wake()
    assert loop.reaches(ended=2)


def test_a_wake_up_during_a_cycle_brings_another_after_it(started):
    """What it is about may have come after that cycle read the repository."""
    loop = Loop()
    loop.go.clear()
    one = started(loop)
    assert loop.reaches(begun=1)
    one.wake()
    loop.go.set()
    assert loop.reaches(ended=2)


def test_a_flood_of_wake_ups_is_one_cycle(started):
    loop = Loop()
    one = started(loop, gap=HOUR)
    assert loop.reaches(ended=1)
    assert rests(one)
    threads = [threading.Thread(target=lambda: [one.wake() for _ in range(200)]) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loop.begun == 1, "the gap after the first cycle is not over"
    due = one.progress.due
    assert due is not None
    assert due <= SystemClock().now() + HOUR


def test_floods_bring_a_cycle_every_gap_and_never_two_at_a_time(started):
    loop = Loop()
    one = started(loop)
    begun_s = monotonic_s()
    while loop.ended < 6 and monotonic_s() < begun_s + 10:
        one.wake()
    took_s = monotonic_s() - begun_s
    assert loop.ended >= 6
    assert took_s >= 4 * MOMENT.total_seconds()
    assert loop.most_together == 1


def test_what_moves_in_a_cluster_brings_a_cycle_soon_and_a_flood_of_it_one(started, monkeypatch):
    """Not at once: pods come and go all day."""
    monkeypatch.setattr(wake, "STIR", 4 * MOMENT)
    loop = Loop()
    work = started(loop)
    assert loop.reaches(ended=1)
    begun_s = monotonic_s()
    for _ in range(100):
        work.stir()
    assert loop.reaches(ended=2)
    assert monotonic_s() - begun_s >= 3 * MOMENT.total_seconds()
    assert loop.begun == 2


def test_what_moves_during_a_cycle_is_looked_at_after_it(started, monkeypatch):
    monkeypatch.setattr(wake, "STIR", MOMENT)
    loop = Loop()
    loop.go.clear()
    work = started(loop)
    assert loop.reaches(begun=1)
    work.stir()
    loop.go.set()
    assert loop.reaches(ended=2)


def test_a_wake_up_never_puts_a_cycle_off(started):
    loop = Loop(pause=4 * MOMENT)
    one = started(loop, gap=HOUR)
    assert loop.reaches(ended=1)
    one.wake()
    assert loop.reaches(ended=2)


def test_no_wake_up_is_lost_while_a_tick_comes_to_its_end(started):
    """With one tick allowed at a time the scheduler would drop those that come while the last one returns."""
    loop = Loop(pause=timedelta(seconds=-1))
    started(loop, gap=timedelta(), tried=lambda _: threading.Event().wait(0.01))
    assert loop.reaches(ended=20)
    assert loop.most_together == 1


def test_a_cycle_that_fails_is_tried_again_later_and_later(started):
    reasons: list[str] = []

    def fail(number: int) -> Exception | None:
        return {1: Fault("down", "RemoteUnreachable"), 2: KeyError("bug")}.get(number)

    loop = Loop(fail=fail)
    one = started(loop, tried=lambda attempt: reasons.append(attempt.reason))
    assert loop.reaches(ended=1)
    one.wake()
    assert loop.reaches(ended=2)
    assert rests(one)
    assert one.progress.failing == "Bug"
    one.wake()
    assert loop.reaches(ended=3)
    assert rests(one)
    assert one.progress.failing == ""
    assert reasons[:2] == ["RemoteUnreachable", "Bug"]


def test_what_no_later_cycle_can_mend_ends_the_loop(started):
    one = started(Loop(fail=lambda _: UserError("adopt it", "NotAdopted")))
    assert one.ended.wait(60)
    assert one.failed is not None


def test_unless_the_others_go_on(started):
    loop = Loop(fail=lambda number: UserError("adopt it", "NotAdopted") if number == 1 else None)
    one = started(loop, fatal=())
    assert loop.reaches(ended=2)
    assert one.failed is None


def test_a_watcher_that_breaks_does_not_stop_the_loop(started):
    def watch(attempt: Attempt) -> None:
        raise KeyError("a bug in the metrics")

    loop = Loop(pause=MOMENT)
    started(loop, tried=watch)
    assert loop.reaches(ended=3)


def test_wake_ups_before_the_start_and_after_the_end_do_nothing():
    loop = Loop()
    one = Waking(loop, SystemClock())
    one.wake()
    assert loop.begun == 0
    one.start()
    assert loop.reaches(ended=1)
    one.stop()
    one.wake()
    assert loop.ended == loop.begun


def test_what_is_due_beside_a_long_cycle_is_asked_for_while_it_runs(started):
    loop, asked = Loop(), threading.Event()
    loop.go.clear()

    def beside(now):
        if loop.together:
            asked.set()
        return now

    started(loop, beside=beside)
    assert asked.wait(60)
    assert loop.ended == 0
    loop.go.set()


def test_trouble_beside_a_cycle_ends_neither(started):
    loop, tries = Loop(pause=MOMENT), threading.Semaphore(0)

    def beside(_now):
        tries.release()
        raise RuntimeError("a bug")

    started(loop, beside=beside)
    assert all(tries.acquire(timeout=60) for _ in range(3))
    assert loop.reaches(ended=2)


def test_an_end_waits_no_longer_for_a_cycle_than_it_is_told():
    loop = Loop()
    loop.go.clear()
    one = Waking(loop, SystemClock())
    one.start()
    assert loop.reaches(begun=1)
    assert not one.stop(within_s=0.01)
    assert loop.ended == 0
    loop.go.set()
    assert loop.reaches(ended=1)


def test_a_clock_that_is_set_back_an_hour_is_no_hour_of_sleep(started, monkeypatch):
    """The scheduler sleeps by the machine's clock; planned by one that was an hour ahead, it would sleep too long."""
    loop, off = Loop(pause=timedelta(seconds=1)), [HOUR]
    real = wake.wall
    monkeypatch.setattr(wake, "wall", lambda: real() + off[0])
    started(loop)
    off[0] = timedelta()
    assert loop.reaches(ended=2)
