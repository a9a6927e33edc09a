"""One simulated process: it wakes, works, stands still, dies and comes back; each of its writes may be its last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from reconciler.model import backoff
from reconciler.store.store_port import Outcome
from schemas.errors import Fault, UserError
from tests.simulation.clocks import MachineClock
from tests.simulation.network import Send

if TYPE_CHECKING:
    from tests.simulation.system import System

T = TypeVar("T")

WEBHOOK_S = 1.0
"""How long the news of a push takes to its readers; also the least pause between two early cycles."""


class Killed(BaseException):
    """The process is gone; nothing in it may catch this."""


@dataclass(slots=True)
class Trap:
    """What befalls a process at its n-th write from now."""

    writes: int
    how: str  # before, after: it dies; pause: it stands still first
    seconds: float  # how long it is gone, or stands still
    keeps: bool = True  # whether its folder survives


@dataclass(slots=True)
class Fate:
    """What becomes of the next pushes."""

    how: str  # refuse, lose, delay, hide
    pushes: int
    seconds: float = 0.0


class Process(ABC):
    """`step` is one cycle of it and gives when, by its own clock, it wants the next one."""

    def __init__(self, system: System, name: str) -> None:
        self.system, self.name = system, name
        self.clock = MachineClock(system.timeline)
        self.lives = 0
        self.is_up = self.is_busy = False
        self.is_paused = False  # stands still in the middle of a cycle
        self.traps: list[Trap] = []
        self.fates: list[Fate] = []
        self.still_until: datetime | None = None  # frozen until then
        self._doom: Trap | None = None  # killed while it stood still
        self._turn = 0  # of the next wake-up; earlier ones are void
        self._due: datetime | None = None
        self._is_woken = False
        self._pause: timedelta | None = None

    # -- what a kind of process defines ----------------------------------------------------------------------

    @abstractmethod
    def begin(self, *, keeps: bool) -> None:
        """A new life begins; `keeps`: with the folder of the last one."""

    @abstractmethod
    def step(self) -> datetime:
        """One cycle."""

    def beside(self) -> None:  # noqa: B027 - most have no other thread
        """What its other thread does while a call takes long."""

    # -- life ------------------------------------------------------------------------------------------------

    def start(self, *, keeps: bool = True) -> None:
        """It is started, and wakes at once."""
        self.lives += 1
        self.is_up, self._doom, self._pause, self._is_woken = True, None, None, False
        self.begin(keeps=keeps)
        self._plan(self.system.timeline.now)

    def die(self, trap: Trap) -> None:
        """It is killed now, or as soon as it stops standing still; it is started again after a while."""
        if self.is_busy:
            self._doom = trap
            return
        timeline = self.system.timeline
        self.is_up, self.still_until = False, None
        self._turn += 1
        self.traps, self.fates = [], []
        self.system.count["kill"] += 1
        trouble = self.system.troubles.begin("down", self.name, timeline.now)
        trouble.until = timeline.now + timedelta(seconds=trap.seconds)
        timeline.after(trap.seconds, lambda: self.start(keeps=trap.keeps))

    def freeze(self, seconds: float) -> None:
        """It does not run for that long, wherever it is."""
        timeline = self.system.timeline
        until = timeline.now + timedelta(seconds=seconds)
        self.still_until = max(until, self.still_until or until)
        trouble = self.system.troubles.begin("pause", self.name, timeline.now)
        trouble.until = until

    # -- waking ----------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """News: a cycle soon."""
        self._is_woken = True
        if self.is_up and not self.is_busy:
            soon = self.system.timeline.now + timedelta(seconds=WEBHOOK_S)
            if self._due is None or soon < self._due:
                self._plan(soon)

    def _plan(self, when: datetime) -> None:
        self._turn += 1
        turn = self._turn
        self._due = max(when, self.system.timeline.now)
        self.system.timeline.at(self._due, lambda: self._tick(turn))

    def _tick(self, turn: int) -> None:
        timeline = self.system.timeline
        if turn != self._turn or not self.is_up or self.is_busy:
            return
        if self.still_until is not None and self.still_until > timeline.now:
            self._plan(self.still_until)
            return
        self.is_busy, self._is_woken, self._due = True, False, None
        try:
            when = self._stepped()
        except Killed:
            self.is_busy = False
            assert self._doom is not None
            self.die(self._doom)
            return
        finally:
            self.is_busy = False
        self.system.looked(self)
        soon = timeline.now + timedelta(seconds=WEBHOOK_S)
        self._plan(min(when, soon) if self._is_woken else when)

    def _stepped(self) -> datetime:
        """One cycle, and when the next one is due by the true time; as `reconciler.processes.wake` does it."""
        self.system.count["cycle"] += 1
        try:
            wake = self.step()
        except (Fault, UserError) as error:
            if self._doom is not None:
                raise Killed from None
            self.system.note(self, f"refused {error.reason}")
            self._pause = backoff.CYCLES.longer(self._pause)
            return self.system.timeline.now + self._pause
        except Exception as error:
            self.system.broken_by(self, error)
            self._pause = backoff.CYCLES.longer(self._pause)
            return self.system.timeline.now + self._pause
        if self._doom is not None:
            raise Killed
        self._pause = None
        return self.clock.true_time(wake)

    # -- its writes ------------------------------------------------------------------------------------------

    def written(self, kind: str, call: Callable[[], T]) -> T:
        """Makes a call that writes, at which the process may stand still or die."""
        self.system.count["write"] += 1
        if self._doom is not None:
            raise Killed
        trap = self._sprung()
        if trap is None:
            return call()
        if trap.how == "pause":
            self.system.count["pause"] += 1
            self.stand_still(trap.seconds, "pause")
            return call()
        if trap.how == "after":
            call()
        self._doom = trap
        self.system.note(self, f"killed {trap.how} {kind}")
        raise Killed

    def _sprung(self) -> Trap | None:
        for trap in self.traps:
            trap.writes -= 1
        found = next((trap for trap in self.traps if trap.writes <= 0), None)
        if found is not None:
            self.traps.remove(found)
        return found

    def stand_still(self, seconds: float, kind: str) -> None:
        """The others go on; with `slow` it is a call that takes long, and its other thread goes on too."""
        timeline = self.system.timeline
        until = timeline.now + timedelta(seconds=seconds)
        with self._troubled(kind):
            while kind == "slow" and timeline.now + timedelta(seconds=1) < until and self._doom is None:
                timeline.run(timeline.now + timedelta(seconds=1))
                self._beside()
            timeline.run(max(until, timeline.now))
            if self.still_until is not None and self.still_until > timeline.now:
                timeline.run(self.still_until)
        if self._doom is not None:
            raise Killed

    @contextmanager
    def _troubled(self, kind: str) -> Iterator[None]:
        trouble = self.system.troubles.begin(kind, self.name, self.system.timeline.now)
        self.is_paused = kind == "pause"
        try:
            yield
        finally:
            self.is_paused = False
            trouble.until = self.system.timeline.now

    def _beside(self) -> None:
        try:
            self.beside()
        except Killed:
            assert self._doom is not None

    # -- the remote ------------------------------------------------------------------------------------------

    def fetches(self) -> bool:
        """See `network.Guard`."""
        return not self.system.is_away(self)

    def pushes(self, branch: str, new: str, send: Send) -> Outcome:
        """See `network.Guard`."""
        return self.written("push", lambda: self._pushed(branch, new, send))

    def _pushed(self, branch: str, new: str, send: Send) -> Outcome:
        if self.system.is_away(self):
            return Outcome.UNKNOWN
        fate = self.fates[0] if self.fates else None
        if fate is None:
            return self.system.push(self.name, branch, new, send)
        fate.pushes -= 1
        if fate.pushes <= 0:
            self.fates.pop(0)
        self.system.count["fate"] += 1
        if fate.how == "refuse":
            return Outcome.REFUSED
        if fate.how == "delay":
            self.system.timeline.after(fate.seconds, lambda: self.system.push(self.name, branch, new, send))
        if fate.how == "hide":
            self.system.push(self.name, branch, new, send)
        return Outcome.UNKNOWN
