"""Wakes the loop at the scheduled times. APScheduler keeps time; it decides nothing.

A late wake-up is used whatever its age (no misfire grace), several late ones count as one, and there is never
more than one cycle at a time. Any thread may `wake` the loop early, any number of times.

APScheduler sleeps by the machine's clock. If that is set back meanwhile, a monotonic clock wakes the loop: an
hour back must not mean an hour of sleep.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Event, Lock, Thread
from typing import Protocol

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger

from reconciler.clock import Clock, monotonic_s, wall
from reconciler.cycle import Cycle
from reconciler.model import backoff
from reconciler.processes.compiled_engine import Warming
from schemas.errors import Fault, UserError
from schemas.reading.collector import heap_settled

log = logging.getLogger(__name__)

FATAL = frozenset({"NotAdopted"})
"""Reasons for which a retry cannot help."""
WAKE_GAP = timedelta(seconds=1)
"""Real time between the beginnings of two early cycles: a flood of wake-ups costs one cycle a second."""
STIR = timedelta(seconds=5)
"""Delay after a change in a cluster; scheduled actions are not delayed."""
MOST_TICKS = 100
CARRY, LEAST_CARRY = timedelta(seconds=0.5), timedelta(seconds=0.05)
"""Real time between two checks for actions due beside a cycle."""
PATIENCE_S = 8.0
"""Real seconds that a running cycle gets to end: service managers often kill a process after ten."""
OVERSLEPT_S = 1.0
"""How late a wake-up counts as missed, and how often that is checked."""


class Cycling(Protocol):
    """What is woken."""

    def cycle(self, now: datetime) -> Cycle:
        """One complete cycle."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempted cycle."""

    took_s: float
    cycle: Cycle | None = None
    reason: str = ""  # why there is no result


@dataclass(frozen=True, slots=True)
class Progress:
    """Whether the loop runs, in real time. Replaced as a whole, so that any thread may read it."""

    busy_since: datetime | None = None
    due: datetime | None = None  # when it begins next, while it is idle; None: not started, or ended
    tried: int = 0
    failing: str = ""  # why the last cycle failed; empty: it succeeded
    leading: bool | None = None  # of the last cycle that read the repository; None: none yet


class Waking:
    """Runs one controller's cycles until stopped. `speed` is how much faster than real time `clock` runs.

    `watch` gets each successful cycle, `tried` every one; neither may take long or raise.
    """

    def __init__(  # noqa: PLR0913 - optional arguments are keyword-only
        self,
        reconciler: Cycling,
        clock: Clock,
        speed: float = 1.0,
        watch: Callable[[Cycle], None] = lambda _: None,
        *,
        tried: Callable[[Attempt], None] = lambda _: None,
        fatal: Collection[str] = FATAL,
        name: str = "loop",
        beside: Callable[[datetime], datetime | None] = lambda _: None,
    ) -> None:
        """`beside` is called in a thread of its own, also during a cycle; it returns when to call it again."""
        self._reconciler = reconciler
        self._clock = clock
        self._speed = speed
        self._watch = watch
        self._tried = tried
        self._fatal = fatal
        self._beside, self._stopped = beside, Event()
        self._carrying = Thread(target=self._carry_on, name=f"{name}-hands", daemon=True)
        self._pause: timedelta | None = None
        threads = ThreadPoolExecutor(pool_kwargs={"thread_name_prefix": name})  # for the log
        self._scheduler = BackgroundScheduler(timezone="UTC", executors={"default": threads})
        self._cycling = Lock()
        self._planning = Lock()
        self._woken = self._stirred = self._is_settled = False
        self._warming = Warming()
        self._not_before_s = self._due_s = monotonic_s()  # the next early cycle; the next scheduled one
        self.progress = Progress()
        self.failed: UserError | None = None
        self.ended = Event()

    def start(self) -> None:
        self._scheduler.start()
        self._carrying.start()
        self._wake_after(timedelta())
        Thread(target=self._watch_sleep, name="sleep", daemon=True).start()

    def wake(self) -> None:
        """Runs a cycle at once, or right after the running one; several calls count as one."""
        with self._planning:
            self._woken = True
            due = self.progress.due
            if due is not None and due > (soon := self._soon()):
                self._plan(soon)

    def stir(self) -> None:
        """Something changed in a cluster: looks soon, not at once, because pods change all day."""
        with self._planning:
            self._stirred = True
            due, at = self.progress.due, wall() + STIR
            if due is not None and due > at:
                self._plan(at)

    def stop(self, within_s: float = PATIENCE_S) -> bool:
        """Stops after the running cycle, if any. False: it is still running after that time.

        The process may end then: what a cycle has not committed is decided again, and what it has committed
        is carried out by the next process.
        """
        self.ended.set()
        with self._planning:
            self._scheduler.remove_all_jobs()  # its thread would fail on a job due during the shutdown
        # Waiting for jobs during shutdown would hold the lock that the last cycle needs to schedule its next.
        self._scheduler.shutdown(wait=False)
        has_ended = self._cycling.acquire(timeout=max(0.0, within_s))
        self._stopped.set()
        if has_ended:
            self._cycling.release()
            log.debug("controller stopped")
        return has_ended

    def _carry_on(self) -> None:
        """Calls `beside` when due."""
        while not self._stopped.is_set():
            try:
                due = self._beside(self._clock.now())
            except Exception:
                log.exception("a round beside a cycle broke; please report it")
                due = None
            left = CARRY if due is None else (due - self._clock.now()) / self._speed
            self._stopped.wait(min(max(left, LEAST_CARRY), CARRY).total_seconds())

    def _soon(self) -> datetime:
        return wall() + timedelta(seconds=max(0.0, self._not_before_s - monotonic_s()))

    def _wake_after(self, pause: timedelta) -> None:
        with self._planning:
            now = wall()
            at = min(now + pause, now + STIR) if self._stirred else now + pause
            self._plan(min(at, self._soon()) if self._woken else at)

    def _plan(self, at: datetime) -> None:
        if self.ended.is_set():
            return
        self.progress = replace(self.progress, busy_since=None, due=at)
        self._due_s = monotonic_s() + (at - wall()).total_seconds()
        self._scheduler.add_job(
            self._tick,
            DateTrigger(at),
            id="cycle",
            replace_existing=True,
            misfire_grace_time=None,
            coalesce=True,
            # The lock keeps cycles apart. A limit of one job would drop the wake-up that arrives while a tick returns.
            max_instances=MOST_TICKS,
        )

    def _watch_sleep(self) -> None:
        """Until the end: wakes a loop that overslept."""
        while not self.ended.wait(OVERSLEPT_S):
            with self._planning:
                if self.progress.due is not None and monotonic_s() > self._due_s + OVERSLEPT_S:
                    self._plan(wall())

    def _tick(self) -> None:
        with self._cycling:
            if self.ended.is_set() or not self._begin():
                return
            attempt, pause = self._try()
            if self.failed is not None:
                self.ended.set()
            else:
                self._wake_after(pause)
            self._tried(attempt)
            if attempt.cycle is not None:
                self._watch(attempt.cycle)

    def _begin(self) -> bool:
        """False for a tick that another one preceded: the next scheduled time stays."""
        with self._planning:
            now, due = wall(), self.progress.due
            if due is None or (due > now and self._due_s > monotonic_s()):
                if due is not None:
                    self._plan(due)
                return False
            self._woken, self._stirred = False, False
            self._not_before_s = monotonic_s() + WAKE_GAP.total_seconds()
            self.progress = replace(self.progress, busy_since=now, due=None, tried=self.progress.tried + 1)
            return True

    def _try(self) -> tuple[Attempt, timedelta]:
        """One cycle, and the pause after it."""
        begun_s = monotonic_s()
        cycle, reason = self._cycle()
        attempt = Attempt(monotonic_s() - begun_s, cycle, reason)
        if cycle is None or not cycle.reachable:
            self.progress = replace(self.progress, failing=reason or "RemoteUnreachable")
        elif cycle.waits:
            self.progress = replace(self.progress, failing=cycle.waits)
        else:
            self.progress = replace(self.progress, failing="", leading=cycle.leading)
        if cycle is None:
            self._pause = backoff.CYCLES.longer(self._pause)
            return attempt, self._pause
        self._pause = None
        return attempt, max(timedelta(), (cycle.wake - self._clock.now()) / self._speed)

    def _cycle(self) -> tuple[Cycle | None, str]:
        """The cycle's result, or why there was none."""
        try:
            cycle = self._reconciler.cycle(self._clock.now())
            self._warming.after(cycle)
            if cycle.leading and not self._is_settled:
                self._is_settled = True
                heap_settled()
            return cycle, ""
        except UserError as error:
            if error.reason in self._fatal:
                self.failed = error
            else:
                log.warning("cycle refused reason=%s message=%s", error.reason, error)
            return None, error.reason
        except Fault as fault:
            log.warning("cycle failed reason=%s message=%s", fault.reason, fault)
            return None, fault.reason
        except Exception:
            # A bug must not stop everyone's strict ends: continue, and log the trace.
            log.exception("cycle broke; please report it")
            return None, "Bug"
