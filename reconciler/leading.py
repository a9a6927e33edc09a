"""Whether this process may write: it takes the status branch, loses it, and takes it again when ends are overdue."""

from __future__ import annotations

import logging
from datetime import datetime

from reconciler.branch import Loaded, StatusBranch
from reconciler.desired import Desired
from reconciler.events import Event, Told
from reconciler.facts import Facts, Wanted
from reconciler.settings import Settings
from reconciler.store.port import Store
from reconciler.telling import News
from schemas.errors import Fault, UserError
from schemas.status import GPRStatus, Phase

log = logging.getLogger(__name__)


class Leading:
    """The status branch and the documents its facts answered, as one process life has them."""

    def __init__(
        self, store: Store, desired: Desired, settings: Settings, writer: str, *, adopt: bool
    ) -> None:
        self._store = store
        self._desired = desired
        self._settings = settings
        self._adopt = adopt
        self._term = 0
        self.branch = StatusBranch(store, settings, writer)
        self.news = News()
        self.before: Wanted | None = None
        """The documents that the committed facts answered; None: not known any more."""

    @property
    def began(self) -> bool:
        """True once this process has led."""
        return self._term > 0

    def leads(self, now: datetime, reachable: bool) -> bool:
        """True while this process may write; takes the branch at first, and when starts or ends are overdue."""
        if self.began and self.branch.check():
            if not self.branch.is_current:
                self._resume(self.branch.reload(), now)
            return True
        if not reachable or (self.began and self.branch.superseded and not self._overdue(now)):
            return False
        self._refuse_to_adopt()
        loaded = self.branch.take_over(now)
        if loaded is not None:
            self._resume(loaded, now)
        return loaded is not None

    def _resume(self, loaded: Loaded, now: datetime) -> None:
        """Go on from what was committed: after a take-over, or when a push of ours landed that was given up."""
        self.news.settle(self.branch.has_told)
        if self.branch.stamp.term != self._term:
            self._term = self.branch.stamp.term
            text = f"a controller took over as term {self._term}"
            alarms = [Event(now, Told.ALARM, sentence) for sentence in (*self.branch.alarms, *loaded.alarms)]
            self.news.begin([Event(now, Told.TAKEN_OVER, text), *alarms])
        self._desired.restore(loaded.accepted)
        self.before = None
        if loaded.facts.intent:
            self._recall(loaded.facts)

    def _recall(self, facts: Facts) -> None:
        """The documents that the committed facts answered, so that causes are judged against them."""
        try:
            self._desired.update(facts.intent)
            self.before = self._desired.wanted(facts)
            self.news.known(self._desired.problems)
        except (Fault, UserError) as error:
            log.info("last intent not recalled reason=%s", error.reason)

    def _refuse_to_adopt(self) -> None:
        main = self._store.tips().get(self._settings.main_branch)
        if self._adopt or main is None or self.branch.exists():
            return
        self._desired.update(main)
        if self._desired.has_requests():
            raise UserError(
                "main has requests but there is no status branch: a status that was lost would be planned anew; "
                "if this is a new repository, run `egs-reconciler adopt`",
                "NotAdopted",
            )

    def _overdue(self, now: datetime) -> bool:
        late = now - self._settings.overdue
        due = (next_due(status) for status in self.branch.read(now).facts.requests.values())
        return any(at is not None and at <= late for at in due)


def next_due(status: GPRStatus) -> datetime | None:
    """When a leader that lives would commit the start, or the end; how long nodes drain is the clusters' case."""
    if status.phase is Phase.PROVISIONED:
        return status.end_time
    return status.estimated_start_time if status.phase in {Phase.QUEUED, Phase.PROVISIONING} else None
