"""Approvals from a forge's reviews: queried rarely and trusted for a short time.

Each question is asked at most once a minute, and less often the longer it is open; a webhook makes all due
again. An approval not renewed for five minutes no longer counts: an unreachable forge approves nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from queue import SimpleQueue
from threading import Event, Thread

from reconciler.forges.forge_port import Forge, Pull, Review
from reconciler.forges.review_evidence import approving
from schemas.errors import Fault

log = logging.getLogger(__name__)

ASKED_AGAIN = timedelta(minutes=1)
"""Shortest interval for one question; also the pause after the forge failed to answer."""
AGE_PER_PAUSE = 20
"""The interval of an open question grows with its age: five per cent of it."""
LONGEST_PAUSE = timedelta(hours=1)
"""Longest interval for one question, however old it is."""
COUNTS_FOR = timedelta(minutes=5)
"""How long approvals count after they were queried."""
KEPT_FOR = timedelta(minutes=10)
"""Questions that the loop stops asking are forgotten after this time."""

Question = tuple[str, str, str]
"""(commit of main, path, Git's id of the content there)."""
Approvals = tuple[tuple[Review, Pull], ...]
Addresses = Mapping[int, frozenset[str]]
"""E-mail addresses by account, for commits whose account the forge does not know."""
Run = Callable[[Callable[[], None]], object]
"""Runs a piece of work: now, or later in another thread."""


@dataclass(frozen=True, slots=True)
class _Answer:
    approvals: Approvals
    at: datetime


def at_once(work: Callable[[], None]) -> None:
    work()


class OneByOne:
    """Runs work in a thread of its own, in order."""

    def __init__(self) -> None:
        self._todo: SimpleQueue[Callable[[], None]] = SimpleQueue()
        Thread(target=self._turn, name="reviews", daemon=True).start()

    def __call__(self, work: Callable[[], None]) -> None:
        self._todo.put(work)

    def _turn(self) -> None:
        while True:
            work = self._todo.get()
            try:
                work()
            except Exception:  # whatever it is, the next piece of work still runs
                log.exception("forge not asked")


@dataclass(slots=True)
class _Open:
    """A question that the loop keeps asking."""

    first: datetime
    asked: datetime
    repeated: datetime


class Reviews:
    """The answers of one forge. `of` has one caller; answers may arrive from another thread."""

    def __init__(
        self,
        forge: Forge,
        branch: str,
        run: Run = at_once,
        told: Callable[[], None] = lambda: None,
        hooked: Event | None = None,
    ) -> None:
        """`told` is called when an answer changed, in the receiving thread; `hooked` is set when a webhook arrived."""
        self._forge, self._branch, self._run, self._told = forge, branch, run, told
        self._hooked = hooked or Event()
        self._open: dict[Question, _Open] = {}
        self._under_way: set[Question] = set()
        self._answers: dict[Question, _Answer] = {}
        self._silent_until: datetime | None = None

    def of(self, question: Question, addresses: Addresses, now: datetime) -> Approvals | None:
        """Reviews that approve exactly this content, by any account; None: no current answer."""
        self._heed_hook(now)
        if self._is_due(question, now):
            self._forget(now)
            first = self._open[question].first if question in self._open else now
            self._open[question] = _Open(first, now, now)
            self._under_way.add(question)
            self._run(lambda: self._ask(question, addresses, now))
        if question in self._open:
            self._open[question].repeated = now
        return self._counting(question, now)

    def _counting(self, question: Question, now: datetime) -> Approvals | None:
        answer = self._answers.get(question)
        if answer is None:
            return None
        is_last = question in self._open and answer.at == self._open[question].asked
        # An empty answer is harmless however old it is.
        counts = now - answer.at <= COUNTS_FOR or (is_last and not answer.approvals)
        return answer.approvals if counts else None

    def _heed_hook(self, now: datetime) -> None:
        """After a webhook every question is due again."""
        if self._hooked.is_set():
            self._hooked.clear()
            for question in self._open.values():
                question.first = now

    def _is_due(self, question: Question, now: datetime) -> bool:
        if question in self._under_way or (self._silent_until is not None and now < self._silent_until):
            return False
        found = self._open.get(question)
        return found is None or now - found.asked >= self._pause(question, found, now)

    def _pause(self, question: Question, found: _Open, now: datetime) -> timedelta:
        answer = self._answers.get(question)
        has_to_count = answer is not None and bool(answer.approvals)
        longest = COUNTS_FOR - ASKED_AGAIN if has_to_count else LONGEST_PAUSE
        return min(longest, max(ASKED_AGAIN, (now - found.first) / AGE_PER_PAUSE))

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
        for question in [q for q, found in self._open.items() if now - found.repeated > KEPT_FOR]:
            self._open.pop(question)
            self._answers.pop(question, None)
