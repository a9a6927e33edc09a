"""How long what a forge said counts, and how often it is asked (D8)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from threading import Event

from reconciler.approvals.forge_reviews import COUNTS_FOR, OneByOne, Reviews
from reconciler.forges.forge_port import Account, Committer, Pull, Review
from schemas.errors import Fault
from tests.support.world import START

QUESTION = ("c" * 40, "slices/a/gprs/x.yaml", "b" * 40)
ADA, BO = Account(1, "ada"), Account(2, "bo")


class Told:
    """A forge that says yes until it is told otherwise; only what approvals are read from."""

    def __init__(self) -> None:
        self.asked, self.is_down, self.approves = 0, False, True

    def pulls_of(self, commit: str) -> Sequence[Pull]:
        self.asked += 1
        if self.is_down:
            raise Fault("the forge does not answer", "ForgeUnreachable")
        return [Pull(7, BO, "h" * 40, "main", state="merged", merge_commit=commit, last_pusher=BO)]

    def changed_paths(self, number: int) -> Sequence[str]:
        return [QUESTION[1]]

    def blob_at(self, commit: str, path: str) -> str | None:
        return QUESTION[2]

    def reviews(self, number: int) -> Sequence[Review]:
        return [Review(ADA, "approve", "h" * 40, START, "1", is_dismissed=not self.approves)]

    def committers(self, number: int) -> Sequence[Committer]:
        return [Committer(2, "bo@example.com")]


def _reviews(forge: Told) -> Reviews:
    return Reviews(forge, "main")  # type: ignore[arg-type]


def _after(reviews: Reviews, seconds: float) -> int | None:
    """How many approvals are known then; None: nothing is."""
    found = reviews.of(QUESTION, {}, START + timedelta(seconds=seconds))
    return None if found is None else len(found)


def test_one_question_is_asked_once_a_minute() -> None:
    forge = Told()
    reviews = _reviews(forge)
    assert [_after(reviews, s) for s in (0, 10, 59)] == [1, 1, 1]
    assert forge.asked == 1
    assert _after(reviews, 60) == 1
    assert forge.asked == 2


def test_what_the_forge_takes_back_is_gone_within_a_minute() -> None:
    forge = Told()
    reviews = _reviews(forge)
    assert _after(reviews, 0) == 1
    forge.approves = False
    assert [_after(reviews, s) for s in (59, 60)] == [1, 0]


def test_an_answer_counts_for_five_minutes_while_the_forge_is_silent() -> None:
    forge = Told()
    reviews = _reviews(forge)
    assert _after(reviews, 0) == 1
    forge.is_down = True
    last = COUNTS_FOR.total_seconds()
    assert [_after(reviews, s) for s in (60, last, last + 1)] == [1, 1, None]
    forge.is_down = False
    assert _after(reviews, last + 120) == 1


def _asked_in(reviews: Reviews, forge: Told, begin: timedelta, length: timedelta) -> int:
    """How often the forge is asked while a loop with a poll of half a minute turns."""
    before, polls = forge.asked, int(length / timedelta(seconds=30))
    for poll in range(polls):
        reviews.of(QUESTION, {}, START + begin + poll * timedelta(seconds=30))
    return forge.asked - before


def test_an_open_question_is_asked_ever_more_seldom() -> None:
    forge = Told()
    forge.approves = False
    reviews = _reviews(forge)
    hour, day = timedelta(hours=1), timedelta(days=1)
    assert _asked_in(reviews, forge, timedelta(), hour) > 20
    assert _asked_in(reviews, forge, hour, day) < 100
    assert _asked_in(reviews, forge, day + hour, day) <= 25


def test_after_a_webhook_a_question_is_as_good_as_new() -> None:
    forge, hooked = Told(), Event()
    forge.approves = False
    reviews = Reviews(forge, "main", hooked=hooked)  # type: ignore[arg-type]
    _asked_in(reviews, forge, timedelta(), timedelta(days=2))
    forge.approves = True
    assert _after(reviews, 2 * 86400) == 0
    hooked.set()
    assert _after(reviews, 2 * 86400 + 61) == 1


def test_old_approvals_are_asked_again_before_they_count_no_more() -> None:
    forge = Told()
    reviews = _reviews(forge)
    every = [_after(reviews, seconds) for seconds in range(0, 2 * 86400, 60)]
    assert set(every) == {1}


def test_a_forge_that_never_answered_approves_nothing() -> None:
    forge = Told()
    forge.is_down = True
    assert _after(_reviews(forge), 0) is None


def test_a_silent_forge_is_asked_one_question_a_minute() -> None:
    """Each unanswered call may take its whole time limit."""
    forge = Told()
    forge.is_down = True
    reviews = _reviews(forge)
    for number in range(20):
        assert reviews.of((QUESTION[0], f"{number}", QUESTION[2]), {}, START) is None
    assert forge.asked == 1


def test_nothing_waits_for_an_answer_and_whoever_waits_is_woken_by_a_new_one() -> None:
    forge, woken, may_answer = Told(), Event(), Event()
    beside = OneByOne()

    def run(work: object) -> None:
        beside(lambda: (may_answer.wait(60), work())[1])  # type: ignore[operator]

    reviews = Reviews(forge, "main", run, woken.set)  # type: ignore[arg-type]
    assert _after(reviews, 0) is None
    assert _after(reviews, 61) is None  # asked once, and still under way
    may_answer.set()
    assert woken.wait(60)
    assert _after(reviews, 59) == 1
    assert forge.asked == 1


def test_work_that_fails_does_not_end_the_thread() -> None:
    beside, done = OneByOne(), Event()

    def broken() -> None:
        raise ValueError("whatever")

    beside(broken)
    beside(done.set)
    assert done.wait(60)
