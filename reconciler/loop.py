"""One cycle, from main's documents to slices' nodes. The numbered steps are the design.

Actions follow from committed facts only. After any failure, what is committed is completed, strict ends
happen, and the next cycle starts from the present state.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime
from functools import partial

from reconciler.acting.apply import Answers
from reconciler.acting.due_actions import Hands
from reconciler.acting.wake_times import next_wake
from reconciler.clusters.pulled_cluster import PATTERN as REPORTED
from reconciler.cycle import RETRY, Cycle
from reconciler.deciding.decide import Decision, decide
from reconciler.deciding.fold import fold
from reconciler.deciding.slips import CommittedWorld
from reconciler.health import agent_reports
from reconciler.memory import new_memory
from reconciler.model.events import Event
from reconciler.model.facts import Facts, Seen, Wanted
from reconciler.planning.snapshot import at, build_snapshot
from reconciler.ports import Ports
from reconciler.settings import Settings
from reconciler.status.recognised_leases import recognised
from reconciler.store.refresh import fetched
from reconciler.timekeeping.timekeeper import Moment, readings_of
from reconciler.trust.adopted_main import Adoption
from scheduler.snapshot import Snapshot
from schemas.reading.collector import collector_paused
from schemas.reading.units import whole_second

log = logging.getLogger(__name__)

BRANCHES = (agent_reports.PATTERN, REPORTED)
"""Branches of agents and clusters."""


class Reconciler:
    """One controller. `cycle` may be called at any time and any number of times."""

    def __init__(self, ports: Ports, settings: Settings, writer: str, *, adopt: bool = False) -> None:
        """`writer` names this process in commits; `adopt`: an operator adopts the repository as it is."""
        self._ports, self._settings = ports, settings
        self._memory = new_memory(ports, settings, writer, adopt=adopt)
        self._leading = self._memory.leadership
        self._branch, self._pending = self._leading.branch, self._leading.pending

    @property
    def hands(self) -> Hands:
        """Carries out what is committed during a long cycle."""
        return self._memory.hands

    @property
    def adoption(self) -> Adoption | None:
        """What an operator adopted of a rewritten main; None: main was not rewritten."""
        return self._memory.main.adoption

    def has_sent(self) -> bool:
        """Waits for messages being sent; True: there were some, and another cycle records which arrived."""
        return self._memory.mailroom.finish()

    def cycle(self, now: datetime) -> Cycle:
        """Steps 1 to 9 of docs/explain/architecture.md; raises only what no later cycle can fix by itself."""
        self._memory.pace.begin(now)
        self.hands.begin(now)
        try:
            # A garbage collection of everything in memory would take longer than most cycles.
            with collector_paused():
                done = self._cycle(now)
        finally:
            self._memory.pace.end(now)
        self.hands.end()  # rounds continue during the pause after a failed cycle
        return done

    def _cycle(self, now: datetime) -> Cycle:
        self._memory.committer.outcome = ""
        reachable = self._fetch()  # 1 main, status, reports
        moment = self._moment(now)
        reachable = self._ports.settled(moment.now, reachable)
        if not self._leads(moment, reachable):
            return self._follow(moment, reachable)
        self._hand_on(moment)
        # Nothing can be committed, as if it were unreachable.
        reachable = reachable and not self._branch.is_shut_out
        now, was_in_doubt = self._memory.time.read(moment.now), moment.doubt is not None
        wanted = self._documents(now, reachable, was_in_doubt)  # 2 what authorised documents say
        wanted, seen = self._observe(wanted, self._memory.time.read_on(now))  # 3 clusters and agents
        moment = self._moment(now, seen)
        self._memory.time.note(moment)
        if moment.doubt is not None:
            return self._stand_still(moment, wanted, seen, reachable)
        if was_in_doubt:  # main was not read
            return self._again(moment, reachable)
        now = whole_second(moment.now)  # as the branch will say it: facts here are those that others read
        # 4, 5 what happened; promises and starts
        decision, events = self._decide(wanted, seen, now, reachable)
        held = self._commit(decision, wanted, events, reachable)  # 6 one compare-and-swap
        if not (self._branch.leading or self._branch.is_shut_out):
            return self._follow(moment, reachable)
        self._hand_on(moment)
        self._memory.committer.keep_notes(self._memory.unchanged)
        fresh = self._fresh(wanted, seen, now)  # 7 only if that landed, and while it is still ours to act
        if fresh is None:  # committed events are reported anyway
            told = self._pending.tell(events if held is None else ())
            return replace(self._again(moment, reachable), events=told)
        seen, now = fresh
        answers = self._carry_out(wanted, seen, now)  # 8 from committed facts alone
        told = self._tell(events if held is None else (), wanted, seen, now)  # 9
        cycle = replace(self._again(moment, reachable), at=now, events=told, changed=bool(events))
        cycle = replace(cycle, facts=self._facts(), wanted=wanted)
        return self._finished(cycle, decision, seen, answers, held)

    # -- the steps -------------------------------------------------------------------------------------------

    def _fetch(self) -> bool:
        """Fetches everything from the remote; False if it is unreachable, and the cycle uses what is known."""
        settings = self._settings
        return fetched(self._ports.store, [settings.main_branch, settings.status_branch, *BRANCHES])

    def _documents(self, now: datetime, reachable: bool, in_doubt: bool) -> Wanted:
        """The documents in force. With a clock in doubt nothing new is judged: keys and approvals expire."""
        main, facts = self._memory.main, self._facts()
        if in_doubt:
            return main.known(facts)
        outrun = filter(None, [self._leading.outrun])
        alarms = [*self._ports.store.alarms(), *self._memory.reports.alarms, *outrun]
        return main.read(facts, self._pending, alarms, now, reachable=reachable)

    def _observe(self, wanted: Wanted, now: datetime) -> tuple[Wanted, Seen]:
        return self._memory.fleet.observe(wanted, self._facts(), now)

    def _decide(
        self, wanted: Wanted, seen: Seen, now: datetime, reachable: bool
    ) -> tuple[Decision, tuple[Event, ...]]:
        """Folds what happened into the facts, then plans; returns the events of both."""
        memory = self._memory
        self._pending.note(memory.standstill.over(now))
        if reachable:
            self._leading.rise(seen.views, now)
        committed, found = recognised(self._facts(), wanted, seen.views, now)
        folded = fold(committed, wanted, seen, self._settings, now, memory.unchanged)
        before = CommittedWorld(committed.requests, partial(self._before, committed), memory.pace.trials(now))
        settings = memory.pace.ahead(has_more=memory.main.has_more)
        decision = decide(before, folded, wanted, seen, settings, attempts=memory.attempts)
        events = self._pending.with_notes((*found, *decision.events))
        return memory.mailroom.post(decision, events, wanted, now)

    def _commit(
        self, decision: Decision, wanted: Wanted, events: tuple[Event, ...], reachable: bool
    ) -> datetime | None:
        """None if the decision is committed, else when to retry; nothing new is carried out until then."""
        if reachable:
            self.hands.waver(wanted, decision.facts)
        return self._memory.committer.commit(decision, wanted, events, reachable=reachable)

    def _carry_out(self, wanted: Wanted, seen: Seen, now: datetime) -> Answers:
        facts, tolerance = at(self._facts(), now), self._settings.start_tolerance
        return self._memory.fleet.carry_out(wanted, facts, seen, self._branch.stamp, tolerance)

    def _tell(
        self, events: tuple[Event, ...], wanted: Wanted, seen: Seen, now: datetime
    ) -> tuple[Event, ...]:
        """Writes the events to the log, and to the clusters they are about."""
        told, facts = self._pending.tell(events), at(self._facts(), now)
        self._memory.fleet.tell(told, wanted, facts, self._branch.stamp.term, seen.views)
        return told

    def _finished(
        self, cycle: Cycle, decision: Decision, seen: Seen, answers: Answers, held: datetime | None
    ) -> Cycle:
        """When to run again, and what this cycle changed."""
        memory, now, wanted, facts = self._memory, cycle.at, cycle.wanted, self._facts()
        assert wanted is not None
        # If nothing can be committed for a while, committed actions continue without a pause.
        waits = held is None or held >= now + self._settings.poll
        acted = waits and bool(set(answers.done) - memory.done)
        memory.done = frozenset(answers.done)
        wake = next_wake((facts, wanted, seen), decision, answers, self._settings, held, now)
        wake = now if memory.main.has_more else min(wake, self._send(facts, wanted, now) or wake)
        if acted:
            wake = min(wake, now + RETRY) if memory.hurried == now else now
            memory.hurried = now
        acts, carried = dict(answers.counts), memory.mailroom.counted()
        return replace(cycle, wake=wake, changed=cycle.changed or acted, acted=acts, carried=carried)

    def _send(self, facts: Facts, wanted: Wanted, now: datetime) -> datetime | None:
        """Sends committed messages that are due; returns when to look for the next ones."""
        if self._branch.leading:
            self._memory.mailroom.hand_over(facts, wanted, now)
        return self._memory.mailroom.wake(facts, wanted, now)

    # -- who leads, and by which clock -----------------------------------------------------------------------

    def _moment(self, now: datetime, seen: Seen | None = None) -> Moment:
        """The time, and whether the branch, nodes and other clocks allow trusting it."""
        time = self._memory.time
        time.mark()
        views, facts = ({}, None) if seen is None else (seen.views, self._branch.facts)
        return time.look(now, readings_of(self._branch.decided_at(), facts, views), views)

    def _leads(self, moment: Moment, reachable: bool) -> bool:
        """True while this process leads. With a clock in doubt it supersedes no other controller at first."""
        if moment.doubt is None:
            return self._leading.leads(moment.now, reachable)
        self._memory.time.note(moment)
        waits = self._memory.time.doubted_for(moment.now) < self._settings.overdue
        if waits and not self._leading.holds(reachable):
            return False
        return self._leading.leads(moment.doubt.earliest, reachable)

    def _hand_on(self, moment: Moment) -> None:
        """What is committed is also carried out beside this cycle, unless our clock is in doubt."""
        if moment.doubt is None:
            self.hands.keep(self._leading.before, self._facts(), self._branch.stamp)
        else:
            self.hands.rest()

    def _fresh(self, wanted: Wanted, seen: Seen, now: datetime) -> tuple[Seen, datetime] | None:
        """What to act on, and when: read again after a pause; None: we may no longer act."""
        time = self._memory.time
        if not time.has_paused():
            return seen, time.read_on(now)
        log.info("time passed before the decision was carried out since=%s; looking again", now.isoformat())
        self._fetch()
        if not (self._branch.check() or self._branch.is_shut_out):
            return None
        _, seen = self._observe(wanted, time.read(now))
        moment = self._moment(now, seen)
        return None if moment.doubt is not None else (seen, moment.now)

    def _follow(self, moment: Moment, reachable: bool) -> Cycle:
        """Another controller leads, or the remote is unreachable; after a lost race a new process soon asks again."""
        self.hands.rest()
        pause, now = RETRY if self._leading.raced else self._settings.poll, moment.now
        return replace(self._again(moment, reachable), leading=False, wake=now + pause)

    def _stand_still(self, moment: Moment, wanted: Wanted, seen: Seen, reachable: bool) -> Cycle:
        """Only releases what is over by every clock; that, and the reason, is reported once."""
        doubt, still, fleet = moment.doubt, self._memory.standstill, self._memory.fleet
        assert doubt is not None
        self.hands.rest()
        told = still.tell(doubt, reachable=reachable)
        with self.hands.mine:
            answers = still.act(doubt, wanted, seen, fleet.drivers(wanted.manifests), fleet.failures)
        cycle = replace(self._again(moment, reachable), wake=still.wake(moment.now, doubt), events=told)
        acted = dict(answers.counts)
        return replace(cycle, facts=self._facts(), wanted=wanted, pushed=still.pushed, acted=acted)

    def _again(self, moment: Moment, reachable: bool) -> Cycle:
        """Nothing is done with these results: the cycle starts again at once."""
        now, lead, clocks = moment.now, self._branch.leading, moment.offsets_s
        doubt, pushed = "" if moment.doubt is None else moment.doubt.sentence, self._memory.committer.outcome
        return Cycle(now, lead, now, reachable=reachable, pushed=pushed, clocks=clocks, doubt=doubt)

    # -- what is known ---------------------------------------------------------------------------------------

    def _facts(self) -> Facts:
        facts = self._branch.facts
        assert facts is not None, "a leader has read its branch"
        return facts

    def _before(self, committed: Facts) -> Snapshot | None:
        """The snapshot of the last decision, against which causes of slips are judged; None: unknown."""
        if self._leading.before is None:
            return None
        return build_snapshot(self._leading.before, committed, None, frozenset())
