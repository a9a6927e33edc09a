"""Events on their way out: noted for the next commit, sent in a push that may have landed, told in the log.

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
"""Problems of one change that are told one by one."""
MOST_UNSURE = 1000
"""Events of pushes without an answer that are kept until one of them turns out to have landed."""


class PendingEvents:
    """What one controller has to tell. One owner."""

    def __init__(self) -> None:
        self._notes: tuple[Event, ...] = ()
        self._unsure: tuple[Event, ...] = ()  # told in pushes that may have landed
        self._landed: tuple[Event, ...] = ()  # told in a push that did, and in the log not yet
        self._problems: frozenset[Problem] = frozenset()  # of main, told or known already
        self._alarms: frozenset[str] = frozenset()  # that stand, told already
        self._stood = False  # main was not followed, and that was told
        self._adopted: Adoption | None = None  # told already

    def note(self, events: Iterable[Event]) -> None:
        """Keep for the next commit what happened outside of deciding."""
        self._notes = (*self._notes, *events)

    def known(self, problems: Iterable[Problem]) -> None:
        """What main had wrong when it was answered last is no news."""
        self._problems = frozenset(problems)

    def note_problems(self, problems: Iterable[Problem], now: datetime) -> None:
        """Tell what main has wrong and had not before."""
        current = frozenset(problems)
        if current != self._problems:
            self.note(refusals(sorted(current), self._problems, now))
            self._problems = current

    def note_alarms(self, sentences: Iterable[str], now: datetime) -> None:
        """Tell each alarm once as long as it stands; `sentences` are all that stand now."""
        current = tuple(dict.fromkeys(sentences))
        self.note(Event(now, EventReason.ALARM, text) for text in current if text not in self._alarms)
        self._alarms = frozenset(current)

    def note_main(self, commit: str, alarm: str, adoption: Adoption | None, now: datetime) -> None:
        """Tell once that main is followed again after it was not, and what an operator took."""
        if adoption is not None and adoption != self._adopted:
            self.note([Event(now, EventReason.FOLLOWED, adoption.sentence)])
            self._adopted = adoption
        elif self._stood and not alarm:
            self.note([Event(now, EventReason.FOLLOWED, f"main is followed again; {commit[:12]} counts")])
        self._stood = bool(alarm)

    def begin(self, events: Iterable[Event]) -> None:
        """A new term: what an earlier one noted is its own affair."""
        self._notes, self._alarms, self._stood = tuple(events), frozenset(), False

    def with_notes(self, events: Iterable[Event]) -> tuple[Event, ...]:
        """Everything that the next commit tells."""
        return (*self._notes, *events)

    def committed(self) -> None:
        """The push landed."""
        self._notes = self._unsure = ()

    def given_up(self, events: Iterable[Event]) -> None:
        """The push did not land, or not yet."""
        self._unsure = tuple(dict.fromkeys((*self._unsure, *events)))[-MOST_UNSURE:]

    def settle(self, has_told: Callable[[Event], bool]) -> None:
        """A push given up may have landed after all: `has_told` knows what the branch tells."""
        self._landed = tuple(event for event in self._unsure if has_told(event))
        self._notes = tuple(event for event in self._notes if event not in self._landed)
        self._unsure = ()

    def tell(self, news: Iterable[Event]) -> tuple[Event, ...]:
        """Log what is committed, and give it back."""
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
    """One event for each error that main did not have before; a flood of them is cut short."""
    new = [p for p in problems if p.severity == "error" and p not in known]
    told = [
        Event(now, EventReason.MANIFEST_REFUSED, f"{p.file}:{p.line}: {p.message}; {p.fix}")
        for p in new[:MOST_REFUSALS]
    ]
    if len(new) > MOST_REFUSALS:
        text = f"{len(new) - MOST_REFUSALS} more problems; problems.yaml lists them"
        told.append(Event(now, EventReason.MANIFEST_REFUSED, text))
    return told


def summarised(events: Collection[Event]) -> str:
    """A commit's subject: what happened, the controller's own arrival last."""
    texts = [e.message for e in sorted(events, key=lambda e: e.reason is EventReason.TAKEN_OVER)]
    if not texts:
        return "Estimates and inventory"
    more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
    return texts[0].splitlines()[0][:160] + more
