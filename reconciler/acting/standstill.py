"""What a controller does while its clock is in doubt: it tells that once, carries out agreed ends, and nothing else.

Its commit bears the time of the last decision, or what has come by every clock: a wrong time never becomes a fact.

Held by tests/reconciler/timekeeping/test_clock_doubt.py.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.acting.agreed_ends import agreed_ends, next_end
from reconciler.acting.apply import Answers, ClusterFailures, apply
from reconciler.model.cluster_port import ClusterDriver
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Seen, Wanted
from reconciler.settings import Settings
from reconciler.status.branch import StatusBranch
from reconciler.store.branch_writer import outcome_of
from reconciler.telling.news import PendingEvents, summarised
from reconciler.timekeeping.clock_doubt import Doubt
from schemas.errors import Fault

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Standstill:
    """One owner."""

    branch: StatusBranch
    pending: PendingEvents
    settings: Settings
    pushed: str = ""
    """What became of the last push."""
    _event: Event | None = None  # of the doubt that stands
    _is_told: bool = False

    def over(self, now: datetime) -> tuple[Event, ...]:
        """Our clock is believed: that is told where the doubt was."""
        told, self._event, self._is_told = self._is_told, None, False
        if not told:
            return ()
        return (
            Event(
                now, EventReason.CLOCK_BELIEVED, "the controller's clock is believed again; planning goes on"
            ),
        )

    def tell(self, doubt: Doubt, *, reachable: bool) -> tuple[Event, ...]:
        """Commit why nothing happens, once for each doubt; gives what was committed."""
        facts = self.branch.facts
        assert facts is not None, "a leader has read its branch"
        self.pushed, at = "", max(facts.at, doubt.earliest)
        if self._event is None:
            self._event = Event(at, EventReason.CLOCK_DOUBTED, doubt.sentence)
        if self._is_told or not reachable:
            return ()
        events = self.pending.with_notes((self._event,))
        try:
            result = self.branch.tell(events, at, summarised(events))
        except Fault as fault:
            log.warning("doubt not committed reason=%s message=%s; tried again", fault.reason, fault)
            self.pushed = "Failed"
            return ()
        self.pushed, self._is_told = outcome_of(result), result.landed
        if not result.landed:
            self.pending.given_up(events)
            return ()
        self.pending.committed()
        return self.pending.tell(events)

    def act(
        self,
        doubt: Doubt,
        wanted: Wanted,
        seen: Seen,
        drivers: Mapping[str, ClusterDriver],
        failures: ClusterFailures,
    ) -> Answers:
        """Take back what is over by every clock."""
        facts = self.branch.facts
        assert facts is not None, "a leader has read its branch"
        ends = agreed_ends(wanted, facts, seen, doubt.earliest, self.settings.start_tolerance)
        return apply(ends, drivers, failures, self.branch.stamp, doubt.earliest)

    def wake(self, now: datetime, doubt: Doubt) -> datetime:
        """At the next end by the clock that is furthest behind, a poll at the latest."""
        assert self.branch.facts is not None, "a leader has read its branch"
        left = next_end(self.branch.facts, doubt.earliest)
        return now + (self.settings.poll if left is None else min(left, self.settings.poll))
