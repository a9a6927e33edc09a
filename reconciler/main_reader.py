"""Step 2 of the cycle: how far main counts, and the documents in force. Held by tests/reconciler/test_robust.py."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from reconciler.approvals.who_approved import decision_reader_of
from reconciler.documents.finished_files import standing
from reconciler.documents.in_force import Desired
from reconciler.documents.unread_files import recorded
from reconciler.model.events import Event, EventReason
from reconciler.model.evidence import Admitted
from reconciler.model.facts import Facts, Wanted
from reconciler.ports import Ports
from reconciler.settings import Settings
from reconciler.telling.news import PendingEvents
from reconciler.trust.adopted_main import Adoption
from reconciler.trust.gate import Gate, sources_of
from schemas.errors import Fault, UserError
from schemas.rules.problems import Problem


class MainReader:
    """`main` as this process follows it. One owner."""

    def __init__(self, ports: Ports, settings: Settings, *, adopt: bool) -> None:
        self.desired = Desired(ports.store, ports.cache)
        self.has_more = False
        """True while main has more commits, which the next cycle judges."""
        self.frozen = ""
        """Why main is not followed until a person acts; empty: it is followed."""
        sources = ports.sources or sources_of(settings)
        self._gate = Gate(ports.store, ports.cache, sources, self.desired.in_force, adopt=adopt)
        self._decision_reader = ports.decision_reader or decision_reader_of(settings, ports.store)
        self._store, self._branch = ports.store, settings.main_branch

    @property
    def adoption(self) -> Adoption | None:
        """What an operator adopted of a rewritten main; None: main was not rewritten."""
        return self._gate.adoption

    def known(self, facts: Facts) -> Wanted:
        return self.desired.wanted(facts)

    def read(
        self, facts: Facts, pending: PendingEvents, alarms: Iterable[str], now: datetime, *, reachable: bool
    ) -> Wanted:
        """The documents of main as far as judged; of an unreadable main those of its last good commit.

        UserError if no commit of main was ever read: continuing would count every request as deleted.
        """
        alarms = list(alarms)
        pending.note(Event(now, EventReason.MENDED, sentence) for sentence in self._store.mended())
        main, self.has_more = self._store.tips().get(self._branch), False
        if main is not None and reachable:
            self.desired.repository.is_recorded = recorded(facts.requests)
            admitted = self._gate.admit(main, facts.trust, facts.intent, now)
            self.frozen = admitted.alarm if admitted.is_frozen else ""
            self.has_more, alarms = admitted.has_more, [*alarms, *filter(None, [admitted.alarm])]
            pending.note_main(admitted.commit, admitted.alarm, self.adoption, now)
            alarms += self._update(admitted, facts, pending, now)
        pending.note_alarms(alarms, now)
        return self._decision_reader.hear(self.known(facts), facts, now)

    def problems(self, facts: Facts) -> tuple[Problem, ...]:
        """Problems of the documents, without files of finished requests."""
        return standing(self.desired.problems, facts.requests)

    def _update(self, admitted: Admitted, facts: Facts, pending: PendingEvents, now: datetime) -> list[str]:
        """Reads what changed; returns the alarm about an unreadable commit."""
        try:
            if self.desired.read_ahead(admitted.commit, admitted.record):
                self.has_more = True
            else:
                self.desired.update(admitted.commit, admitted.record, admitted.provenance)
                pending.note_problems(self.problems(facts), now)
        except (Fault, UserError) as error:
            if self.desired.commit is None:
                why = UserError(admitted.alarm, "MainNotFollowed")
                raise (why if admitted.alarm else error) from error
            return [f"main cannot be read: {error}; its last good commit stays in force"]
        return []
