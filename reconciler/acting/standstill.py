"""While our clock is in doubt: reports it once, carries out committed ends, and does nothing else.

Its commit has the time of the last decision, or the time that has passed by every clock: a wrong time never
becomes a fact. Held by tests/reconciler/timekeeping/test_clock_doubt.py.
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
from reconciler.store.write_results import outcome_of
from reconciler.telling.news import PendingEvents, summarised
from reconciler.timekeeping.clock_doubt import Doubt
from schemas.errors import Fault

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Standstill:
    branch: StatusBranch
    pending: PendingEvents
    settings: Settings
    pushed: str = ""
    """The result of the last push."""
    _event: Event | None = None  # the event of the current doubt
    _is_told: bool = False

    def over(self, now: datetime) -> tuple[Event, ...]:
        """The clock is trusted again; returns an event if it was in doubt."""
        told, self._event, self._is_told = self._is_told, None, False
        text = "the controller's clock is trusted again; planning continues"
        return (Event(now, EventReason.CLOCK_BELIEVED, text),) if told else ()

    def tell(self, doubt: Doubt, *, reachable: bool) -> tuple[Event, ...]:
        """Commits the reason for the standstill, once per doubt; returns what was committed."""
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
            log.warning("doubt not committed reason=%s message=%s; retrying", fault.reason, fault)
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
        """Releases the nodes of leases that are over by every clock."""
        facts = self.branch.facts
        assert facts is not None, "a leader has read its branch"
        ends = agreed_ends(wanted, facts, seen, doubt.earliest, self.settings.start_tolerance)
        return apply(ends, drivers, failures, self.branch.stamp, doubt.earliest)

    def wake(self, now: datetime, doubt: Doubt) -> datetime:
        """At the next end by the slowest clock, at the latest after a poll interval."""
        assert self.branch.facts is not None, "a leader has read its branch"
        left = next_end(self.branch.facts, doubt.earliest)
        return now + (self.settings.poll if left is None else min(left, self.settings.poll))
