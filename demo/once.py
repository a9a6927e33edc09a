"""`egs demo --once`: the story from the first merge to the last clean node, in simulated time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from demo.audit import Audit
from demo.story import STORY, Step
from demo.system import System
from reconciler.cycle import Cycle
from reconciler.loop import Reconciler
from reconciler.model.cluster_port import Answer, ClusterDriver, LeaseRef, Stamp
from reconciler.model.events import EventReason
from reconciler.settings import Settings
from schemas.documents.cluster import ClusterSpec
from schemas.reading.units import parse_instant
from schemas.status.gpr_status import TERMINAL

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
"""A Monday morning; any instant would do."""
AGENTS_EVERY = timedelta(minutes=5)
POLL = timedelta(minutes=10)
MOST = timedelta(hours=24)
"""Upper bound; the story ends well before."""
QUIET = frozenset({str(EventReason.CHECKS_PASSED)})
"""Events that would only lengthen the printed story."""


class Killed(BaseException):
    """The controller's process was killed; no handler in it may catch this."""


class FatalDrivers:
    """Drivers, one of which kills the controller at its second hand-over, after the decision was committed."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.armed = False

    def __call__(self, specs: Mapping[str, ClusterSpec]) -> Mapping[str, ClusterDriver]:
        """The system's drivers, with the trap set in each while armed."""
        return {name: self._trapped(driver) for name, driver in self._system.drivers(specs).items()}

    def _trapped(self, driver: ClusterDriver) -> ClusterDriver:
        if not self.armed:
            return driver
        trapped = copy(driver)

        def add(node: str, lease: LeaseRef, stamp: Stamp, now: datetime) -> Answer:
            driver.add(node, lease, stamp, now)
            self.armed = False
            raise Killed

        trapped.add = add  # type: ignore[method-assign]
        return trapped


@dataclass(slots=True)
class Telling:
    """What happened, in order."""

    rows: list[tuple[datetime, str, str]] = field(default_factory=list)

    def person(self, at: datetime, text: str) -> None:
        """Record a person's action."""
        self.rows.append((at, "person", text))

    def answer(self, at: datetime, lines: Iterable[str]) -> None:
        """Record what a person was answered."""
        self.rows += ((at, "answer", line) for line in lines)

    def machine(self, events: Iterable[Mapping[str, str]]) -> None:
        """Insert the committed events between people's actions; at the same instant people come first."""
        told = [
            (parse_instant(e["at"]), e["reason"], e["message"]) for e in events if e["reason"] not in QUIET
        ]
        self.rows = sorted([*self.rows, *told], key=lambda row: row[0])


def play(root: Path, console: Console) -> bool:
    """Play the story in `root`, print it, and return whether every promise was kept."""
    run = Run(
        System(root, Settings(repo=str(root / "fleet.git"), state=root, poll=POLL, pushes_per_minute=None))
    )
    with console.status("nine hours in a few seconds …"):
        run.play()
    console.print(_story_table(run.telling))
    console.print(_requests_table(run.audit))
    console.print(f"repository: {run.system.repository} (branches main, egs/status and one for every agent)")
    for sentence in run.audit.broken:
        console.print(f"[red]broken:[/red] {sentence}")
    if not run.audit.broken:
        console.print(
            "[green]Every promise was kept:[/green] each start on time or moved for a named cause, every "
            "end strict, no node and no slice in two requests at once."
        )
    return not run.audit.broken


class Run:
    """One playing of the story."""

    def __init__(self, system: System, story: tuple[Step, ...] = STORY) -> None:
        self.system = system
        self.telling = Telling()
        self.audit = Audit()
        self.now = START
        self._story = list(story)
        self._trap = FatalDrivers(system)
        self._controller: Reconciler | None = None
        self._agents_next = START

    def play(self) -> None:
        """From the first merge until the last request is over."""
        self.system.create(self.now)
        self.telling.person(self.now, "Ada merges the fleet's manifests and three teams' requests")
        self._start()
        while self.now < START + MOST:
            self._act()
            cycle = self._cycle()
            if self._is_over(cycle):
                break
            self.now = max(self.now, min([cycle.wake, self._agents_next, *self._next_step()]))
        self.audit.finish()
        self.telling.machine(self.system.events())
        self.system.close()

    def _next_step(self) -> list[datetime]:
        return [_when(self._story[0])] if self._story else []

    def _act(self) -> None:
        if self.now >= self._agents_next:
            self._agents_next = self.now + AGENTS_EVERY
            self.system.watch_nodes(self.now)
        while self._story and self.now >= _when(self._story[0]):
            step = self._story.pop(0)
            self.telling.person(self.now, step.text)
            step.act(self.system, self.now)
            for ask in step.asks:
                self.telling.answer(self.now, ask(self.system, self.now))
            self._trap.armed = step.kills

    def _start(self) -> None:
        self._controller = self.system.start_controller(self._trap)

    def _cycle(self) -> Cycle:
        assert self._controller is not None
        try:
            cycle = self._controller.cycle(self.now)
        except Killed:
            self.telling.person(self.now, "kill -9: the controller dies between two nodes of a hand-over")
            self.now += timedelta(seconds=5)
            self._start()
            return self._cycle()
        if cycle.facts is not None:
            self.audit.see(cycle.facts.requests)
        return cycle

    def _is_over(self, cycle: Cycle) -> bool:
        if self._story or cycle.facts is None or cycle.wake <= self.now:
            return False
        return all(status.phase in TERMINAL for status in cycle.facts.requests.values())


def _when(step: Step) -> datetime:
    return START + timedelta(minutes=step.minutes)


def _story_table(telling: Telling) -> Table:
    table = Table(title="What happened", title_justify="left", box=None, pad_edge=False)
    table.add_column("time", no_wrap=True)
    table.add_column("who", no_wrap=True)
    table.add_column("what", overflow="fold")
    for at, who, text in telling.rows:
        style = "bold" if who == "person" else None
        table.add_row(f"{at:%H:%M:%S}", who, text, style=style)
    return table


def _requests_table(audit: Audit) -> Table:
    table = Table(title="Requests", title_justify="left", box=None, pad_edge=False)
    for name in ("request", "first promised", "started", "ended", "phase", "moved later because of", "cost"):
        table.add_column(name, overflow="fold")
    for key, history in sorted(audit.requests.items()):
        status = history.last
        assert status is not None
        causes = ", ".join(str(cause) for slip in status.slips for cause in slip.causes)
        cost = "" if status.cost is None else f"{status.cost.amount:.2f} {status.cost.currency}"
        times = [_clock(t) for t in (history.first_promise, status.start_time, status.end_time)]
        table.add_row(key, *times, str(status.phase), causes, cost)
    return table


def _clock(at: datetime | None) -> str:
    return "" if at is None else f"{at:%H:%M:%S}"
