"""What a forge says of who approved some content: asked seldom, and believed for a short while only.

Each question is asked once a minute at most. An answer that could not be renewed for five minutes counts no more:
when the forge cannot be asked, nothing is approved.

Held by tests/reconciler/test_reviews.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from queue import SimpleQueue
from threading import Thread

from reconciler.forges.evidence import approving
from reconciler.forges.port import Forge, Pull, Review
from schemas.errors import Fault

log = logging.getLogger(__name__)

ASKED_AGAIN = timedelta(minutes=1)
"""Of one question; also how long nobody is asked after the forge did not answer."""
COUNTS_FOR = timedelta(minutes=5)
"""An answer, from when it was asked for."""
KEPT_FOR = timedelta(minutes=10)
"""Questions that nobody repeats are forgotten after this."""

Question = tuple[str, str, str]
"""(commit of main, path, Git's id of the content there)."""
Approvals = tuple[tuple[Review, Pull], ...]
Addresses = Mapping[int, frozenset[str]]
"""E-mail addresses by account, for commits whose account the forge does not know."""
Run = Callable[[Callable[[], None]], object]
"""Does a piece of work: at once, or soon in another thread."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What was said, and when it was asked for."""

    approvals: Approvals
    at: datetime


def at_once(work: Callable[[], None]) -> None:
    """Does the work before anything else happens."""
    work()


class OneByOne:
    """Does work in a thread of its own, in the order of its coming."""

    def __init__(self) -> None:
        self._todo: SimpleQueue[Callable[[], None]] = SimpleQueue()
        Thread(target=self._turn, name="reviews", daemon=True).start()

    def __call__(self, work: Callable[[], None]) -> None:
        """Soon."""
        self._todo.put(work)

    def _turn(self) -> None:
        while True:
            work = self._todo.get()
            try:
                work()
            except Exception:  # whatever it is, the next piece has its turn
                log.exception("forge not asked")


class Reviews:
    """One forge's answers. `of` has one caller; answers may come in from another thread."""

    def __init__(
        self, forge: Forge, branch: str, run: Run = at_once, told: Callable[[], None] = lambda: None
    ) -> None:
        """`told` is called whenever an answer is another one, in the thread that brought it."""
        self._forge, self._branch, self._run, self._told = forge, branch, run, told
        self._asked: dict[Question, datetime] = {}
        self._under_way: set[Question] = set()
        self._answers: dict[Question, _Answer] = {}
        self._silent_until: datetime | None = None

    def of(self, question: Question, addresses: Addresses, now: datetime) -> Approvals | None:
        """Reviews that approve exactly that content, whoever made them; None: nothing is known that counts now."""
        if self._is_due(question, now):
            self._forget(now)
            self._asked[question] = now
            self._under_way.add(question)
            self._run(lambda: self._ask(question, addresses, now))
        answer = self._answers.get(question)
        return None if answer is None or now - answer.at > COUNTS_FOR else answer.approvals

    def _is_due(self, question: Question, now: datetime) -> bool:
        if question in self._under_way or (self._silent_until is not None and now < self._silent_until):
            return False
        asked = self._asked.get(question)
        return asked is None or now - asked >= ASKED_AGAIN

    def _ask(self, question: Question, addresses: Addresses, now: datetime) -> None:
        commit, path, blob = question
        try:
            found = approving(self._forge, commit, path, blob, self._branch, addresses=addresses)
        except Fault as fault:
            self._silent_until = now + ASKED_AGAIN
            log.warning("forge did not tell who approved reason=%s message=%s", fault.reason, fault)
        else:
            last = self._answers.get(question)
            self._answers[question] = _Answer(found, now)
            if last is None or last.approvals != found:
                self._told()
        finally:
            self._under_way.discard(question)

    def _forget(self, now: datetime) -> None:
        for question in [q for q, at in self._asked.items() if now - at > KEPT_FOR]:
            self._asked.pop(question)
            self._answers.pop(question, None)
