"""One cycle, from what main says to nodes in slices. The numbered steps are the design.

A decision is committed before it is carried out: actions are derived from committed facts alone. Whatever fails,
what is committed already is completed, strict ends happen, and the next cycle begins from what is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from reconciler import reports
from reconciler.apply import Answers, CheckKey, Troubles, announce, apply, compare, observe
from reconciler.clusters.port import Busy, CheckResult, ClusterDriver, ClusterView
from reconciler.clusters.pull import PATTERN as REPORTED
from reconciler.decide import Decision, decide
from reconciler.desired import Desired
from reconciler.diff import Action, Do, actions, drifted
from reconciler.drift import Drift, Looked
from reconciler.events import Event, Told
from reconciler.facts import Facts, LeaseKey, Outcomes, Seen, Wanted
from reconciler.filings import unrecorded
from reconciler.finding import found_in, with_found
from reconciler.fold import fold
from reconciler.handover import handed_over
from reconciler.instants import next_wake
from reconciler.lateness import Before
from reconciler.leading import Leading
from reconciler.notifying.mailroom import Mailroom
from reconciler.noting import Noticeboard
from reconciler.recognising import recognised
from reconciler.records import holders
from reconciler.settings import Settings
from reconciler.settling import Settled
from reconciler.status import Files, render
from reconciler.store.cache import DocumentCache
from reconciler.store.port import Store
from reconciler.store.writer import Postponed, outcome_of
from reconciler.telling import summarised
from reconciler.terms import terms_in
from reconciler.trust.adopting import Adoption
from reconciler.trust.assessing import Sources
from reconciler.trust.gate import Gate, sources_of
from reconciler.trust.machines import Machines
from reconciler.undecided import Undecided
from reconciler.wording import Wording, wording_of
from reconciler.world import at, build_snapshot
from reconciler.writing import Written
from scheduler.snapshot import Snapshot
from schemas.cluster import ClusterSpec
from schemas.collector import collector_paused
from schemas.errors import Fault, UserError
from schemas.status import GPRStatus

log = logging.getLogger(__name__)

RETRY = timedelta(seconds=1)
"""How soon a start is tried again after somebody else's push came first: whoever that was may be dead.
Also the shortest pause after a second look at one instant, so that actions that alternate never stop the time."""

BRANCHES = (reports.PATTERN, REPORTED)
"""What nodes and clusters say."""
Drivers = Callable[[Mapping[str, ClusterSpec]], Mapping[str, ClusterDriver]]
"""Opens (or keeps open) a driver for every cluster in force."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """What one cycle did, for logs, tests and the demo."""

    at: datetime
    leading: bool
    wake: datetime
    events: tuple[Event, ...] = ()
    facts: Facts | None = None
    changed: bool = False
    reachable: bool = True
    wanted: Wanted | None = None  # the documents in force; None while somebody else leads
    pushed: str = ""  # what became of the commit: Committed, Conflict, … or Unchanged; empty: none was tried
    acted: Mapping[tuple[Do, str], int] = field(default_factory=dict)  # actions by kind and answer
    carried: Mapping[tuple[str, str], int] = field(default_factory=dict)  # messages by scope and answer


class Reconciler:
    """One controller. `cycle` may be called at any time and as often as one likes."""

    def __init__(  # noqa: PLR0913 - the parts of a controller; what may be left out is given by name
        self,
        store: Store,
        cache: DocumentCache,
        drivers: Drivers,
        settings: Settings,
        writer: str,
        *,
        adopt: bool = False,
        may_lead: Callable[[], bool] | None = None,
        settled: Callable[[datetime, bool], bool] = lambda _, reachable: reachable,
        machines: Machines | None = None,
        wording: Wording | None = None,
        sources: Sources | None = None,
        records: DocumentCache | None = None,
        mailroom: Mailroom | None = None,
    ) -> None:
        """`may_lead` tells whether this process is elected; None: there is no election, the branch alone decides.

        `settled` may put deciding off while the repository answers again and those who report to it have not yet.
        `machines` tells by their signatures who controllers and agents are; None: whoever can push is believed.
        `wording` knows whose words on requests count; None: by `settings.trust`, and no forge is asked.
        `records` keeps what was read of the status branch for the next process; None: it reads all of it.
        `sources` are what main is judged by; None: as `settings.trust` has it, and no forge is asked.
        `mailroom` sends people what routes of the manifests name; None: nothing is sent.
        """
        self._store, self._drivers = store, drivers
        self._settled, self._settings = settled, settings
        self._desired = Desired(store, cache)
        self._gate = Gate(store, cache, sources or sources_of(settings), self._desired.in_force, adopt=adopt)
        self._has_more = False  # main goes on, and is judged in the next cycle
        self._wording = wording or wording_of(settings, store)
        trusted = None if machines is None else machines.controllers()
        lead = partial(Leading, store, self._desired, settings, writer, adopt=adopt, may_lead=may_lead)
        self._leading = lead(believes=trusted, records=records)
        self._branch, self._news = self._leading.branch, self._leading.news
        self._reports = reports.Reports(store, machines)
        self._mailroom = mailroom or Mailroom()
        self._checks: dict[CheckKey, Busy | tuple[CheckResult, ...]] = {}
        self._views: Mapping[str, ClusterView] = {}
        self._refusals: set[tuple[str, str, str]] = set()
        self._troubles, self._drift, self._board, self._looked = (
            Troubles(),
            Drift(),
            Noticeboard(),
            Looked({}, {}),
        )
        self._rendered: tuple[Wanted, object, Files] | None = None
        self._done: set[Action] = set()
        self._hurried: datetime | None = None
        self._handed_over: frozenset[LeaseKey] = frozenset()
        self._filed: dict[str, datetime] = {}
        self._turns, self._tried, self._written, self._pushed = Settled(), Undecided(), Written(), ""

    @property
    def adoption(self) -> Adoption | None:
        """What an operator took of a main that was rewritten; None: it was not."""
        return self._gate.adoption

    def cycle(self, now: datetime) -> Cycle:
        """Steps 1 to 9 of docs/architecture.md; raises only what no later cycle can mend by itself."""
        with collector_paused():  # a walk over all that is known here would take longer than most cycles
            return self._cycle(now)

    def has_sent(self) -> bool:
        """Wait for messages under way; True: there were some, and a cycle more crosses out what arrived."""
        return self._mailroom.finish()

    def _cycle(self, now: datetime) -> Cycle:
        self._pushed = ""
        reachable = self._settled(now, self._fetch())  # 1
        if not self._leading.leads(now, reachable):
            return self._reading(now, reachable)
        reachable = reachable and not self._branch.is_shut_out  # nothing can be committed, as if it were away
        wanted, seen = self._observe(self._read_desired(now, reachable), now)  # 2, 3
        if reachable:
            self._leading.rise(seen.views, now)
        committed, found = recognised(self._facts(), wanted, seen.views, now)
        folded = fold(committed, wanted, seen, self._settings, now, self._turns)  # 4
        before = Before(committed.requests, partial(self._before, committed))
        decision = decide(before, folded, wanted, seen, self._settings, tried=self._tried)  # 5
        events = self._news.with_notes((*found, *decision.events))
        decision, events = self._mailroom.post(decision, events, wanted, now)
        held = self._commit(decision, wanted, events, reachable=reachable)  # 6, 7
        if not (self._branch.leading or self._branch.is_shut_out):
            return self._reading(now, reachable)
        facts = self._facts()
        self._keep_notes()
        answers = self._carry_out(wanted, at(facts, now), seen, now)  # 8
        told = self._tell(events if held is None else (), wanted, seen, now)  # 9
        # Where nothing can be committed for a while, what is committed goes on without a pause all the same.
        waits = held is None or held >= now + self._settings.poll
        acted = waits and bool(set(answers.done) - self._done)
        self._done = set(answers.done)
        wake = next_wake((facts, wanted, seen), decision, answers, self._settings, held)
        wake = now if self._has_more else min(wake, self._send(facts, wanted, now) or wake)
        if acted:
            wake = min(wake, now + RETRY) if self._hurried == now else now
            self._hurried = now
        changed, acts, carried = bool(events) or acted, dict(answers.counts), self._mailroom.counted()
        leading, pushed = self._branch.leading, self._pushed
        return Cycle(now, leading, wake, told, facts, changed, reachable, wanted, pushed, acts, carried)

    def _fetch(self) -> bool:
        """Everything from the remote; False when it cannot be reached, and we go on with what is known."""
        settings = self._settings
        try:
            self._store.fetch([settings.main_branch, settings.status_branch, *BRANCHES])
        except Fault as fault:
            log.warning(
                "repository not fetched reason=%s message=%s; committed starts and ends still happen",
                fault.reason,
                fault,
            )
            return False
        return True

    def _reading(self, now: datetime, reachable: bool) -> Cycle:
        """Somebody else leads, or nobody can be asked; a new process that was only too slow asks again at once."""
        pause = RETRY if self._leading.raced else self._settings.poll
        return Cycle(now, False, now + pause, reachable=reachable, pushed=self._pushed)

    def _facts(self) -> Facts:
        facts = self._branch.facts
        assert facts is not None, "a leader has read its branch"
        return facts

    def _read_desired(self, now: datetime, reachable: bool) -> Wanted:
        """The documents in force: main as far as it was judged; when it cannot be read, its last commit that could."""
        main = self._store.tips().get(self._settings.main_branch)
        alarms = [*self._store.alarms(), *self._reports.alarms, *filter(None, [self._leading.outrun])]
        self._news.note(Event(now, Told.MENDED, sentence) for sentence in self._store.mended())
        self._has_more = False
        if main is not None and reachable:
            known = self._facts()
            admitted = self._gate.admit(main, known.trust, known.intent, now)
            self._has_more, alarms = admitted.has_more, [*alarms, *filter(None, [admitted.alarm])]
            self._news.note_main(admitted.commit, admitted.alarm, self._gate.adoption, now)
            try:
                self._desired.update(admitted.commit, admitted.record, admitted.provenance)
                self._news.note_problems(self._desired.problems, now)
            except (Fault, UserError) as error:
                if self._desired.commit is None:  # nothing is in force: every request would count as deleted
                    why = UserError(admitted.alarm, "MainNotFollowed")
                    raise (why if admitted.alarm else error) from error
                alarms.append(f"main is not read: {error}; its last good commit stays in force")
        self._news.note_alarms(alarms, now)
        return self._wording.hear(self._desired.wanted(self._facts()), self._facts(), now)

    def _observe(self, wanted: Wanted, now: datetime) -> tuple[Wanted, Seen]:
        """What clusters and agents say, and the documents with the nodes that the clusters show."""
        views = observe(self._drivers(wanted.manifests), self._troubles, now, wanted.manifests)
        wanted = with_found(wanted, found_in(wanted, views))
        live = {s.uid for s in self._live()}
        self._checks = {key: value for key, value in self._checks.items() if key[0] in live}
        found = self._reports.read(wanted.clusters, now)
        self._handed_over = handed_over(self._live(), Seen(views, found, Outcomes({}, self._handed_over)))
        fresh = sorted(unrecorded(wanted.filed, self._facts().requests))
        self._filed = {key: self._filed.get(key, now) for key in fresh}
        self._looked = self._compare(wanted, views, now)
        outcomes = Outcomes(self._checks, self._handed_over, self._drift.resting(self._looked, now))
        silences = self._troubles.silences()
        return wanted, Seen(views, found, outcomes, self._filed, self._looked.differences, silences)

    def _compare(self, wanted: Wanted, views: Mapping[str, ClusterView], now: datetime) -> Looked:
        """How the slices of every managed cluster that answers differ from what they should be."""
        facts = self._facts()
        managed = [name for name in sorted(views) if wanted.clusters[name].mode == "manage"]
        terms = {name: terms_in(name, wanted, facts) for name in managed}
        paused = frozenset(name for name in managed if wanted.clusters[name].paused)
        found = compare(self._drivers(wanted.manifests), terms, self._troubles, now)
        return Looked(terms, found, paused, {name: views[name].nodes.keys() for name in managed})

    def _live(self) -> list[GPRStatus]:
        return list(holders(self._facts().requests).values())

    def _before(self, committed: Facts) -> Snapshot | None:
        if self._leading.before is None:
            return None
        return build_snapshot(self._leading.before, committed, None, frozenset())

    def _commit(
        self, decision: Decision, wanted: Wanted, events: tuple[Event, ...], *, reachable: bool
    ) -> datetime | None:
        """Push the decision; None when it stands, else when to try again. Nothing new is carried out until then."""
        now = decision.facts.at
        if not reachable:
            return now + self._settings.poll
        files = self._files(decision, wanted) | self._desired.accepted_files()
        try:
            result = self._branch.write(
                decision.facts, files, events, summarised(events), urgent=decision.urgent
            )
        except Fault as fault:
            log.warning("status not written reason=%s message=%s; tried again", fault.reason, fault)
            self._pushed = "Failed"
            self._news.given_up(events)
            return now + self._settings.poll
        self._pushed = outcome_of(result)
        if result.landed:
            self._leading.before = wanted
            self._news.committed()
            return None
        if isinstance(result, Postponed):
            return result.until
        self._news.given_up(events)
        return now

    def _keep_notes(self) -> None:
        """Of requests that are over and whose files need no look again."""
        found = {key: self._desired.note_of(key) for key in self._turns.newly_quiet()}
        self._branch.note({key: note for key, note in found.items() if note is not None})

    def _files(self, decision: Decision, wanted: Wanted) -> Files:
        """What `render` says, made anew only when something it reads differs: most cycles are quiet."""
        facts = decision.facts
        state = (
            (facts.requests, facts.nodes, facts.clusters, facts.usage, facts.held_deletions),
            (facts.found, facts.unmanaged, facts.workspaces, facts.spent_words, facts.trust),
            (facts.insights, facts.ended, facts.scales, facts.faults, facts.outbox),
        )
        # Not the order: ageing changes it as time passes, and the next fact brings it up to date.
        of = (state, self._desired.problems)
        if self._rendered is None or self._rendered[0] is not wanted or self._rendered[1] != of:
            files = render(facts, wanted, decision.plan.order, self._desired.problems, self._written)
            self._rendered = (wanted, of, files)
        return self._rendered[2]

    def _carry_out(self, wanted: Wanted, facts: Facts, seen: Seen, now: datetime) -> Answers:
        planned = actions(wanted, facts, seen, now, self._settings.start_tolerance)
        answers = apply(planned, self._drivers(wanted.manifests), self._troubles, self._branch.stamp, now)
        self._news.note(_drift(action, now) for action in drifted(planned, self._views))
        self._news.note(self._drift.after(self._looked, answers.begun, answers.done, now))
        self._news.note(self._fresh_refusals(answers, now))
        self._checks |= answers.checks
        self._views = seen.views
        return answers

    def _tell(
        self, events: tuple[Event, ...], wanted: Wanted, seen: Seen, now: datetime
    ) -> tuple[Event, ...]:
        """In the log, and in the clusters that they are about; what a cluster does not take now waits for it."""
        told = self._news.tell(events)
        self._board.post(told, self._branch.stamp.term, wanted, self._facts())
        waiting = self._board.waiting(seen.views.keys())
        self._board.told(announce(self._drivers(wanted.manifests), waiting, self._troubles, now))
        return told

    def _send(self, facts: Facts, wanted: Wanted, now: datetime) -> datetime | None:
        """Messages that are committed and due; gives when to look for the next ones."""
        if self._branch.leading:
            self._mailroom.hand_over(facts, wanted, now)
        return self._mailroom.wake(facts, wanted, now)

    def _fresh_refusals(self, answers: Answers, now: datetime) -> list[Event]:
        """Each refusal is told once as long as it is met in every round."""
        told: list[Event] = []
        met: set[tuple[str, str, str]] = set()
        for action, refused in answers.refused:
            token = (action.cluster, action.node, refused.reason)
            if token not in self._refusals | met:
                what = f"{action.cluster}: {action.do.name.lower()} {action.node} was refused"
                text = f"{what}: {refused.message}"
                told.append(
                    Event(now, Told.ACTION_REFUSED, text, action.request, action.cluster, action.node)
                )
            met.add(token)
        self._refusals = met
        return told


def _drift(action: Action, now: datetime) -> Event:
    text = f"{action.cluster}/{action.node} had lost its lease of {action.request}; given back"
    return Event(now, Told.DRIFT, text, action.request, action.cluster, action.node)
