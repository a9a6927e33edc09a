"""Step 6 of the cycle: a decision becomes one commit of the status branch, or nothing new is carried out."""

from __future__ import annotations

import logging
from datetime import datetime

from reconciler.deciding.decide import Decision
from reconciler.deciding.unchanged_requests import UnchangedRequests
from reconciler.leadership import Leading
from reconciler.main_reader import MainReader
from reconciler.model.events import Event
from reconciler.model.facts import Wanted
from reconciler.settings import Settings
from reconciler.status.render import Files
from reconciler.status.rendered_files import Rendered
from reconciler.store.write_results import Postponed, outcome_of
from reconciler.telling.news import summarised
from schemas.errors import Fault

log = logging.getLogger(__name__)


class Committer:
    """Pushes decisions under our term. One owner."""

    def __init__(self, leadership: Leading, main: MainReader, settings: Settings) -> None:
        self.outcome = ""
        """The result of the last commit: Committed, Conflict, … or Unchanged; empty: none was tried."""
        self._leadership, self._main, self._settings = leadership, main, settings
        self._rendered = Rendered()

    def commit(
        self, decision: Decision, wanted: Wanted, events: tuple[Event, ...], *, reachable: bool
    ) -> datetime | None:
        """Pushes the decision; None if it is committed, else when to retry."""
        now, branch, pending = decision.facts.at, self._leadership.branch, self._leadership.pending
        if not reachable:
            return now + self._settings.poll
        files = self._files(decision, wanted)
        try:
            result = branch.write(decision.facts, files, events, summarised(events), urgent=decision.urgent)
        except Fault as fault:
            log.warning("status not written reason=%s message=%s; retrying", fault.reason, fault)
            self.outcome = "Failed"
            pending.given_up(events)
            return now + self._settings.poll
        self.outcome = outcome_of(result)
        if result.landed:
            self._leadership.decided(wanted)
            pending.committed()
            return None
        if isinstance(result, Postponed):
            return result.until
        pending.given_up(events)
        return now

    def keep_notes(self, unchanged: UnchangedRequests) -> None:
        """Keeps notes on finished requests' files for the next process."""
        found = {key: self._main.desired.note_of(key) for key in unchanged.newly_quiet()}
        self._leadership.branch.note({key: note for key, note in found.items() if note is not None})

    def _files(self, decision: Decision, wanted: Wanted) -> Files:
        committed = self._leadership.branch.facts
        assert committed is not None, "a leader has read its branch"
        problems = self._main.problems(committed)
        files = self._rendered.files(decision.facts, wanted, decision.plan.order, problems, self._main.frozen)
        return files | self._main.desired.accepted_files()
