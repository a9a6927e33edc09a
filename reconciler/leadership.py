"""Whether this process may write: it takes the status branch, loses it, and takes it again if ends are overdue.

If controllers elect a leader (`may_lead`), the election only says who should lead: a process takes the next
term when elected, and stands down when no longer elected. The branch alone decides who leads. Any process may
carry out what is overdue, so that strict ends happen without an election too; if there is none, this includes
what a silent leader owes (`unanswered`).
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
from schemas.status.gpr_status import GPRStatus, Phase
from schemas.status.node_status import AgentReport

log = logging.getLogger(__name__)

Said = Callable[[Mapping[str, ClusterSpec], datetime], Mapping[NodeKey, AgentReport]]
"""The reports of these clusters' agents about nodes."""


class Leading:
    """The status branch and the documents of its facts, as this process has them."""

    def __init__(  # noqa: PLR0913 - its parts; optional arguments are keyword-only
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
        self._called = False  # elected, but the branch is not taken yet
        self._stood_down = False  # no longer elected, and no term taken since
        self._passed_over: datetime | None = None  # elected, but superseded since this time
        self._said, self._answers, self._silence = said, Answers(store), Silence(settings)
        self.branch = StatusBranch(store, settings, writer, believes, records, remembers=True)
        self.pending = PendingEvents()
        self.outrun = ""
        """A sentence if clusters have later stamps than the branch; empty: they do not."""
        self.before: Wanted | None = None
        """The documents of the committed facts; None: no longer known."""

    @property
    def raced(self) -> bool:
        """True if another process took the branch just before us: it may be dead."""
        return self._called and self.branch.superseded

    def leads(self, now: datetime, reachable: bool) -> bool:
        """True while this process may act; takes the branch when elected, or when something is overdue.

        While the server refuses the branch (`StatusBranch.is_shut_out`), it completes what is committed.
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
        """The branch is ours, and so is the turn, which begins with a new term.

        If the remote is unreachable, what is committed is completed under the old term.
        """
        if self._term == 0 or not self.branch.check():
            return False
        began = self.branch.stamp.term > self._term  # a take-over that landed late
        return began or not self._stood_down or (self._elected and not reachable)

    def _takes(self, now: datetime) -> bool:
        """True if elected, if the branch has no owner, or if its owner does not carry out what is committed."""
        orphaned = self._term > 0 and self._elected and not self.branch.superseded
        return self._called or orphaned or self._overdue(now) or self._ignored(now) or self._unanswered(now)

    def _unanswered(self, now: datetime) -> bool:
        """Without an election: the owner of the branch owes main or an agent an answer, and is silent."""
        main, tip = self._store.tips().get(self._settings.main_branch), self.branch.counting()
        if self._may_lead is not None or main is None or tip is None:
            return False
        facts = self.branch.read(now).facts
        answered = facts.intent if facts.trust is None else facts.trust.main
        reports = {} if self.before is None else self._said(self.before.clusters, now)
        owed = {*self._answers.owed(answered or None, main, facts), *owed_nodes(facts, reports)}
        if not self._silence.lasts(owed, tip, now):
            return False
        log.info("leader is silent owed=%d; taking its branch", len(owed))
        self._silence.took()
        return True

    def decided(self, wanted: Wanted) -> None:
        """What these documents require is committed."""
        self.before = wanted
        self._silence.decided()

    def _ignored(self, now: datetime) -> bool:
        """Elected, but superseded for a while: the new owner may only have been elected in between."""
        if self._may_lead is None or not self._elected:
            return False
        self._passed_over = self._passed_over or now
        return now - self._passed_over >= self._settings.overdue

    def _resume(self, loaded: Loaded, now: datetime) -> None:
        """Continues from what is committed: after a take-over, or when a push that was given up has landed."""
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
        """Reports that the branch was damaged, and is restored."""
        if not self.branch.put_back:
            return []
        name = self._settings.status_branch
        text = f"branch {name}: {self.branch.put_back}; it was restored from what is known here; protect the branch"
        return [Event(now, EventReason.PUT_BACK, text)]

    def rise(self, views: Mapping[str, ClusterView], now: datetime) -> None:
        """Takes a term above the clusters' if the branch with it was lost; else a later stamp is only reported."""
        facts, own = self.branch.facts, self.branch.stamp
        assert facts is not None, "a leader has read its branch"
        ahead = outdated(views, own)
        if self._adopt and ahead:
            facts = replace(facts, unread=facts.unread | ahead.keys())
        above = term_above(facts, views, own)
        self.outrun = "" if above is not None else _outrun(ahead, own, self._settings.status_branch)
        if above is not None and self.branch.rise(now, above) is not None:
            self._term = self.branch.stamp.term
            text = f"a controller took over as term {self._term}, above the terms in clusters"
            self.pending.note([Event(now, EventReason.TAKEN_OVER, text)])

    def _recall(self, facts: Facts) -> None:
        """The documents of the committed facts, against which causes are judged."""
        try:
            self._store.keep(facts.intent)  # main may have been rewritten since, or the mirror replaced
            self._desired.update(facts.intent, facts.trust)
            self.before = self._desired.wanted(facts)
            self.pending.known(self._desired.problems)
        except (Fault, UserError) as error:
            log.info("last intent not recalled reason=%s", error.reason)

    def _refuse_to_sign_nothing(self) -> None:
        """A process without the other controllers' options would overwrite what they verify, and act on it."""
        trust = self._settings.trust
        if self._term > 0 or trust.level != "none" or trust.key is not None or self._believes is not None:
            return  # a leader continues: a foreign signed commit must not stop it
        if self.branch.is_signed():
            raise UserError(
                "the status of this repository is signed; use the same --key, --trust and --verify as its other "
                "controllers",
                "KeyMissing",
            )

    def _refuse_what_nobody_signed(self) -> None:
        """Without a commit that counts, the promises are unknown; guessing would mean planning from scratch."""
        if self._adopt and self._term == 0:
            self.branch.adopt()
            return  # if nothing is readable, it starts empty
        if self.branch.exists() and self.branch.counting() is None:
            name = self._settings.status_branch
            raise UserError(
                f"branch {name}: it has no readable commit signed by a controller that the trust folder "
                "lists; push the last such commit, or list its key as `controller` in allowed_signers; if it was "
                "never signed so far, run `egs-reconciler adopt` once",
                "StatusNotTrusted",
            )

    def _refuse_another_history(self) -> None:
        """The remembered status of a replaced main is not restored automatically."""
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
            f"branch {name} was deleted or reset, and the state remembered by the mirror is for commit "
            f"{intent[:12]}, which is not on main: push that history of main again; or, to start again with main as "
            "it is, run `egs-reconciler adopt` once",
            "StatusOfAnotherMain",
        )

    def _leads_to(self, old: str, new: str) -> bool:
        try:
            return self._store.is_ancestor(old, new)
        except Fault:
            return False  # no longer available here

    def _refuse_to_adopt(self) -> None:
        main = self._store.tips().get(self._settings.main_branch)
        if self._adopt or main is None or self.branch.exists() or self.branch.counting() is not None:
            return
        if self._settings.trust.level != "none":
            raise UserError(
                "there is no status branch, so it is unknown how far main was judged: the person who deleted it "
                "could have changed main too; review main, then run `egs-reconciler adopt` once with the "
                "controller's options",
                "NotAdopted",
            )
        self._desired.update(main)
        if self._desired.has_requests():
            raise UserError(
                "main has requests but there is no status branch, and its content is unknown here; if this is a "
                "new repository, or the branch was lost, run `egs-reconciler adopt` once: leases in clusters continue",
                "NotAdopted",
            )

    def _overdue(self, now: datetime) -> bool:
        late = now - self._settings.overdue
        due = (next_due(status) for status in live(self.branch.read(now).facts.requests).values())
        return any(at is not None and at <= late for at in due)


def _outrun(ahead: Mapping[str, Stamp], own: Stamp, branch: str) -> str:
    if not ahead:
        return ""
    where = ", ".join(f"{name} has stamp {stamp.term}.{stamp.seq}" for name, stamp in ahead.items())
    return (
        f"{where}, newer than {own.term}.{own.seq} of branch {branch}: the branch was deleted or reset before this "
        "controller saw it, so its writes are refused there; push the newer history again, or run "
        "`egs-reconciler adopt` once, which takes a later term and recovers running leases"
    )


def next_due(status: GPRStatus) -> datetime | None:
    """When an active leader would commit the start, or the end; the clusters decide how long nodes drain."""
    if status.phase is Phase.PROVISIONED:
        return leaves_at(status)
    return status.estimated_start_time if status.phase in {Phase.QUEUED, Phase.PROVISIONING} else None
