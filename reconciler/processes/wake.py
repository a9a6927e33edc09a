"""Wake the loop at the instants that matter. APScheduler keeps time; it decides nothing.

A wake-up that comes late is used whatever its age (no misfire grace), several late ones count as one, and there is
never more than one cycle at a time. Whoever knows that something changed may `wake` the loop early, from any thread
and as often as they like.

APScheduler sleeps by the machine's clock. Where that was set back meanwhile the loop is woken by a clock that nobody
sets: an hour back must not be an hour's sleep.

Held by tests/reconciler/processes/test_wake.py.
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
"""Reasons for which trying again cannot help."""
WAKE_GAP = timedelta(seconds=1)
"""Real time between the beginnings of two cycles that somebody woke: a flood of wake-ups costs a cycle a second."""
STIR = timedelta(seconds=5)
"""How soon a change in a cluster is looked at; what is due at an instant is due then all the same."""
MOST_TICKS = 100
CARRY, LEAST_CARRY = timedelta(seconds=0.5), timedelta(seconds=0.05)
"""Real time between two questions whether something is due beside a cycle."""
PATIENCE_S = 8.0
"""Real seconds that a running cycle gets to end: who asks a process to stop often kills it after ten."""
OVERSLEPT_S = 1.0
"""How long after its time a wake-up is missed, and how often that is looked at."""


class Cycling(Protocol):
    """What is woken."""

    def cycle(self, now: datetime) -> Cycle:
        """One look at everything, and what follows from it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One cycle that was tried."""

    took_s: float
    cycle: Cycle | None = None
    reason: str = ""  # why there is none


@dataclass(frozen=True, slots=True)
class Progress:
    """Whether the loop turns, in real time. Replaced as a whole, so that any thread may read it."""

    busy_since: datetime | None = None
    due: datetime | None = None  # when it begins next, while it rests; None: it was not started, or has ended
    tried: int = 0
    failing: str = ""  # why the last cycle failed; empty: it did not
    leading: bool | None = None  # of the last cycle that read the repository; None: there was none yet


class Waking:
    """Runs one controller's cycles until it is stopped. `speed` is how much faster than real time `clock` runs.

    `watch` hears of each cycle that ended well, `tried` of every one; neither may take long or raise.
    """

    def __init__(  # noqa: PLR0913 - what may be left out is given by name
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
        """`beside` is called by a thread of its own, also while a cycle runs; it gives when to call it again."""
        self._reconciler = reconciler
        self._clock = clock
        self._speed = speed
        self._watch = watch
        self._tried = tried
        self._fatal = fatal
        self._beside, self._stopped = beside, Event()
        self._carrying = Thread(target=self._carry_on, name=f"{name}-hands", daemon=True)
        self._pause: timedelta | None = None
        threads = ThreadPoolExecutor(pool_kwargs={"thread_name_prefix": name})  # as the log has it
        self._scheduler = BackgroundScheduler(timezone="UTC", executors={"default": threads})
        self._cycling = Lock()
        self._planning = Lock()
        self._woken = self._stirred = self._is_settled = False
        self._warming = Warming()
        self._not_before_s = self._due_s = (
            monotonic_s()
        )  # the next cycle that somebody wakes; the next at all
        self.progress = Progress()
        self.failed: UserError | None = None
        self.ended = Event()

    def start(self) -> None:
        """Begin; returns at once."""
        self._scheduler.start()
        self._carrying.start()
        self._wake_after(timedelta())
        Thread(target=self._watch_sleep, name="sleep", daemon=True).start()

    def wake(self) -> None:
        """Look at once, or right after the cycle that runs now; many calls are one."""
        with self._planning:
            self._woken = True
            due = self.progress.due
            if due is not None and due > (soon := self._soon()):
                self._plan(soon)

    def stir(self) -> None:
        """Something moved in a cluster: look soon. Pods come and go all day, and every look asks the repository too."""
        with self._planning:
            self._stirred = True
            due, at = self.progress.due, wall() + STIR
            if due is not None and due > at:
                self._plan(at)

    def stop(self, within_s: float = PATIENCE_S) -> bool:
        """End after the cycle that is running, if one is. False: it runs on after so long.

        A process may then end all the same: what a cycle has not committed is decided again, and what it has committed
        is carried out by the next process.
        """
        self.ended.set()
        with self._planning:
            self._scheduler.remove_all_jobs()  # its thread would stumble over one that is due as it shuts down
        # Waiting for jobs inside of shutdown would hold the lock that the last cycle needs to plan its next.
        self._scheduler.shutdown(wait=False)
        has_ended = self._cycling.acquire(timeout=max(0.0, within_s))
        self._stopped.set()
        if has_ended:
            self._cycling.release()
            log.debug("controller stopped")
        return has_ended

    def _carry_on(self) -> None:
        """What is due beside a cycle."""
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
            # The lock keeps cycles apart. A bound of one would drop the wake-up that comes while a tick returns.
            max_instances=MOST_TICKS,
        )

    def _watch_sleep(self) -> None:
        """Until the end: whoever slept past its time is woken."""
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
        """False for a tick that another one forestalled: the next instant stands."""
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
        """What a cycle did, or why there was none."""
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
            # A bug of ours must not end the strict ends of everybody: look again, and let people see the trace.
            log.exception("cycle broke; please report it")
            return None, "Bug"
