"""Wake the loop at the instants that matter. APScheduler keeps time; it decides nothing.

A wake-up that comes late is used whatever its age (no misfire grace), several late ones count as one, and there is
never more than one cycle at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Lock

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger

from reconciler.clock import Clock, SystemClock
from reconciler.loop import Cycle, Reconciler
from schemas.errors import Fault, UserError

log = logging.getLogger(__name__)

FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(minutes=5)
FATAL = frozenset({"NotAdopted"})
"""Reasons for which trying again cannot help."""


class Waking:
    """Runs one controller's cycles until it is stopped. `speed` is how much faster than real time `clock` runs."""

    def __init__(
        self,
        reconciler: Reconciler,
        clock: Clock,
        speed: float = 1.0,
        watch: Callable[[Cycle], None] = lambda _: None,
    ) -> None:
        self._reconciler = reconciler
        self._clock = clock
        self._speed = speed
        self._watch = watch
        self._real = SystemClock()
        self._pause = FIRST_PAUSE
        self._scheduler = BackgroundScheduler(timezone="UTC")
        self._cycling = Lock()
        self.failed: UserError | None = None
        self.ended = Event()

    def start(self) -> None:
        """Begin; returns at once."""
        self._scheduler.start()
        self._wake_after(timedelta())

    def stop(self) -> None:
        """End after the cycle that is running, if one is."""
        self.ended.set()
        # Waiting for jobs inside of shutdown would hold the lock that the last cycle needs to plan its next.
        self._scheduler.shutdown(wait=False)
        with self._cycling:
            log.debug("controller stopped")

    def _wake_after(self, pause: timedelta) -> None:
        self._scheduler.add_job(
            self._tick,
            DateTrigger(self._real.now() + pause),
            id="cycle",
            replace_existing=True,
            misfire_grace_time=None,
            coalesce=True,
            max_instances=1,
        )

    def _tick(self) -> None:
        with self._cycling:
            if not self.ended.is_set():
                self._cycle()

    def _cycle(self) -> None:
        try:
            cycle = self._reconciler.cycle(self._clock.now())
        except UserError as error:
            if error.reason in FATAL:
                self.failed = error
                self.ended.set()
                return
            log.warning("cycle refused reason=%s message=%s", error.reason, error)
            self._back_off()
        except Fault as fault:
            log.warning("cycle failed reason=%s message=%s", fault.reason, fault)
            self._back_off()
        except Exception:
            # A bug of ours must not end the strict ends of everybody: look again, and let people see the trace.
            log.exception("cycle broke; please report it")
            self._back_off()
        else:
            self._pause = FIRST_PAUSE
            self._watch(cycle)
            left = (cycle.wake - self._clock.now()) / self._speed
            self._wake_after(max(timedelta(), left))

    def _back_off(self) -> None:
        self._wake_after(self._pause)
        self._pause = min(LONGEST_PAUSE, self._pause * 2)
