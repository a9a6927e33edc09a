"""Whether this process may write: it takes the status branch, loses it, and takes it again when ends are overdue.

Where controllers elect one of themselves (`may_lead`), the election only says who should lead: a process takes the
next term when it is elected, and stands down when it is not any more. Who does lead is settled by the branch alone:
two that both believe to be elected are one leader and one that reads. What is overdue is anybody's, so that strict
ends also happen while no election can be held. Without an election so is what a silent leader owes (`unanswered`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from reconciler.documents.in_force import Desired
from reconciler.documents.unread_files import recorded
from reconciler.model.cluster_port import ClusterView, Stamp
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Facts, NodeKey, Wanted
from reconciler.model.status_edits import leaves_at
from reconciler.model.statuses import live
from reconciler.settings import Settings
from reconciler.silent_leader import Answers, Silence, owed_nodes
from reconciler.status.branch import StatusBranch
from reconciler.status.recognised_leases import outdated, term_above
from reconciler.status.tree import Loaded
from reconciler.store.believed_commit import Believes
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import Store
from reconciler.telling.news import PendingEvents
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault, UserError
from schemas.status.gpr_status import AgentReport, GPRStatus, Phase

log = logging.getLogger(__name__)

Said = Callable[[Mapping[str, ClusterSpec], datetime], Mapping[NodeKey, AgentReport]]
"""What agents of these clusters report of nodes."""


class Leading:
    """The status branch and the documents its facts answered, as one process life has them."""

    def __init__(  # noqa: PLR0913 - its parts; what may be left out is given by name
        self,
        store: Store,
        desired: Desired,
        settings: Settings,
        writer: str,
        *,
        adopt: bool,
        may_lead: Callable[[], bool] | None = None,
        believes: Believes | None = None,
        records: DocumentCache | None = None,
        said: Said = lambda *_: {},
    ) -> None:
        self._store = store
        self._desired = desired
        self._settings = settings
        self._adopt = adopt
        self._may_lead = may_lead
        self._believes = believes
        self._term = 0
        self._elected = False
        self._called = False  # elected, and the branch not taken for it yet
        self._stood_down = False  # not elected any more, and no term taken since
        self._passed_over: datetime | None = None  # elected, but superseded since
        self._said, self._answers, self._silence = said, Answers(store), Silence(settings)
        self.branch = StatusBranch(store, settings, writer, believes, records, remembers=True)
        self.pending = PendingEvents()
        self.outrun = ""
        """That clusters bear later stamps than the branch, in a sentence; empty: they do not."""
        self.before: Wanted | None = None
        """The documents that the committed facts answered; None: not known any more."""

    @property
    def raced(self) -> bool:
        """True when somebody else took the branch just before us: whoever that was may be dead."""
        return self._called and self.branch.superseded

    def leads(self, now: datetime, reachable: bool) -> bool:
        """True while this process may act; takes the branch when it is called to, or when something is overdue.

        While the server refuses it the branch (`StatusBranch.is_shut_out`), it completes what it committed before.
        """
        self._heed_election()
        if self._holds(reachable):
            if not self.branch.is_current:
                self._resume(self.branch.reload(), now)
            return True
        if not reachable or not self._takes(now):
            return False
        self._refuse_to_sign_nothing()
        self._refuse_what_nobody_signed()
        self._refuse_another_history()
        self._refuse_to_adopt()
        loaded = self.branch.take_over(now)
        if loaded is not None:
            self._resume(loaded, now)
        return loaded is not None or self.branch.is_shut_out

    def holds(self, reachable: bool) -> bool:
        """True while the branch is ours, without taking it."""
        self._heed_election()
        return self._holds(reachable)

    def _heed_election(self) -> None:
        elected = self._may_lead is None or self._may_lead()
        if elected == self._elected:
            return
        self._elected = self._called = elected
        if not elected:
            self._stood_down = True
        if self._may_lead is not None:
            log.info("election turned elected=%s term=%d", elected, self._term)

    def _holds(self, reachable: bool) -> bool:
        """The branch is ours, and so is the turn.

        A new turn begins with a term of its own; where the remote cannot be asked for one, what was committed is
        completed under the old one.
        """
        if self._term == 0 or not self.branch.check():
            return False
        began = self.branch.stamp.term > self._term  # a take-over that landed late
        return began or not self._stood_down or (self._elected and not reachable)

    def _takes(self, now: datetime) -> bool:
        """Called to lead, or the branch is nobody's, or what was committed is not carried out by whoever has it."""
        orphaned = self._term > 0 and self._elected and not self.branch.superseded
        return self._called or orphaned or self._overdue(now) or self._ignored(now) or self._unanswered(now)

    def _unanswered(self, now: datetime) -> bool:
        """Without an election, whoever has the branch owes main or an agent an answer, and keeps silent."""
        main, tip = self._store.tips().get(self._settings.main_branch), self.branch.counting()
        if self._may_lead is not None or main is None or tip is None:
            return False
        facts = self.branch.read(now).facts
        answered = facts.intent if facts.trust is None else facts.trust.main
        reports = {} if self.before is None else self._said(self.before.clusters, now)
        owed = {*self._answers.owed(answered or None, main, facts), *owed_nodes(facts, reports)}
        if not self._silence.lasts(owed, tip, now):
            return False
        log.info("leader keeps silent owed=%d; its branch is taken", len(owed))
        self._silence.took()
        return True

    def decided(self, wanted: Wanted) -> None:
        """What these documents ask for is committed, or was committed already."""
        self.before = wanted
        self._silence.decided()

    def _ignored(self, now: datetime) -> bool:
        """Elected, yet superseded for long: the one that took the branch may have been elected only in between."""
        if self._may_lead is None or not self._elected:
            return False
        self._passed_over = self._passed_over or now
        return now - self._passed_over >= self._settings.overdue

    def _resume(self, loaded: Loaded, now: datetime) -> None:
        """Go on from what was committed: after a take-over, or when a push of ours landed that was given up."""
        self.pending.settle(self.branch.has_told)
        if self.branch.stamp.term != self._term:
            self._term = self.branch.stamp.term
            self._called, self._stood_down, self._passed_over = False, False, None
            text = f"a controller took over as term {self._term}"
            alarms = [
                Event(now, EventReason.ALARM, sentence) for sentence in (*self.branch.alarms, *loaded.alarms)
            ]
            self.pending.begin([Event(now, EventReason.TAKEN_OVER, text), *alarms, *self._put_back(now)])
        self._desired.restore(loaded.accepted)
        self._desired.repository.is_recorded = recorded(loaded.facts.requests)
        self._desired.leave_unread(loaded.notes)
        self.before = None
        if loaded.facts.intent:
            self._recall(loaded.facts)

    def _put_back(self, now: datetime) -> list[Event]:
        """That the branch was not what it should be, and is again."""
        if not self.branch.put_back:
            return []
        name = self._settings.status_branch
        text = (
            f"branch {name}: {self.branch.put_back}; it was put back as it was known here; protect the branch"
        )
        return [Event(now, EventReason.PUT_BACK, text)]

    def rise(self, views: Mapping[str, ClusterView], now: datetime) -> None:
        """Take a term above what clusters bear, where the branch that they bear it of was lost.

        Elsewhere a later stamp than ours is told and nothing more: our writes are refused there, and no lease is lost.
        """
        facts, own = self.branch.facts, self.branch.stamp
        assert facts is not None, "a leader has read its branch"
        ahead = outdated(views, own)
        if self._adopt and ahead:
            facts = replace(facts, unread=facts.unread | ahead.keys())
        above = term_above(facts, views, own)
        self.outrun = "" if above is not None else _outrun(ahead, own, self._settings.status_branch)
        if above is not None and self.branch.rise(now, above) is not None:
            self._term = self.branch.stamp.term
            text = f"a controller took over as term {self._term}, above what clusters bear"
            self.pending.note([Event(now, EventReason.TAKEN_OVER, text)])

    def _recall(self, facts: Facts) -> None:
        """The documents that the committed facts answered, so that causes are judged against them."""
        try:
            self._store.keep(
                facts.intent
            )  # main may have been rewritten since, and the mirror may be a new one
            self._desired.update(facts.intent, facts.trust)
            self.before = self._desired.wanted(facts)
            self.pending.known(self._desired.problems)
        except (Fault, UserError) as error:
            log.info("last intent not recalled reason=%s", error.reason)

    def _refuse_to_sign_nothing(self) -> None:
        """A process that began without the others' options would write over what they verify, and act on it."""
        trust = self._settings.trust
        if self._term > 0 or trust.level != "none" or trust.key is not None or self._believes is not None:
            return  # one that leads goes on: a stranger's signed commit must not stop it
        if self.branch.is_signed():
            raise UserError(
                "the status of this repository is signed; give --key, --trust and --verify as its other controllers "
                "have",
                "KeyMissing",
            )

    def _refuse_what_nobody_signed(self) -> None:
        """Without one commit that counts, nothing tells what was promised; to guess would be to plan anew."""
        if self._adopt and self._term == 0:
            self.branch.adopt()
            return  # where nothing can be read, it begins empty
        if self.branch.exists() and self.branch.counting() is None:
            name = self._settings.status_branch
            raise UserError(
                f"branch {name}: no commit of it can be read and is signed by a controller that the trust folder "
                "names; push the last one that is, or name its key as `controller` in allowed_signers; if nobody "
                "signed it so far, run `egs-reconciler adopt` once",
                "StatusNotTrusted",
            )

    def _refuse_another_history(self) -> None:
        """What a mirror remembers of a main that is another one now is not put back by itself."""
        if self._term > 0 or self._believes is not None or not self.branch.has_lost():
            return
        known = self.branch.counting()
        intent = None if known is None else self.branch.intent_of(known)
        main = self._store.tips().get(self._settings.main_branch)
        if intent is None or main is None or self._leads_to(intent, main):
            return
        if self._adopt:
            self.branch.forget()
            return
        name = self._settings.status_branch
        raise UserError(
            f"branch {name} is gone or was set back, and what the mirror remembers of it answers commit "
            f"{intent[:12]}, which main does not have: push that history of main back; or, to begin anew with main as "
            "it is, run `egs-reconciler adopt` once",
            "StatusOfAnotherMain",
        )

    def _leads_to(self, old: str, new: str) -> bool:
        try:
            return self._store.is_ancestor(old, new)
        except Fault:
            return False  # it is not here any more

    def _refuse_to_adopt(self) -> None:
        main = self._store.tips().get(self._settings.main_branch)
        if self._adopt or main is None or self.branch.exists() or self.branch.counting() is not None:
            return
        if self._settings.trust.level != "none":
            raise UserError(
                "there is no status branch, so nothing tells how far main was judged: whoever removed it could have "
                "changed main as well; look at main, then run `egs-reconciler adopt` once with the controller's own "
                "options",
                "NotAdopted",
            )
        self._desired.update(main)
        if self._desired.has_requests():
            raise UserError(
                "main has requests but there is no status branch, and nothing here knows what it said; if this is a "
                "new repository, or the branch was lost, run `egs-reconciler adopt` once: leases in clusters go on",
                "NotAdopted",
            )

    def _overdue(self, now: datetime) -> bool:
        late = now - self._settings.overdue
        due = (next_due(status) for status in live(self.branch.read(now).facts.requests).values())
        return any(at is not None and at <= late for at in due)


def _outrun(ahead: Mapping[str, Stamp], own: Stamp, branch: str) -> str:
    if not ahead:
        return ""
    where = ", ".join(f"{name} bears {stamp.term}.{stamp.seq}" for name, stamp in ahead.items())
    return (
        f"{where}, newer than {own.term}.{own.seq} of branch {branch}: the branch was lost or set back before this "
        "controller saw it, and what it decides is refused there; push the newer history back, or run "
        "`egs-reconciler adopt` once, which takes a later term and recognises what runs"
    )


def next_due(status: GPRStatus) -> datetime | None:
    """When a leader that lives would commit the start, or the end; how long nodes drain is the clusters' case."""
    if status.phase is Phase.PROVISIONED:
        return leaves_at(status)
    return status.estimated_start_time if status.phase in {Phase.QUEUED, Phase.PROVISIONING} else None
