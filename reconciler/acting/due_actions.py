"""Carries out committed actions beside a long cycle: hand-overs, notices and strict ends happen in time.

A cycle may fetch, judge, read, plan and push for long without touching clusters. Another thread calls `round`
meanwhile. This is safe because:
  * Clusters have one user at a time: who reads or changes them holds `mine`.
  * A round decides nothing. Its actions follow from committed facts and the clock, through the loop's own
    code, and carry that commit's stamp: a cluster refuses them if a newer controller has written.
  * During a push it is unknown which facts are committed. Then only actions that follow from both the facts
    before the push and those in it are carried out.
  * After the process was paused or its clock jumped, a round does nothing until the loop has run.
  * A round does only what has a fixed time: checks before a start, hand-overs, notices and releases.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock

from reconciler.acting.actions import Action, Do, actions
from reconciler.acting.apply import Answers, CheckKey, ClusterFailures, apply, observe
from reconciler.clock import Timepiece
from reconciler.clusters.pulled_cluster import PullCluster
from reconciler.lifecycle.provisioning import handed_over
from reconciler.model.cluster_port import Busy, CheckResult, ClusterDriver, ClusterView, Stamp
from reconciler.model.facts import Facts, LeaseKey, Outcomes, Seen, Wanted
from reconciler.model.status_edits import leaves_at
from reconciler.model.statuses import holders
from reconciler.planning.snapshot import at
from reconciler.settings import Settings
from schemas.documents.cluster import ClusterSpec
from schemas.status.gpr_status import GPRStatus, Phase

log = logging.getLogger(__name__)

BUSY = timedelta(seconds=1)
"""A cycle longer than this gets rounds beside it; a round that acted is followed by another after this time."""
LOOK = timedelta(seconds=5)
"""Interval without scheduled actions: an unreachable cluster may answer again."""
Checks = Mapping[CheckKey, Busy | tuple[CheckResult, ...]]


@dataclass(frozen=True, slots=True)
class Held:
    """Facts that are committed, or may be, and their documents."""

    wanted: Wanted
    facts: Facts
    stamp: Stamp


class Hands:
    """The rounds beside one controller's cycles. The loop calls everything but `round`, which another thread calls."""

    def __init__(
        self,
        settings: Settings,
        failures: ClusterFailures,
        drivers: Callable[[Mapping[str, ClusterSpec]], Mapping[str, ClusterDriver]],
        may_act: Callable[[], bool] = lambda: True,
        clock: Timepiece | None = None,
    ) -> None:
        """`failures` and `drivers` are the loop's; `may_act` asks the election; `clock` reveals pauses and jumps."""
        self.mine = Lock()
        """Held while using clusters."""
        self._settings, self._failures, self._open, self._may_act = settings, failures, drivers, may_act
        self._drivers: Mapping[str, ClusterDriver] = {}
        self._clock = clock
        self._seen_s = 0.0  # monotonic time of the last call
        # Wall clock at the beginning of the last cycle, and its monotonic time.
        self._believed: tuple[datetime, float] | None = None
        self._held: tuple[Held, ...] = ()
        self._given: tuple[Held, ...] = ()  # the same with all requests, for the loop only
        self._next: datetime | None = None  # of the next round; None: the loop is idle and wakes by itself
        self._checks: Checks = {}  # as the loop last knew them
        self._fresh: Checks = {}  # found by rounds since
        self.handed_over: frozenset[LeaseKey] = frozenset()
        """Leases whose nodes were all assigned to them in a round."""
        self.taken_back: Mapping[str, datetime] = {}
        """When a round last released nodes of leases, by uid."""

    # -- the loop's ------------------------------------------------------------------------------------------

    def begin(self, now: datetime) -> None:
        self._mind(now)
        with self.mine:
            self._next = now + BUSY
            if self._clock is not None:
                self._believed = (now, self._clock.steady_s())

    def end(self) -> None:
        """What is due now wakes the loop."""
        with self.mine:
            self._next = None

    def drive(self, drivers: Mapping[str, ClusterDriver]) -> None:
        """The open drivers, but for clusters with an applier. Call it holding `mine`: old drivers may be closed."""
        self._drivers = {name: one for name, one in drivers.items() if not isinstance(one, PullCluster)}

    def keep(self, wanted: Wanted | None, facts: Facts, stamp: Stamp) -> None:
        """From now on these facts are carried out: they are committed, for the documents `wanted` (None: unknown)."""
        if wanted is None:
            self.rest()
        elif not (len(self._given) == 1 and self._given[0].facts is facts):
            self._hold(Held(wanted, facts, stamp))

    def waver(self, wanted: Wanted, facts: Facts) -> None:
        """From now on either these facts or the previous ones are committed."""
        if self._given:
            self._hold(self._given[0], Held(wanted, facts, self._given[0].stamp))

    def rest(self) -> None:
        """Nothing is carried out: another controller leads, or the committed facts are unknown."""
        self._hold()

    def _hold(self, *held: Held) -> None:
        with self.mine:
            self._given, self._held = held, tuple(_of_holders(one) for one in held)
            if held and not self._drivers:
                self.drive(self._open(held[0].wanted.manifests))

    def knowing(self, checks: Checks, live: Iterable[str]) -> dict[CheckKey, Busy | tuple[CheckResult, ...]]:
        """What the loop and the rounds know of checks on nodes of these leases. Call it while holding `mine`."""
        uids = set(live)
        known = {key: found for key, found in {**checks, **self._fresh}.items() if key[0] in uids}
        self._checks, self._fresh = dict(known), {}
        self.taken_back = {uid: when for uid, when in self.taken_back.items() if uid in uids}
        self.handed_over = frozenset(lease for lease in self.handed_over if lease[0] in uids)
        return known

    # -- the other thread's ----------------------------------------------------------------------------------

    def round(self, now: datetime) -> datetime | None:
        """Carries out what is due. Returns when to call again at the latest; None: during the next cycle."""
        self._mind(now)
        due = self._next
        if due is None or now < due:
            return due
        with self.mine:
            if self._next is None:
                return None
            self._next = self._after(self._round(now), now)
            return self._next

    def _mind(self, now: datetime) -> None:
        """Rests until the loop has run: others may have acted in a pause, and a clock that jumped may be wrong."""
        if self._clock is None:
            return
        steady_s, before_s = self._clock.steady_s(), self._seen_s
        self._seen_s = steady_s
        was, was_s = self._believed or (now, steady_s)
        off = abs(now - was - timedelta(seconds=steady_s - was_s))
        has_paused = steady_s - before_s > self._settings.pause.total_seconds()
        if has_paused or off > self._settings.clock_tolerance:
            self.rest()

    def _round(self, now: datetime) -> Answers:
        held = self._held
        if not held or now < held[0].facts.at or not self._may_act():
            return Answers()  # a clock behind the last commit is wrong
        views = observe(self._drivers, self._failures, now, held[0].wanted.manifests)
        planned = self._planned(held, views, now)
        if planned:
            log.info("carried out beside a long cycle actions=%d", len(planned))
        answers = apply(planned, self._drivers, self._failures, held[0].stamp, now)
        self._fresh = {**self._fresh, **answers.checks}
        seen = Seen(views, {}, Outcomes({}, self.handed_over))
        self.handed_over |= handed_over(held[0].facts.requests.values(), seen)
        self.taken_back = {**self.taken_back, **dict.fromkeys(_taken_back(planned, answers), now)}
        return answers

    def _planned(
        self, held: tuple[Held, ...], views: Mapping[str, ClusterView], now: datetime
    ) -> tuple[Action, ...]:
        first, *others = [self._due(one, views, now) for one in held]
        agreed = [set(other) for other in others]
        return tuple(action for action in first if all(action in other for other in agreed))

    def _due(self, held: Held, views: Mapping[str, ClusterView], now: datetime) -> tuple[Action, ...]:
        facts = at(held.facts, now)
        seen = Seen(views, {}, Outcomes({**self._checks, **self._fresh}, self.handed_over))
        found = actions(held.wanted, facts, seen, now, self._settings.start_tolerance)
        return tuple(action for action in found if _has_instant(action, facts.requests))

    def _after(self, answers: Answers, now: datetime) -> datetime:
        """When the next round is due: soon after one that acted, else at the next scheduled time."""
        if answers.done:
            return now + BUSY
        instants = (i for held in self._held for i in _instants(held))
        return min([now + LOOK, *(i for i in (*answers.until, *instants) if i > now)])


def _has_instant(action: Action, requests: Mapping[str, GPRStatus]) -> bool:
    """True for starts and ends; nodes that lost their lease wait for the loop, which reports them."""
    if action.do in {Do.REMOVE, Do.EVICT}:
        return True
    if action.do not in {Do.CHECK, Do.ADD}:
        return False
    status = requests.get(action.request)
    return status is not None and status.phase is Phase.PROVISIONING


def _taken_back(planned: Iterable[Action], answers: Answers) -> set[str]:
    """Leases, by uid, all of whose nodes were released."""
    asked = {action for action in planned if action.do is Do.REMOVE}
    begun = asked & set(answers.begun)
    open_ = {action.lease.uid for action in asked - begun if action.lease is not None}
    return {action.lease.uid for action in begun if action.lease is not None} - open_


def _instants(held: Held) -> Iterator[datetime]:
    for status in held.facts.requests.values():
        start, leave = status.estimated_start_time, leaves_at(status)
        if status.phase is Phase.PROVISIONING and start is not None:
            yield start
        elif status.phase is Phase.PROVISIONED and leave is not None and status.assignment is not None:
            cluster = held.wanted.clusters.get(status.assignment.cluster)
            yield from (leave,) if cluster is None else (leave - cluster.notice, leave)


def _of_holders(held: Held) -> Held:
    """Only requests that hold nodes: reading other records would use the loop's store."""
    requests = dict(holders(held.facts.requests))
    return replace(held, facts=replace(held.facts, requests=requests))
