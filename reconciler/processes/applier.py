"""The applying part of the loop, run inside one cluster: carries out what is committed there and reports.

It decides nothing. Actions follow from the last fetched status branch and the clock, through the loop's own
code, and carry that commit's stamp: never an older one than it acted on before, and the cluster refuses an
older one of another process. So committed starts and strict ends happen on time, even while the repository is
unreachable. Held by tests/reconciler/clusters/test_pulled_world.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reconciler.acting.actions import Action, Do, actions, drifted
from reconciler.acting.agreed_ends import agreed_ends
from reconciler.acting.apply import STALE, Answers, CheckKey, ClusterFailures, announce, apply, compare
from reconciler.acting.drift import Drift, Looked
from reconciler.acting.due_actions import Hands
from reconciler.clock import Timepiece
from reconciler.clusters.applier_report import RefusalKey, Report, digest_of
from reconciler.clusters.pulled_cluster import branch_of
from reconciler.cycle import RETRY, Cycle
from reconciler.documents.slice_terms import assigned, terms_in
from reconciler.follower import Committed, Decided
from reconciler.health.remedies import going_on
from reconciler.lifecycle.provisioning import handed_over
from reconciler.model.cluster_port import Busy, CheckResult, ClusterDriver, ClusterView, Difference
from reconciler.model.facts import Facts, LeaseKey, Outcomes, Seen, Wanted
from reconciler.model.holdings import lease_ref
from reconciler.model.selected_nodes import found_in, with_found
from reconciler.planning.snapshot import at
from reconciler.processes.applier_branch import Bulletin
from reconciler.settings import Settings
from reconciler.store.document_cache import DocumentCache
from reconciler.store.refresh import fetched
from reconciler.store.store_port import Store
from reconciler.telling.cluster_notes import ClusterNotes
from reconciler.timekeeping.timekeeper import Moment, Timekeeper, readings_of
from reconciler.trust.machines import Machines
from schemas.documents.cluster import ClusterSpec
from schemas.errors import EgsError, Fault, UserError

log = logging.getLogger(__name__)

SHOWN = timedelta(minutes=1)
"""Repairs are reported for this long, so that the centre sees them between two looks."""


@dataclass(slots=True)
class _Known:
    """What one process knows of the cluster; lost in a crash and then read again."""

    checks: dict[CheckKey, Busy | tuple[CheckResult, ...]] = field(default_factory=dict)
    served: frozenset[LeaseKey] = frozenset()
    view: ClusterView | None = None  # the last one
    mended: dict[Difference, datetime] = field(default_factory=dict)
    done: frozenset[Action] = frozenset()
    hurried: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Round:
    """One cycle's answers and inputs."""

    decided: Decided
    wanted: Wanted
    seen: Seen
    planned: tuple[Action, ...]
    answers: Answers
    looked: Looked


class Applier:
    """Acts for one cluster. `cycle` may be called at any time and any number of times."""

    def __init__(  # noqa: PLR0913 - its parts; optional arguments are keyword-only
        self,
        store: Store,
        cache: DocumentCache,
        cluster: str,
        driver_of: Callable[[ClusterSpec], ClusterDriver],
        settings: Settings,
        writer: str,
        *,
        may_act: Callable[[], bool] = lambda: True,
        machines: Machines | None = None,
        clock: Timepiece | None = None,
    ) -> None:
        """`driver_of` opens the cluster from inside; `may_act` asks the election, if there is one.

        `machines` verifies the signatures of controllers and appliers; None: everyone who can push is
        believed. `clock` is read again after slow operations; None: time stands still within a cycle.
        """
        self._store, self._cluster, self._settings = store, cluster, settings
        self._time = Timekeeper(settings, clock)
        self._driver_of, self._may_act = driver_of, may_act
        believes = None if machines is None else machines.controllers()
        self._committed = Committed(store, cache, settings, writer, believes=believes)
        self._bulletin = Bulletin(store, cluster, settings, writer, machines)
        self._is_elected = False
        self._driver: tuple[ClusterSpec, ClusterDriver] | None = None
        self._failures, self._drift, self._notes = ClusterFailures(), Drift(), ClusterNotes()
        self._known = _Known()
        self.hands = Hands(settings, self._failures, lambda _: {}, may_act, clock)
        """Carries out what is committed during a long fetch."""

    def cycle(self, now: datetime) -> Cycle:
        """Fetches, reads what is committed, observes, acts, reports. Raises what a person must fix first."""
        self.hands.begin(now)
        done = self._cycle(now)
        self.hands.end()  # rounds continue during the pause after a failed cycle
        return done

    def _cycle(self, now: datetime) -> Cycle:
        reachable, now = self._fetch(), self._time.read(now)
        decided = self._committed.read(now)
        if decided is None:
            return Cycle(now, False, now + self._settings.poll, reachable=reachable)
        with self.hands.mine:
            cycle = self._acted(decided, now, reachable=reachable)
        if cycle.leading and self._time.standing is None:
            self.hands.keep(decided.wanted, decided.facts, decided.stamp)
        else:
            self.hands.rest()
        return cycle

    def _acted(self, decided: Decided, now: datetime, *, reachable: bool) -> Cycle:
        driver, spec = self._open(decided.wanted)
        self.hands.drive({self._cluster: driver})
        if not self._elected() or not self._bulletin.takes(now, spec, reachable=reachable):
            return Cycle(now, False, now + self._settings.poll, reachable=reachable)
        view, trouble = self._look(driver, spec, now)
        if view is None:
            report = Report(now, self._settings.report_every, decided.stamp, trouble=trouble)
            held = self._bulletin.publish(report, spec, now, reachable=reachable, busy=False)
            wake = min(held, now + self._settings.poll)
            return Cycle(now, True, wake, reachable=reachable)
        moment = self._moment(decided, view, now)
        if moment.doubt is not None:
            return self._stand_still(decided, driver, view, moment, reachable)
        if self._time.has_paused():  # there may be a newer decision by now
            reachable = self._fetch()
            decided = self._committed.read(moment.now) or decided
        now = self._time.read_on(moment.now)
        done = self._carry_out(decided, driver, view, now)
        self._tell(done, driver, now)
        if done.answers.counts:
            view = self._look(driver, spec, now)[0] or view
        report = self._report(done, view, now)
        held = self._bulletin.publish(report, spec, now, reachable=reachable, busy=bool(done.answers.until))
        return replace(self._ended(done, held, now, reachable=reachable), clocks=moment.offsets_s)

    def _elected(self) -> bool:
        """The election's answer; a newly elected process takes the branch from its predecessor."""
        before, self._is_elected = self._is_elected, self._may_act()
        if self._is_elected and not before:
            self._bulletin.begin()
        return self._is_elected

    # -- what is committed -----------------------------------------------------------------------------------

    def _fetch(self) -> bool:
        settings = self._settings
        self._time.mark()
        return fetched(self._store, [settings.main_branch, settings.status_branch, branch_of(self._cluster)])

    def _open(self, wanted: Wanted) -> tuple[ClusterDriver, ClusterSpec]:
        spec = wanted.manifests.get(self._cluster)
        if spec is None:
            raise UserError(
                f"main has no clusters/{self._cluster}.yaml; correct --cluster, or add the document",
                "UnknownCluster",
            )
        if spec.access is None or not spec.access.pull:
            raise UserError(
                f"clusters/{self._cluster}.yaml has no spec.access.pull: the controller itself drives the cluster; "
                "set it to true, or stop this applier",
                "NotPulled",
            )
        if self._driver is None or self._driver[0] != spec:
            if self._driver is not None:
                self._driver[1].close()
            self._driver = None
            self._driver = (spec, self._driver_of(spec.edited(access=None)))
        return self._driver[1], spec

    # -- the time --------------------------------------------------------------------------------------------

    def _moment(self, decided: Decided, view: ClusterView, now: datetime) -> Moment:
        """The time, and whether our clock can be trusted given the last decision and the cluster's clock."""
        views, facts = {self._cluster: view}, decided.facts
        moment = self._time.look(now, readings_of(facts.at, facts, views), views)
        self._time.note(moment)
        return moment

    def _stand_still(
        self, decided: Decided, driver: ClusterDriver, view: ClusterView, moment: Moment, reachable: bool
    ) -> Cycle:
        """Our clock is in doubt: only leases over by every clock end, and the report says why nothing else happens."""
        doubt, told = moment.doubt, self._time.standing
        assert doubt is not None
        assert told is not None
        views, spec = {self._cluster: view}, decided.wanted.manifests[self._cluster]
        wanted = with_found(decided.wanted, found_in(decided.wanted, views))
        tolerance = self._settings.start_tolerance
        ends = agreed_ends(wanted, decided.facts, Seen(views), doubt.earliest, tolerance)
        answers = apply(ends, {self._cluster: driver}, self._failures, decided.stamp, doubt.earliest)
        report = Report(doubt.latest, self._settings.report_every, decided.stamp, trouble=told.sentence)
        held = self._bulletin.publish(report, spec, moment.now, reachable=reachable, busy=False)
        wake = min([held, moment.now + self._settings.poll, *answers.until])
        acted = dict(answers.counts)
        return replace(self._quiet(moment, reachable), wake=max(wake, moment.now + RETRY), acted=acted)

    def _quiet(self, moment: Moment, reachable: bool) -> Cycle:
        wake, clocks = moment.now + self._settings.poll, moment.offsets_s
        return Cycle(moment.now, True, wake, reachable=reachable, clocks=clocks)

    # -- what is ---------------------------------------------------------------------------------------------

    def _look(
        self, driver: ClusterDriver, spec: ClusterSpec, now: datetime
    ) -> tuple[ClusterView | None, str]:
        """The view, or why there is none."""
        try:
            view = driver.observe(now)
            if now - view.at > spec.stale:
                raise Fault(f"its last report is of {view.at:%Y-%m-%dT%H:%M:%SZ}", STALE)
        except (EgsError, OSError) as error:
            self._failures.met(self._cluster, "observe", error)
            return None, str(error)
        self._failures.over(self._cluster, "observe")
        return view, ""

    def _seen(
        self, wanted: Wanted, facts: Facts, driver: ClusterDriver, view: ClusterView, now: datetime
    ) -> tuple[Seen, Looked]:
        known, name = self._known, self._cluster
        live = assigned(name, facts).values()
        uids = {*(status.uid for status in live), *(remedy.uid for remedy in going_on(facts.remedies))}
        known.checks = self.hands.knowing(known.checks, uids)
        served = known.served | self.hands.handed_over
        known.served = handed_over(live, Seen({name: view}, {}, Outcomes({}, served)))
        terms = {name: terms_in(name, wanted, facts, view)} if wanted.clusters[name].mode == "manage" else {}
        found = compare({name: driver}, terms, self._failures, now)
        looked = Looked(terms, found, nodes={name: view.nodes.keys()})
        outcomes = Outcomes(known.checks, known.served, self._drift.resting(looked, now))
        return Seen({name: view}, {}, outcomes, {}, looked.differences), looked

    # -- what is done ----------------------------------------------------------------------------------------

    def _carry_out(self, decided: Decided, driver: ClusterDriver, view: ClusterView, now: datetime) -> _Round:
        """This cluster's actions, as in the loop, with the stamp of the last commit."""
        facts, name = at(decided.facts, now), self._cluster
        wanted = with_found(decided.wanted, found_in(decided.wanted, {name: view}))
        seen, looked = self._seen(wanted, facts, driver, view, now)
        planned = actions(wanted, facts, seen, now, self._settings.start_tolerance)
        answers = apply(planned, {name: driver}, self._failures, decided.stamp, now)
        self._known.checks |= answers.checks
        return _Round(decided, wanted, seen, planned, answers, looked)

    def _tell(self, done: _Round, driver: ClusterDriver, now: datetime) -> None:
        """Writes the committed events into this cluster; logs drift and adds it to the next report."""
        known, answers = self._known, done.answers
        before = {} if known.view is None else {self._cluster: known.view}
        for action in drifted(done.planned, before):
            assert action.lease is not None
            detail = f"lost its lease mark of {action.request}"
            known.mended[Difference(action.lease.slice, f"Node {action.node}", "changed", detail)] = now
        events = self._drift.after(done.looked, answers.begun, answers.done, now)
        if events:
            known.mended |= {d: now for found in done.looked.differences.values() for d in found}
        known.mended = {d: since for d, since in known.mended.items() if now - since <= SHOWN}
        for event in events:
            log.warning("drift reason=%s message=%s", event.reason, event.message)
        wanted, facts = done.wanted, done.decided.facts
        self._notes.post(self._committed.news(now), done.decided.stamp.term, wanted, facts)
        waiting = self._notes.waiting((self._cluster,))
        self._notes.told(announce({self._cluster: driver}, waiting, self._failures, now))
        known.view = done.seen.views[self._cluster]

    def _report(self, done: _Round, view: ClusterView, now: datetime) -> Report:
        live = assigned(self._cluster, done.decided.facts).values()
        outcomes = Outcomes({}, self._known.served)
        self._known.served = handed_over(live, Seen({self._cluster: view}, {}, outcomes))
        mended = {
            action.slice for action in done.answers.done if action.do in {Do.ENSURE_SLICE, Do.ENSURE_FLEET}
        }
        found = done.looked.differences.get(self._cluster, ())
        stand = {difference for difference in found if difference.slice not in mended}
        return Report(
            at=now,
            every=self._settings.report_every,
            acted=done.decided.stamp,
            view=replace(view, served=self._known.served),
            checks=self._known.checks,
            refusals={_refusal_key(action): no for action, no in done.answers.refused},
            differences=tuple(sorted(stand | self._known.mended.keys(), key=_order)),
            terms={t.name: digest_of(t) for t in done.looked.terms.get(self._cluster, ())},
        )

    def _ended(self, done: _Round, held: datetime, now: datetime, *, reachable: bool) -> Cycle:
        known, facts = self._known, done.decided.facts
        fresh = frozenset(done.answers.done)
        acted = bool(fresh - known.done)
        known.done = fresh
        later = [*done.answers.until, *_instants(self._cluster, done.wanted, facts), held]
        wake = min([now + self._settings.poll, *(instant for instant in later if instant > now)])
        if acted:  # the actions may require more at once
            wake = min(wake, now + RETRY) if known.hurried == now else now
            known.hurried = now
        counts = dict(done.answers.counts)
        pushed = self._bulletin.pushed
        # The centre shows what is committed: no facts here.
        return Cycle(now, True, wake, changed=acted, reachable=reachable, pushed=pushed, acted=counts)


def _refusal_key(action: Action) -> RefusalKey:
    uid = action.lease.uid if action.lease is not None else ""
    return action.do.name, action.node or action.workload or action.slice, uid


def _order(found: Difference) -> tuple[str, str, str, str]:
    return found.slice, found.object, found.found, found.detail


def _instants(cluster: str, wanted: Wanted, facts: Facts) -> list[datetime]:
    """Starts, notices and ends of this cluster's leases."""
    found: list[datetime] = []
    spec = wanted.clusters[cluster]
    for key, status in assigned(cluster, facts).items():
        lease, start = lease_ref(key, status), status.start_time or status.estimated_start_time
        if lease is not None and start is not None:
            found += [start, lease.end - spec.notice, lease.end]
    return found
