"""Runs one repository's watcher in a thread of its own, beside the loop, until stopped.

A failure here delays comments on pull requests, never GPUs: it is logged and retried with growing pauses.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Event, Thread

from reconciler.clock import Clock
from reconciler.cycle import Cycle
from reconciler.forges.forge_port import RateLimited
from reconciler.model import backoff
from reconciler.pulls.watcher import Watcher
from schemas.errors import EgsError

log = logging.getLogger(__name__)

GAP = timedelta(seconds=5)
"""Minimum time between two rounds, however often it is woken."""


class Attending:
    """The thread. `make` creates the watcher in it, so that its failures are retried like any other."""

    def __init__(self, make: Callable[[], Watcher], clock: Clock, name: str, gap: timedelta = GAP) -> None:
        self._make, self._clock, self._gap = make, clock, gap
        self._watcher: Watcher | None = None
        self._latest: Cycle | None = None
        self._pause: timedelta | None = None
        self._told = ""
        self._woken, self._ended = Event(), Event()
        self._thread = Thread(target=self._run, name=f"{name}-pulls", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Begins nothing new; safe to call from a signal handler."""
        self._ended.set()
        self._woken.set()

    def stop(self) -> None:
        """Stops after the running call; a hanging call is abandoned."""
        self.end()
        if self._thread.is_alive():
            self._thread.join(self._gap.total_seconds())

    def wake(self) -> None:
        """Runs soon; several calls count as one."""
        self._woken.set()

    def note(self, cycle: Cycle) -> None:
        """The result of a cycle; returns at once."""
        self._latest = cycle
        if cycle.changed:
            self.wake()

    def step(self, now: datetime) -> datetime:
        """One round, whatever happens; returns when the next is due."""
        try:
            due = self._round(now)
        except RateLimited as limited:
            log.warning("forge not asked reason=%s message=%s", limited.reason, limited)
            return limited.until
        except EgsError as error:
            if str(error) != self._told:
                log.warning("pull requests not told reason=%s message=%s", error.reason, error)
            self._told = str(error)
        except Exception:
            log.exception("pull requests not told; please report it")
        else:
            self._pause, self._told = None, ""
            return due
        self._pause = backoff.PULLS.longer(self._pause)
        return now + self._pause

    def _round(self, now: datetime) -> datetime:
        if self._watcher is None:
            self._watcher = self._make()
        if self._latest is not None:
            self._watcher.note(self._latest)
        return self._watcher.round(now)

    def _run(self) -> None:
        while not self._ended.is_set():
            self._woken.clear()
            begun = self._clock.now()
            due = max(self.step(begun), begun + self._gap)
            # The gap first: a wake-up may only shorten the rest.
            if not self._ended.wait(self._gap.total_seconds()):
                self._woken.wait(max(0.0, (due - self._clock.now()).total_seconds()))
        if self._watcher is not None:
            self._watcher.close()
