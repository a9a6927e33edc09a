"""The clusters as one process sees and changes them: steps 3 and 8 of the cycle, and the notes of step 9."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from reconciler.acting.actions import Action, actions, drifted
from reconciler.acting.apply import Answers, CheckKey, ClusterFailures, announce, apply, compare, observe
from reconciler.acting.cluster_refusals import Refusals
from reconciler.acting.drift import Drift, Looked
from reconciler.acting.due_actions import Hands
from reconciler.documents.slice_terms import terms_in
from reconciler.endpoints.watched import watched
from reconciler.health.agent_reports import Reports
from reconciler.health.remedies import going_on
from reconciler.lifecycle.provisioning import handed_over
from reconciler.model.cluster_port import Busy, CheckResult, ClusterView, Stamp
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Facts, LeaseKey, Outcomes, Seen, Wanted
from reconciler.model.observation import Watch
from reconciler.model.request_files import unrecorded
from reconciler.model.selected_nodes import found_in, with_found
from reconciler.model.statuses import holders
from reconciler.ports import Drivers
from reconciler.telling.cluster_notes import ClusterNotes
from reconciler.telling.news import PendingEvents
from schemas.reading.units import whole_second


class Fleet:
    """All clusters in force. One owner; `hands` may act beside it, never at the same time."""

    def __init__(
        self,
        drivers: Drivers,
        reports: Reports,
        hands: Hands,
        failures: ClusterFailures,
        pending: PendingEvents,
        watch: Watch,
    ) -> None:
        self.drivers, self.failures, self._watch = drivers, failures, watch
        self._reports, self._hands, self._pending = reports, hands, pending
        self._checks: dict[CheckKey, Busy | tuple[CheckResult, ...]] = {}
        self._views: Mapping[str, ClusterView] = {}
        self._handed_over: frozenset[LeaseKey] = frozenset()
        self._filed: dict[str, datetime] = {}
        self._drift, self._looked = Drift(), Looked({}, {})
        self._refusals, self._notes = Refusals(), ClusterNotes()

    def observe(self, wanted: Wanted, facts: Facts, now: datetime) -> tuple[Wanted, Seen]:
        """The state of clusters and agents, and the documents with the nodes that the clusters show."""
        with self._hands.mine:
            drivers = self.drivers(wanted.manifests)
            self._hands.drive(drivers)
            views = observe(drivers, self.failures, now, wanted.manifests)
            wanted = with_found(wanted, found_in(wanted, views))
            return wanted, self._seen(wanted, views, facts, now)

    def _seen(self, wanted: Wanted, views: Mapping[str, ClusterView], facts: Facts, now: datetime) -> Seen:
        live = holders(facts.requests).values()
        self._checks = self._hands.knowing(self._checks, _uids(facts))
        reports = self._reports.read(wanted.clusters, now)
        served = self._handed_over | self._hands.handed_over
        self._handed_over = handed_over(list(live), Seen(views, reports, Outcomes({}, served)))
        self._filed = {
            key: self._filed.get(key, whole_second(now))
            for key in sorted(unrecorded(wanted.filed, facts.requests))
        }
        self._looked = self._compare(wanted, views, facts, now)
        resting = self._drift.resting(self._looked, now)
        outcomes = Outcomes(self._checks, self._handed_over, resting, self._hands.taken_back)
        silences, observed = self.failures.silences(), self._watch(watched(wanted, facts), now)
        return Seen(views, reports, outcomes, self._filed, self._looked.differences, silences, observed)

    def _compare(
        self, wanted: Wanted, views: Mapping[str, ClusterView], facts: Facts, now: datetime
    ) -> Looked:
        """How the slices of every managed cluster that answers differ from their terms."""
        managed = [name for name in sorted(views) if wanted.clusters[name].mode == "manage"]
        terms = {name: terms_in(name, wanted, facts, views[name]) for name in managed}
        paused = frozenset(name for name in managed if wanted.clusters[name].paused)
        found = compare(self.drivers(wanted.manifests), terms, self.failures, now)
        return Looked(terms, found, paused, {name: views[name].nodes.keys() for name in managed})

    def carry_out(
        self, wanted: Wanted, facts: Facts, seen: Seen, stamp: Stamp, tolerance: timedelta
    ) -> Answers:
        """Carries out what committed facts require now; each write carries the stamp."""
        now, pending = facts.at, self._pending
        planned = actions(wanted, facts, seen, now, tolerance)
        with self._hands.mine:
            answers = apply(planned, self.drivers(wanted.manifests), self.failures, stamp, now)
            checks = {**self._checks, **answers.checks}
            self._checks = self._hands.knowing(checks, _uids(facts))
        pending.note(_drift(action, now) for action in drifted(planned, self._views))
        pending.note(self._drift.after(self._looked, answers.begun, answers.done, now))
        pending.note(self._refusals.fresh(answers, now))
        self._views = seen.views
        return answers

    def tell(
        self,
        told: tuple[Event, ...],
        wanted: Wanted,
        facts: Facts,
        term: int,
        reached: Mapping[str, ClusterView],
    ) -> None:
        """Writes events into the clusters that they are about; a failing cluster gets them later."""
        self._notes.post(told, term, wanted, facts)
        waiting = self._notes.waiting(reached.keys())
        with self._hands.mine:
            self._notes.told(announce(self.drivers(wanted.manifests), waiting, self.failures, facts.at))


def _uids(facts: Facts) -> Iterator[str]:
    """Whose checks count: leases with nodes, and resets and reboots that go on."""
    yield from (status.uid for status in holders(facts.requests).values())
    yield from (remedy.uid for remedy in going_on(facts.remedies))


def _drift(action: Action, now: datetime) -> Event:
    text = f"{action.cluster}/{action.node} lost its lease mark of {action.request}; the mark was restored"
    return Event(now, EventReason.DRIFT, text, action.request, action.cluster, action.node)
