"""One cycle, from what main says to nodes in slices. The numbered steps are the design.

A decision is committed before it is carried out: actions are derived from committed facts alone. Whatever fails,
what is committed already is completed, strict ends happen, and the next cycle begins from what is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from reconciler.acting.actions import Action, Do, actions, drifted
from reconciler.acting.apply import Answers, CheckKey, Troubles, announce, apply, compare, observe
from reconciler.acting.cluster_refusals import Refusals
from reconciler.acting.drift import Drift, Looked
from reconciler.acting.due_actions import Hands
from reconciler.acting.standstill import Standstill
from reconciler.acting.wake_times import next_wake
from reconciler.approvals.who_approved import Wording, wording_of
from reconciler.clock import Timepiece
from reconciler.clusters.pulled_cluster import PATTERN as REPORTED
from reconciler.deciding.decide import Decision, decide
from reconciler.deciding.failed_attempts import Undecided
from reconciler.deciding.fold import fold
from reconciler.deciding.slips import Before
from reconciler.deciding.unchanged_requests import Settled
from reconciler.documents.finished_files import standing
from reconciler.documents.in_force import Desired
from reconciler.documents.slice_terms import terms_in
from reconciler.documents.unread_files import recorded
from reconciler.health import agent_reports
from reconciler.leadership import Leading
from reconciler.lifecycle.provisioning import handed_over
from reconciler.model.cluster_port import Busy, CheckResult, ClusterDriver, ClusterView
from reconciler.model.events import Event, Told
from reconciler.model.facts import Facts, LeaseKey, Outcomes, Seen, Wanted
from reconciler.model.request_files import unrecorded
from reconciler.model.selected_nodes import found_in, with_found
from reconciler.model.statuses import holders
from reconciler.planning.snapshot import at, build_snapshot
from reconciler.settings import Settings
from reconciler.status.recognised_leases import recognised
from reconciler.status.rendered_files import Rendered
from reconciler.store.branch_writer import Postponed, outcome_of
from reconciler.store.document_cache import DocumentCache
from reconciler.store.refresh import fetched
from reconciler.store.store_port import Store
from reconciler.telling.cluster_notes import Noticeboard
from reconciler.telling.mailroom import Mailroom
from reconciler.telling.news import summarised
from reconciler.timekeeping.cycle_pace import Pace
from reconciler.timekeeping.timekeeper import Moment, Others, Timekeeper, words_of
from reconciler.trust.adopted_main import Adoption
from reconciler.trust.gate import Gate, sources_of
from reconciler.trust.machines import Machines
from reconciler.trust.step_evidence import Sources
from scheduler.snapshot import Snapshot
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault, UserError
from schemas.reading.collector import collector_paused
from schemas.status.gpr_status import GPRStatus

log = logging.getLogger(__name__)

RETRY = timedelta(seconds=1)
"""How soon a start is tried again after somebody else's push came first: whoever that was may be dead.
Also the shortest pause after a second look at one instant, so that actions that alternate never stop the time."""

BRANCHES = (agent_reports.PATTERN, REPORTED)
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
    clocks: Mapping[str, float] = field(default_factory=dict)  # seconds by which others are ahead of ours
    doubt: str = ""  # why our clock is not believed; then nothing was decided
    waits: str = ""  # the reason for which nothing can be done before a merge; empty: there is none


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
        clock: Timepiece | None = None,
        clocks: Others = dict,
    ) -> None:
        """`may_lead` tells whether this process is elected; None: there is no election, the branch alone decides.

        `settled` may put deciding off while the repository answers again and those who report to it have not yet.
        `machines` tells by their signatures who controllers and agents are; None: whoever can push is believed.
        `wording` knows whose words on requests count; None: by `settings.trust`, and no forge is asked.
        `records` keeps what was read of the status branch for the next process; None: it reads all of it.
        `sources` are what main is judged by; None: as `settings.trust` has it, and no forge is asked.
        `mailroom` sends people what routes of the manifests name; None: nothing is sent.
        `clock` is read anew after whatever may have taken long; None: time stands still in a cycle, as in a simulation.
        `clocks` are others beside those of clusters.
        """
        self._store, self._drivers = store, drivers
        self._settled, self._settings = settled, settings
        self._desired = Desired(store, cache)
        self._gate = Gate(store, cache, sources or sources_of(settings), self._desired.in_force, adopt=adopt)
        self._has_more = False  # main goes on, and is judged in the next cycle
        self._frozen = ""  # why main is not followed until a person acts
        self._wording = wording or wording_of(settings, store)
        self._reports = agent_reports.Reports(store, machines)
        trusted = None if machines is None else machines.controllers()
        lead = partial(Leading, store, self._desired, settings, writer, adopt=adopt, may_lead=may_lead)
        self._leading = lead(believes=trusted, records=records, said=self._reports.read)
        self._branch, self._news = self._leading.branch, self._leading.news
        self._mailroom = mailroom or Mailroom()
        self._time = Timekeeper(settings, clock, clocks)
        self._standstill = Standstill(self._branch, self._news, settings)
        self._checks: dict[CheckKey, Busy | tuple[CheckResult, ...]] = {}
        self._views: Mapping[str, ClusterView] = {}
        self._refusals = Refusals()
        self._troubles, self._drift, self._board, self._looked = (
            Troubles(),
            Drift(),
            Noticeboard(),
            Looked({}, {}),
        )
        self._rendered = Rendered()
        self.hands = Hands(settings, self._troubles, drivers, may_lead or (lambda: True), clock)
        """Carries out what is committed while a cycle takes long."""
        self._pace = Pace(settings, clock)
        self._done: set[Action] = set()
        self._hurried: datetime | None = None
        self._handed_over: frozenset[LeaseKey] = frozenset()
        self._filed: dict[str, datetime] = {}
        self._turns, self._tried, self._pushed = Settled(), Undecided(), ""

    @property
    def adoption(self) -> Adoption | None:
        """What an operator took of a main that was rewritten; None: it was not."""
        return self._gate.adoption

    def cycle(self, now: datetime) -> Cycle:
        """Steps 1 to 9 of docs/architecture.md; raises only what no later cycle can mend by itself."""
        self._pace.begin(now)
        self.hands.begin(now)
        try:
            with collector_paused():  # a walk over all that is known here would take longer than most cycles
                done = self._cycle(now)
        finally:
            self._pace.end(now)
        self.hands.end()  # beside the pause after one that failed, rounds go on
        return done

    def has_sent(self) -> bool:
        """Wait for messages under way; True: there were some, and a cycle more crosses out what arrived."""
        return self._mailroom.finish()

    def _cycle(self, now: datetime) -> Cycle:
        self._pushed = ""
        reachable = self._fetch()  # 1
        moment = self._moment(now)
        reachable = self._settled(moment.now, reachable)
        if not self._leads(moment, reachable):
            return self._reading(moment, reachable)
        self._hand_on(moment)
        reachable = reachable and not self._branch.is_shut_out  # nothing can be committed, as if it were away
        now, was_in_doubt = self._time.read(moment.now), moment.doubt is not None
        wanted = self._read_desired(now, reachable, was_in_doubt)  # 2
        wanted, seen = self._observe(wanted, self._time.read_on(now))  # 3
        moment = self._moment(now, seen)
        self._time.note(moment)
        now = moment.now
        if moment.doubt is not None:
            return self._stand_still(moment, wanted, seen, reachable)
        if was_in_doubt:  # main was not read
            return self._again(moment, reachable)
        self._news.note(self._standstill.over(now))
        if reachable:
            self._leading.rise(seen.views, now)
        committed, found = recognised(self._facts(), wanted, seen.views, now)
        folded = fold(committed, wanted, seen, self._settings, now, self._turns)  # 4
        before = Before(committed.requests, partial(self._before, committed), self._pace.trials(now))
        settings = self._pace.ahead(has_more=self._has_more)
        decision = decide(before, folded, wanted, seen, settings, tried=self._tried)  # 5
        events = self._news.with_notes((*found, *decision.events))
        decision, events = self._mailroom.post(decision, events, wanted, now)
        held = self._commit(decision, wanted, events, reachable=reachable)  # 6, 7
        if not (self._branch.leading or self._branch.is_shut_out):
            return self._reading(moment, reachable)
        self._hand_on(moment)
        facts = self._facts()
        self._keep_notes()
        fresh = self._fresh(wanted, seen, now)
        if fresh is None:  # what is committed is told all the same, and carried out by whoever may
            told = self._news.tell(events if held is None else ())
            return replace(self._again(moment, reachable), events=told)
        seen, now = fresh
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
        cycle = replace(self._again(moment, reachable), at=now, wake=wake, events=told, facts=facts)
        return replace(cycle, changed=changed, wanted=wanted, acted=acts, carried=carried)

    # -- the time --------------------------------------------------------------------------------------------

    def _moment(self, now: datetime, seen: Seen | None = None) -> Moment:
        """The present, and whether what the branch, nodes and other clocks say of it lets us believe it."""
        self._time.mark()
        views, facts = ({}, None) if seen is None else (seen.views, self._branch.facts)
        return self._time.look(now, words_of(self._branch.decided_at(), facts, views), views)

    def _hand_on(self, moment: Moment) -> None:
        """What is committed is carried out beside this cycle too, unless our clock is in doubt."""
        if moment.doubt is None:
            self.hands.keep(self._leading.before, self._facts(), self._branch.stamp)
        else:
            self.hands.rest()

    def _leads(self, moment: Moment, reachable: bool) -> bool:
        """While our clock is in doubt nobody is superseded by us for a while: it may be set right, and others lead."""
        if moment.doubt is None:
            return self._leading.leads(moment.now, reachable)
        self._time.note(moment)
        waits = self._time.doubted_for(moment.now) < self._settings.overdue
        if waits and not self._leading.holds(reachable):
            return False
        return self._leading.leads(moment.doubt.earliest, reachable)

    def _stand_still(self, moment: Moment, wanted: Wanted, seen: Seen, reachable: bool) -> Cycle:
        """Nothing is given or taken but what is over by every clock; that, and why, is told once."""
        doubt, still = moment.doubt, self._standstill
        assert doubt is not None
        self.hands.rest()
        told = still.tell(doubt, reachable=reachable)
        with self.hands.mine:
            answers = still.act(doubt, wanted, seen, self._drivers(wanted.manifests), self._troubles)
        cycle = replace(self._again(moment, reachable), wake=still.wake(moment.now, doubt), events=told)
        acted = dict(answers.counts)
        return replace(cycle, facts=self._facts(), wanted=wanted, pushed=still.pushed, acted=acted)

    def _again(self, moment: Moment, reachable: bool) -> Cycle:
        """Nothing is done with what was found: the cycle begins again at once."""
        now, lead, clocks = moment.now, self._branch.leading, moment.offsets_s
        doubt = "" if moment.doubt is None else moment.doubt.sentence
        return Cycle(now, lead, now, reachable=reachable, pushed=self._pushed, clocks=clocks, doubt=doubt)

    def _fresh(self, wanted: Wanted, seen: Seen, now: datetime) -> tuple[Seen, datetime] | None:
        """What is acted on, and when: looked at again after a pause; None: then it was not ours any more to act."""
        if not self._time.has_paused():
            return seen, self._time.read_on(now)
        log.info("time passed before the decision was carried out since=%s; looked again", now.isoformat())
        self._fetch()
        if not (self._branch.check() or self._branch.is_shut_out):
            return None
        _, seen = self._observe(wanted, self._time.read(now))
        moment = self._moment(now, seen)
        return None if moment.doubt is not None else (seen, moment.now)

    def _fetch(self) -> bool:
        """Everything from the remote; False when it cannot be reached, and we go on with what is known."""
        settings = self._settings
        return fetched(self._store, [settings.main_branch, settings.status_branch, *BRANCHES])

    def _reading(self, moment: Moment, reachable: bool) -> Cycle:
        """Somebody else leads, or nobody can be asked; a new process that was only too slow asks again at once."""
        self.hands.rest()
        pause, now = RETRY if self._leading.raced else self._settings.poll, moment.now
        return replace(self._again(moment, reachable), leading=False, wake=now + pause)

    def _facts(self) -> Facts:
        facts = self._branch.facts
        assert facts is not None, "a leader has read its branch"
        return facts

    def _read_desired(self, now: datetime, reachable: bool, in_doubt: bool) -> Wanted:
        """The documents in force: main as far as it was judged; when it cannot be read, its last commit that could.

        By a clock in doubt nothing new is judged: keys and words count until some instant.
        """
        if in_doubt:
            return self._desired.wanted(self._facts())
        main = self._store.tips().get(self._settings.main_branch)
        alarms = [*self._store.alarms(), *self._reports.alarms, *filter(None, [self._leading.outrun])]
        self._news.note(Event(now, Told.MENDED, sentence) for sentence in self._store.mended())
        self._has_more = False
        if main is not None and reachable:
            known = self._facts()
            self._desired.repository.is_recorded = recorded(known.requests)
            admitted = self._gate.admit(main, known.trust, known.intent, now)
            self._frozen = admitted.alarm if admitted.is_frozen else ""
            self._has_more, alarms = admitted.has_more, [*alarms, *filter(None, [admitted.alarm])]
            self._news.note_main(admitted.commit, admitted.alarm, self._gate.adoption, now)
            try:
                if self._desired.read_ahead(admitted.commit, admitted.record):
                    self._has_more = True
                else:
                    self._desired.update(admitted.commit, admitted.record, admitted.provenance)
                    self._news.note_problems(standing(self._desired.problems, known.requests), now)
            except (Fault, UserError) as error:
                if self._desired.commit is None:  # nothing is in force: every request would count as deleted
                    why = UserError(admitted.alarm, "MainNotFollowed")
                    raise (why if admitted.alarm else error) from error
                alarms.append(f"main is not read: {error}; its last good commit stays in force")
        self._news.note_alarms(alarms, now)
        return self._wording.hear(self._desired.wanted(self._facts()), self._facts(), now)

    def _observe(self, wanted: Wanted, now: datetime) -> tuple[Wanted, Seen]:
        """What clusters and agents say, and the documents with the nodes that the clusters show."""
        with self.hands.mine:
            return self._looked_at(wanted, now)

    def _looked_at(self, wanted: Wanted, now: datetime) -> tuple[Wanted, Seen]:
        drivers = self._drivers(wanted.manifests)
        self.hands.drive(drivers)
        views = observe(drivers, self._troubles, now, wanted.manifests)
        wanted = with_found(wanted, found_in(wanted, views))
        self._checks = self.hands.knowing(self._checks, (s.uid for s in self._live()))
        found = self._reports.read(wanted.clusters, now)
        served = self._handed_over | self.hands.handed_over
        self._handed_over = handed_over(self._live(), Seen(views, found, Outcomes({}, served)))
        fresh = sorted(unrecorded(wanted.filed, self._facts().requests))
        self._filed = {key: self._filed.get(key, now) for key in fresh}
        self._looked = self._compare(wanted, views, now)
        resting = self._drift.resting(self._looked, now)
        outcomes = Outcomes(self._checks, self._handed_over, resting, self.hands.taken_back)
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
        problems = standing(self._desired.problems, self._facts().requests)
        files = (
            self._rendered.files(decision, wanted, problems, self._frozen) | self._desired.accepted_files()
        )
        self.hands.waver(wanted, decision.facts)
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
            self._leading.decided(wanted)
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

    def _carry_out(self, wanted: Wanted, facts: Facts, seen: Seen, now: datetime) -> Answers:
        planned = actions(wanted, facts, seen, now, self._settings.start_tolerance)
        with self.hands.mine:
            drivers = self._drivers(wanted.manifests)
            answers = apply(planned, drivers, self._troubles, self._branch.stamp, now)
            self._checks = self.hands.knowing(
                {**self._checks, **answers.checks}, (s.uid for s in self._live())
            )
        self._news.note(_drift(action, now) for action in drifted(planned, self._views))
        self._news.note(self._drift.after(self._looked, answers.begun, answers.done, now))
        self._news.note(self._refusals.fresh(answers, now))
        self._views = seen.views
        return answers

    def _tell(
        self, events: tuple[Event, ...], wanted: Wanted, seen: Seen, now: datetime
    ) -> tuple[Event, ...]:
        """In the log, and in the clusters that they are about; what a cluster does not take now waits for it."""
        told = self._news.tell(events)
        self._board.post(told, self._branch.stamp.term, wanted, self._facts())
        waiting = self._board.waiting(seen.views.keys())
        with self.hands.mine:
            self._board.told(announce(self._drivers(wanted.manifests), waiting, self._troubles, now))
        return told

    def _send(self, facts: Facts, wanted: Wanted, now: datetime) -> datetime | None:
        """Messages that are committed and due; gives when to look for the next ones."""
        if self._branch.leading:
            self._mailroom.hand_over(facts, wanted, now)
        return self._mailroom.wake(facts, wanted, now)


def _drift(action: Action, now: datetime) -> Event:
    text = f"{action.cluster}/{action.node} had lost its lease of {action.request}; given back"
    return Event(now, Told.DRIFT, text, action.request, action.cluster, action.node)
