"""How the length of cycles affects how far ahead starts are decided, and how long causes may be proved.

Times come from an injected clock; without one a cycle takes no time, as in a simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.clock import Clock
from reconciler.settings import Settings
from scheduler.causes.causes import always

TRIALS = timedelta(seconds=5)
"""How long one cycle may start plans to prove the cause of a delay; after that the likeliest causes are named."""
AHEAD = timedelta(minutes=1)
"""How much earlier starts are decided while a large push is read: the cycle that plans it is long."""
MOST_AHEAD = timedelta(minutes=2)
"""A decided start holds its nodes, so no start is decided earlier than this because of long cycles."""


class Pace:
    """One owner. `begin` and `end` frame a cycle."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self._settings, self._clock = settings, clock
        self._begun: datetime | None = None
        self._took = timedelta()

    def read(self, now: datetime) -> datetime:
        """The present; `now` where there is no clock."""
        return now if self._clock is None else max(now, self._clock.now())

    def begin(self, now: datetime) -> None:
        self._begun = now

    def end(self, now: datetime) -> None:
        self._took = self.read(now) - (self._begun or now)

    def trials(self, now: datetime) -> Callable[[], bool]:
        """Whether there is time for one more plan to prove a cause. Counts from the first call."""
        until: list[datetime] = []

        def has_time() -> bool:
            if not until:
                until.append(self.read(now) + TRIALS)
            return self.read(now) < until[0]

        return always if self._clock is None else has_time

    def ahead(self, *, has_more: bool) -> Settings:
        """The settings for deciding: starts that the next cycle might miss are decided in this one."""
        more = min(MOST_AHEAD, self._took * 2 + (AHEAD if has_more else timedelta()))
        return replace(self._settings, start_lead=self._settings.start_lead + more)
