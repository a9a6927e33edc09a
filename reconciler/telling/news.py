"""Events on their way out: noted for the next commit, part of a push that may have landed, logged.

Each event is in one commit and once in the log, whatever becomes of a push.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from datetime import datetime

from reconciler.model.events import Event, EventReason
from reconciler.trust.adopted_main import Adoption
from schemas.rules.problems import Problem

log = logging.getLogger(__name__)

MOST_REFUSALS = 20
"""Problems of one change that get an event each."""
MOST_UNSURE = 1000
"""Events of unanswered pushes, kept until one of the pushes turns out to have landed."""


class PendingEvents:
    """The pending events of one controller. One owner."""

    def __init__(self) -> None:
        self._notes: tuple[Event, ...] = ()
        self._unsure: tuple[Event, ...] = ()  # in pushes that may have landed
        self._landed: tuple[Event, ...] = ()  # in a push that landed, and not yet logged
        self._problems: frozenset[Problem] = frozenset()  # problems of main that were reported or known
        self._alarms: frozenset[str] = frozenset()  # current alarms that were reported
        self._stood = False  # main was reported as not followed
        self._adopted: Adoption | None = None  # already reported

    def note(self, events: Iterable[Event]) -> None:
        """Adds events from outside deciding to the next commit."""
        self._notes = (*self._notes, *events)

    def known(self, problems: Iterable[Problem]) -> None:
        """The problems of the last processed main are not new."""
        self._problems = frozenset(problems)

    def note_problems(self, problems: Iterable[Problem], now: datetime) -> None:
        """Reports problems of main that are new."""
        current = frozenset(problems)
        if current != self._problems:
            self.note(refusals(sorted(current), self._problems, now))
            self._problems = current

    def note_alarms(self, sentences: Iterable[str], now: datetime) -> None:
        """Reports each alarm once while it lasts; `sentences` are all current alarms."""
        current = tuple(dict.fromkeys(sentences))
        self.note(Event(now, EventReason.ALARM, text) for text in current if text not in self._alarms)
        self._alarms = frozenset(current)

    def note_main(self, commit: str, alarm: str, adoption: Adoption | None, now: datetime) -> None:
        """Reports once that main is followed again, and what an operator adopted."""
        if adoption is not None and adoption != self._adopted:
            self.note([Event(now, EventReason.FOLLOWED, adoption.sentence)])
            self._adopted = adoption
        elif self._stood and not alarm:
            self.note([Event(now, EventReason.FOLLOWED, f"main is followed again; {commit[:12]} counts")])
        self._stood = bool(alarm)

    def begin(self, events: Iterable[Event]) -> None:
        """A new term: notes of an earlier one are dropped."""
        self._notes, self._alarms, self._stood = tuple(events), frozenset(), False

    def with_notes(self, events: Iterable[Event]) -> tuple[Event, ...]:
        """All events of the next commit."""
        return (*self._notes, *events)

    def committed(self) -> None:
        """The push landed."""
        self._notes = self._unsure = ()

    def given_up(self, events: Iterable[Event]) -> None:
        """The push did not land, or not yet."""
        self._unsure = tuple(dict.fromkeys((*self._unsure, *events)))[-MOST_UNSURE:]

    def settle(self, has_told: Callable[[Event], bool]) -> None:
        """A push without an answer may have landed: `has_told` knows the branch's events."""
        self._landed = tuple(event for event in self._unsure if has_told(event))
        self._notes = tuple(event for event in self._notes if event not in self._landed)
        self._unsure = ()

    def tell(self, news: Iterable[Event]) -> tuple[Event, ...]:
        """Logs committed events, and returns them."""
        events, self._landed = (*self._landed, *news), ()
        for event in events:
            log.log(
                logging.WARNING if event.warning else logging.INFO,
                "event reason=%s request=%s cluster=%s node=%s message=%s",
                event.reason,
                event.request,
                event.cluster,
                event.node,
                event.message,
            )
        return events


def refusals(problems: Iterable[Problem], known: Collection[Problem], now: datetime) -> list[Event]:
    """One event for each new error of main; limited in number."""
    new = [p for p in problems if p.severity == "error" and p not in known]
    told = [Event(now, EventReason.MANIFEST_REFUSED, p.sentence) for p in new[:MOST_REFUSALS]]
    if len(new) > MOST_REFUSALS:
        text = f"{len(new) - MOST_REFUSALS} more problems; problems.yaml lists them"
        told.append(Event(now, EventReason.MANIFEST_REFUSED, text))
    return told


def summarised(events: Collection[Event]) -> str:
    """A commit's subject: its events, the controller's own start last."""
    texts = [e.message for e in sorted(events, key=lambda e: e.reason is EventReason.TAKEN_OVER)]
    if not texts:
        return "Estimates and inventory"
    more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
    return texts[0].splitlines()[0][:160] + more
