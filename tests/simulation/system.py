"""The whole system of one story: its processes, its clusters, its people, and the auditor that watches them."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from reconciler.clusters.simulated.simulated_world import World
from reconciler.cycle import Cycle
from reconciler.settings import Settings
from reconciler.status.branch import StatusBranch
from reconciler.store.store_port import Outcome
from schemas.documents.cluster import ClusterSpec
from tests.simulation.agents import Agents
from tests.simulation.auditor import due
from tests.simulation.auditor.auditor import Auditor, shown_of
from tests.simulation.clusters import Cluster
from tests.simulation.controllers import ApplierProcess, Controller
from tests.simulation.election import Election
from tests.simulation.faults import Faults
from tests.simulation.network import Memory, Remote, Send
from tests.simulation.people import People
from tests.simulation.process import Process
from tests.simulation.story import Story
from tests.simulation.timeline import START, Timeline
from tests.simulation.troubles import Troubles

STATUS = "egs/status"
LOOK = timedelta(seconds=60)
"""How often the auditor looks at what is due."""
SETTLING = timedelta(minutes=15)
"""docs/guides/high-availability.md: polls, take-overs and repairs after the last fault."""
REST = timedelta(hours=14)
"""Longest time until everything is over after the last act; then what still waits was forgotten."""


@dataclass(slots=True)
class Outcomes:
    """What one run showed."""

    broken: list[str]
    digest: str
    count: Counter[str]
    until: datetime
    journal: list[str] = field(default_factory=list)

    @property
    def hours(self) -> float:
        """Simulated."""
        return (self.until - START) / timedelta(hours=1)


class System:
    """One run of one story. Nothing in it depends on the machine, its clock, or the order of sets."""

    def __init__(self, story: Story, remote: Remote | None = None) -> None:
        self.story = story
        self.timeline, self.troubles = Timeline(), Troubles()
        self.remote: Remote = Memory() if remote is None else remote
        given = story.given
        self.settings = Settings(
            repo="memory",
            state=Path("unused"),
            poll=timedelta(seconds=given.poll),
            pushes_per_minute=given.budget,
        )
        self.clusters: dict[str, Cluster] = {}
        self.election = Election(self.timeline) if given.elected else None
        self.auditor = Auditor(self.remote, self, timedelta(seconds=given.poll))
        self.processes: list[Process] = []
        self.remote_away = self.news_lost = 0
        self.cut_off: Counter[str] = Counter()
        self.count: Counter[str] = Counter()
        self.pushes_in_a_minute: dict[str, int] = {}
        """The most, by process."""
        self._minute: Counter[str] = Counter()
        self._digest, self.journal = sha256(), list[str]()
        self._wrong: dict[str, Process] = {}  # clocks that are, or were, wrong
        self._leases: dict[str, dict[str, Any]] = {}
        self._people, self._faults = People(self), Faults(self)
        self.is_shut = False

    # -- the run ---------------------------------------------------------------------------------------------

    def run(self) -> Outcomes:
        """The whole story, and the time until everything is over."""
        self._begin()
        for happening in self.story.people:
            self._at(happening.at, lambda h=happening: self._person(h))
        for happening in self.story.faults:
            self._at(happening.at, lambda h=happening: self._fault(h))
        self._look()
        last = START + timedelta(hours=self.story.hours)
        self.timeline.run(last)
        self._let_be()
        until, calm = last + REST, last
        while self.timeline.now < until and self.timeline.now - calm < SETTLING:
            self.timeline.run(self.timeline.now + timedelta(minutes=5))
            calm = calm if self._is_over() else self.timeline.now
        self.auditor.rested(self.timeline.now)
        self._read_back()
        self.count["commit"] = self.auditor.commits
        return Outcomes(
            self.auditor.broken, self._digest.hexdigest(), self.count, self.timeline.now, self.journal
        )

    def _begin(self) -> None:
        given = self.story.given
        self._people.begin()
        for number in range(given.controllers):
            self.processes.append(Controller(self, f"controller-{number}"))
        for name in given.pulled:
            self.processes.append(ApplierProcess(self, name))
        for number, process in enumerate(list(self.processes)):
            self.timeline.after(number * 0.5, process.start)
        if given.agents:
            self.timeline.after(90, self._agents)

    def _agents(self) -> None:
        for name in sorted(self.clusters):
            agents = Agents(self, self.clusters[name])
            self.processes.append(agents)
            agents.start()

    def _at(self, minutes: float, act: Callable[[], object]) -> None:
        self.timeline.at(START + timedelta(minutes=minutes), act)

    def _person(self, happening: Any) -> None:
        self._note(f"person {happening.do}")
        self._people.act(happening)

    def _fault(self, happening: Any) -> None:
        if not self.clusters:
            return
        self._note(f"fault {happening.do} {happening.how}")
        self._faults.act(happening)

    def _let_be(self) -> None:
        """No more faults, those that wait to spring included."""
        for process in self.processes:
            process.traps, process.fates = [], []

    def _look(self) -> None:
        self.auditor.looked(self.timeline.now)
        self.timeline.after(LOOK.total_seconds(), self._look)

    def _read_back(self) -> None:
        """A stranger reads from the branch what its leader goes by."""
        tip = self.remote.tip(STATUS)
        leads = [
            p.last for p in self.processes if isinstance(p, Controller) and p.leads and p.last is not None
        ]
        if len(leads) != 1 or tip is None:
            return
        store = self.remote.store(self._people)
        store.fetch([STATUS])
        read = StatusBranch(store, self.settings, "reader").read(self.timeline.now).facts.requests
        for key, status in leads[0].items():
            if read.get(key) != status:
                self.auditor.broken.append(f"{key} is read otherwise than its leader knows it")

    def _is_over(self) -> bool:
        page = self.auditor.page
        return page is not None and all(due.is_at_rest(status) for status in page.requests.values())

    # -- what the auditor is allowed to know -----------------------------------------------------------------

    def delays(self, since: datetime, now: datetime) -> timedelta:
        """See `auditor.Allowances`."""
        return self.troubles.delays(since, now)

    def stood_since(self, now: datetime) -> datetime:
        """See `auditor.Allowances`."""
        return self.troubles.stood_since(now)

    def doubt(self, now: datetime) -> timedelta:
        """See `auditor.Allowances`: by up to a minute controllers trust each other's clocks."""
        return timedelta(minutes=1) if self._wrong else timedelta()

    def clock_wrong(self, process: Process) -> None:
        """Its clock goes wrong."""
        self._wrong[process.name] = process

    # -- what processes meet ---------------------------------------------------------------------------------

    @property
    def is_remote_away(self) -> bool:
        return self.remote_away > 0

    def is_away(self, process: Process) -> bool:
        """The remote does not answer that process."""
        return self.remote_away > 0 or self.cut_off[process.name] > 0

    def push(self, whose: str, branch: str, new: str, send: Send) -> Outcome:
        """A push arrives at the remote; everyone who waits for it is told, unless news are lost."""
        before = self.remote.tip(branch)
        outcome = send()
        if outcome is Outcome.COMMITTED and new != before:
            self._note(f"{whose} pushed {branch} {new}")
            self.count["push"] += 1
            self._counted(whose)
            if branch == "main":
                self.auditor.pushed(new, self.timeline.now)
            if branch == STATUS:
                self.auditor.committed(new, self.timeline.now)
            if not self.news_lost:
                self._tell(branch)
        return outcome

    def _counted(self, whose: str) -> None:
        self._minute[whose] += 1
        self.timeline.after(60, lambda: self._minute.subtract([whose]))
        self.pushes_in_a_minute[whose] = max(self.pushes_in_a_minute.get(whose, 0), self._minute[whose])

    def _tell(self, branch: str) -> None:
        for process in self.processes:
            if isinstance(process, Controller if branch != STATUS else ApplierProcess) or (
                branch == "main" and isinstance(process, ApplierProcess)
            ):
                process.wake()

    def damage(self, back: int | None) -> None:
        """A person deletes the status branch, or sets it back by this number of commits."""
        tip = self.remote.tip(STATUS)
        if tip is None:
            return
        found = None if back is None else tip
        for _ in range(back or 0):
            found = None if found is None else self.remote.parent(found)
        self.remote.point(STATUS, found)
        self.troubles.begin("remote", "", self.timeline.now).until = self.timeline.now + SETTLING
        self.auditor.damaged(found, self.timeline.now)

    def cluster(self, name: str, spec: ClusterSpec) -> Cluster:
        """The real one, made when it is first looked at."""
        if name not in self.clusters:
            self.clusters[name] = Cluster(name, spec, self._shown)
        return self.clusters[name]

    def _shown(self, name: str, world: World) -> None:
        leases = {node: (held.lease, held.stamp) for node, held in world.nodes.items()}
        if leases == self._leases.get(name):
            return
        self._leases[name] = leases
        shown = shown_of(name, self.timeline.now, world.nodes)
        self._note(f"{name} {sorted((node, lease.uid) for node, lease in shown.leases.items())}")
        self.auditor.changed(shown)

    # -- what happened ---------------------------------------------------------------------------------------

    def acted(self, process: Process, cycle: Cycle) -> None:
        """A cycle is over."""
        for event in cycle.events:
            self._note(f"{process.name} {event.reason} {event.request} {event.message}")

    def looked(self, process: Process) -> None:
        """A process has done what it wanted."""

    def note(self, process: Process, text: str) -> None:
        """Something befell a process."""
        self._note(f"{process.name} {text}")

    def broken_by(self, process: Process, error: Exception) -> None:
        """A cycle raised what it must not."""
        where = traceback.extract_tb(error.__traceback__)[-1]
        sentence = (
            f"{process.name} broke with {type(error).__name__}: {error} in {where.name}, line {where.lineno}"
        )
        self.auditor.broken.append(f"{self.timeline.now:%d %H:%M:%S} {sentence}")
        self.journal.append("".join(traceback.format_exception(error)))

    def _note(self, text: str) -> None:
        line = f"{self.timeline.now:%d %H:%M:%S.%f} {text}"
        self._digest.update(line.encode())
        self.journal.append(line)
