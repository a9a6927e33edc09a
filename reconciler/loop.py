"""One cycle, from what main says to nodes in slices. The numbered steps are the design.

A decision is committed before it is carried out: actions are derived from committed facts alone. Whatever fails,
what is committed already is completed, strict ends happen, and the next cycle begins from what is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler import reports
from reconciler.apply import Answers, CheckKey, apply, observe
from reconciler.branch import Loaded, StatusBranch
from reconciler.clusters.port import Busy, CheckResult, ClusterDriver, ClusterView
from reconciler.decide import Decision, decide
from reconciler.desired import Desired
from reconciler.diff import Action, actions, drifted
from reconciler.events import Event, Told
from reconciler.facts import Facts, LeaseKey, Outcomes, Seen, Wanted
from reconciler.fold import fold
from reconciler.handover import handed_over
from reconciler.instants import next_wake
from reconciler.settings import Settings
from reconciler.status import render
from reconciler.store.cache import DocumentCache
from reconciler.store.port import Store
from reconciler.store.writer import Postponed
from reconciler.world import at, build_snapshot
from scheduler.snapshot import Snapshot
from schemas.cluster import ClusterSpec
from schemas.errors import Fault, UserError
from schemas.problems import Problem
from schemas.status import HOLDING, GPRStatus, Phase

log = logging.getLogger(__name__)

MOST_REFUSALS = 20
"""Problems of one change that are told one by one."""

MOST_UNSURE = 1000
"""Events of pushes without an answer that are kept until one of them turns out to have landed."""
RETRY = timedelta(seconds=1)
"""How soon a start is tried again after somebody else's push came first: whoever that was may be dead."""

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


class Reconciler:
    """One controller. `cycle` may be called at any time and as often as one likes."""

    def __init__(
        self,
        store: Store,
        cache: DocumentCache,
        drivers: Drivers,
        settings: Settings,
        writer: str,
        *,
        adopt: bool = False,
    ) -> None:
        self._store = store
        self._drivers = drivers
        self._settings = settings
        self._adopt = adopt
        self._desired = Desired(store, cache)
        self._branch = StatusBranch(store, settings, writer)
        self._reports = reports.Reports(store)
        self._checks: dict[CheckKey, Busy | tuple[CheckResult, ...]] = {}
        self._views: Mapping[str, ClusterView] = {}
        self._before_wanted: Wanted | None = None
        self._notes: list[Event] = []
        self._refusals: set[tuple[str, str, str]] = set()
        self._done: set[Action] = set()
        self._handed_over: frozenset[LeaseKey] = frozenset()
        self._filed: dict[str, datetime] = {}
        self._unsure: tuple[Event, ...] = ()  # told in pushes that may have landed
        self._landed: tuple[Event, ...] = ()  # told in a push that did, and here not yet
        self._term = 0
        self._started = False

    def cycle(self, now: datetime) -> Cycle:
        """Steps 1 to 9 of docs/architecture.md; raises only what no later cycle can mend by itself."""
        settings = self._settings
        reachable = self._fetch()  # 1
        if not self._lead(now, reachable):
            return self._reading(now)
        wanted = self._read_desired(reachable, now)  # 2
        seen = self._observe(wanted, now)  # 3
        committed = self._branch.facts
        assert committed is not None
        folded = fold(committed, wanted, seen, settings, now)  # 4
        before = self._before(committed)
        decision = decide(before, folded, wanted, seen, settings)  # 5
        events = (*self._notes, *decision.events)
        held = self._commit(decision, wanted, events, reachable=reachable)  # 6, 7
        if not self._branch.leading:
            return Cycle(
                now, False, now + RETRY
            )  # to follow whoever leads, or to put right what a stranger did
        facts = self._branch.facts
        assert facts is not None
        answers = self._carry_out(wanted, at(facts, now), seen, now)  # 8
        told = self._tell(events if held is None else ())  # 9
        acted = (held is None or not reachable) and bool(set(answers.done) - self._done)
        self._done = set(answers.done)
        wake = now if acted else next_wake((facts, wanted), decision, answers, settings, held)
        return Cycle(now, self._branch.leading, wake, told, facts, bool(events) or acted)

    def _fetch(self) -> bool:
        """Everything from the remote; False when it cannot be reached, and we go on with what is known."""
        settings = self._settings
        try:
            self._store.fetch([settings.main_branch, settings.status_branch, reports.PATTERN])
        except Fault as fault:
            log.warning(
                "repository not fetched reason=%s; committed starts and ends still happen", fault.reason
            )
            return False
        return True

    def _lead(self, now: datetime, reachable: bool) -> bool:
        """True while this process may write; takes the branch at its first cycle, and when ends are overdue."""
        if self._started and self._branch.check():
            if not self._branch.is_current:
                self._resume(self._branch.reload(), now)
            return True
        if not reachable or (self._started and self._branch.superseded and not self._overdue(now)):
            return False
        self._refuse_foreign_start()
        loaded = self._branch.take_over(now)
        if loaded is not None:
            self._resume(loaded, now)
        return loaded is not None

    def _reading(self, now: datetime) -> Cycle:
        """Somebody else leads, or nobody can be asked; a new process that was only too slow asks again at once."""
        raced = not self._started and self._branch.superseded
        return Cycle(now, False, now + (RETRY if raced else self._settings.poll))

    def _resume(self, loaded: Loaded, now: datetime) -> None:
        """Go on from what was committed: after a take-over, or when a push of ours landed that was given up."""
        self._landed = tuple(event for event in self._unsure if self._branch.has_told(event))
        self._notes = [event for event in self._notes if event not in self._landed]
        self._unsure = ()
        if self._branch.stamp.term != self._term:
            self._term, self._started, self._checks = self._branch.stamp.term, True, {}
            text = f"a controller took over as term {self._term}"
            self._notes = [Event(now, Told.TAKEN_OVER, text)]
            self._notes += [Event(now, Told.ALARM, sentence) for sentence in self._branch.alarms]
        self._desired.restore(loaded.accepted)
        self._before_wanted = None
        if loaded.facts.intent:
            self._recall(loaded.facts)

    def _refuse_foreign_start(self) -> None:
        if self._adopt or self._branch.exists():
            return
        main = self._store.tips().get(self._settings.main_branch)
        if main is None:
            return
        self._desired.update(main)
        if self._desired.has_requests():
            raise UserError(
                "main has requests but there is no status branch: a status that was lost would be planned anew; "
                "if this is a new repository, run `egs-reconciler adopt`",
                "NotAdopted",
            )

    def _recall(self, facts: Facts) -> None:
        """The documents that the committed facts answered, so that causes are judged against them."""
        try:
            self._desired.update(facts.intent)
            self._before_wanted = self._desired.wanted(facts)
        except (Fault, UserError) as error:
            log.info("last intent not recalled reason=%s", error.reason)

    def _overdue(self, now: datetime) -> bool:
        """A superseded controller takes over when a committed start or end is late."""
        late = now - self._settings.overdue
        due = (next_due(status) for status in self._branch.read(now).facts.requests.values())
        return any(at is not None and at <= late for at in due)

    def _read_desired(self, reachable: bool, now: datetime) -> Wanted:
        main = self._store.tips().get(self._settings.main_branch)
        facts = self._branch.facts
        assert facts is not None
        if main is not None and reachable:
            known = set(self._desired.problems)
            self._desired.update(main)
            self._notes += refusals(self._desired.problems, known, now)
        return self._desired.wanted(facts)

    def _observe(self, wanted: Wanted, now: datetime) -> Seen:
        views = observe(self._drivers(wanted.clusters), now)
        live = {s.uid for s in self._live()}
        self._checks = {key: value for key, value in self._checks.items() if key[0] in live}
        found = self._reports.read(wanted.clusters)
        self._handed_over = handed_over(self._live(), Seen(views, found, Outcomes({}, self._handed_over)))
        known = {} if self._branch.facts is None else self._branch.facts.requests
        self._filed = {key: self._filed.get(key, now) for key in wanted.filed if key not in known}
        return Seen(views, found, Outcomes(self._checks, self._handed_over), self._filed)

    def _live(self) -> list[GPRStatus]:
        facts = self._branch.facts
        return [] if facts is None else [s for s in facts.requests.values() if s.phase in HOLDING]

    def _before(self, committed: Facts) -> Snapshot | None:
        if self._before_wanted is None:
            return None
        return build_snapshot(self._before_wanted, committed, None, frozenset())

    def _commit(
        self, decision: Decision, wanted: Wanted, events: tuple[Event, ...], *, reachable: bool
    ) -> datetime | None:
        """Push the decision; None when it stands, else when to try again. Nothing new is carried out until then."""
        now = decision.facts.at
        if not reachable:
            return now + self._settings.poll
        files = render(decision.facts, wanted, decision.plan.order, self._desired.problems)
        files |= self._desired.accepted_files()
        summary = summarised(events)
        result = self._branch.write(decision.facts, files, events, summary, urgent=decision.urgent)
        if result.landed:
            self._before_wanted, self._notes, self._unsure = wanted, [], ()
            return None
        if isinstance(result, Postponed):
            return result.until
        self._unsure = tuple(dict.fromkeys((*self._unsure, *events)))[-MOST_UNSURE:]
        return now

    def _carry_out(self, wanted: Wanted, facts: Facts, seen: Seen, now: datetime) -> Answers:
        planned = actions(wanted, facts, seen, now)
        for action in drifted(planned, self._views):
            text = f"{action.cluster}/{action.node} had lost its lease of {action.request}; given back"
            self._notes.append(Event(now, Told.DRIFT, text, action.request, action.cluster, action.node))
        answers = apply(planned, self._drivers(wanted.clusters), self._branch.stamp, now)
        self._checks |= answers.checks
        self._views = seen.views
        for action, refused in answers.refused:
            token = (action.cluster, action.node, refused.reason)
            if token not in self._refusals:
                self._refusals.add(token)
                text = (
                    f"{action.cluster}: {action.do.name.lower()} {action.node} was refused: {refused.message}"
                )
                self._notes.append(
                    Event(now, Told.ACTION_REFUSED, text, action.request, action.cluster, action.node)
                )
        return answers

    def _tell(self, news: tuple[Event, ...]) -> tuple[Event, ...]:
        events, self._landed = (*self._landed, *news), ()
        for event in events:
            level = logging.WARNING if event.warning else logging.INFO
            log.log(
                level,
                "event reason=%s request=%s cluster=%s node=%s message=%s",
                event.reason,
                event.request,
                event.cluster,
                event.node,
                event.message,
            )
        return events


def next_due(status: GPRStatus) -> datetime | None:
    """When a leader that lives would commit the start, or the end; how long nodes drain is the clusters' case."""
    if status.phase is Phase.PROVISIONED:
        return status.end_time
    return status.estimated_start_time if status.phase in {Phase.QUEUED, Phase.PROVISIONING} else None


def refusals(problems: Iterable[Problem], known: Collection[Problem], now: datetime) -> list[Event]:
    """One event for each error that main did not have before; a flood of them is cut short."""
    new = [p for p in problems if p.severity == "error" and p not in known]
    told = [
        Event(now, Told.MANIFEST_REFUSED, f"{p.file}:{p.line}: {p.message}; {p.fix}")
        for p in new[:MOST_REFUSALS]
    ]
    if len(new) > MOST_REFUSALS:
        text = f"{len(new) - MOST_REFUSALS} more problems; problems.yaml lists them"
        told.append(Event(now, Told.MANIFEST_REFUSED, text))
    return told


def summarised(events: Collection[Event]) -> str:
    """A commit's subject: what happened, the controller's own arrival last."""
    texts = [e.message for e in sorted(events, key=lambda e: e.reason is Told.TAKEN_OVER)]
    if not texts:
        return "Estimates and inventory"
    more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
    return texts[0].splitlines()[0][:160] + more
