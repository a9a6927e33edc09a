"""The clock of one simulated machine: it may jump, and run fast or slow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reconciler.clock import WOBBLE
from tests.simulation.timeline import START, Timeline


class MachineClock:
    """A `Timepiece`. Small steps back are hidden, as `reconciler.clock.SystemClock` hides them."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._offset = timedelta()
        self._rate = 1.0
        self._steady = timedelta()  # what the monotonic clock showed when the rate last changed
        self._since = START
        self._last = datetime.min.replace(tzinfo=UTC)

    @property
    def error(self) -> timedelta:
        """How far it is ahead of the true time."""
        return self._wall() - self._timeline.now

    def jump(self, seconds: float) -> None:
        """It is set that far ahead, or back."""
        self._offset += timedelta(seconds=seconds)

    def run_at(self, rate: float) -> None:
        """From now on it counts `rate` seconds a second."""
        self._steady, self._since, self._rate = self._counted(), self._timeline.now, rate

    def correct(self) -> None:
        """It is right again, and runs as it should."""
        self.run_at(1.0)
        self._offset -= self.error

    def _counted(self) -> timedelta:
        return self._steady + (self._timeline.now - self._since) * self._rate

    def _wall(self) -> datetime:
        return START + self._counted() + self._offset

    def now(self) -> datetime:
        read = self._wall()
        self._last = read if read + WOBBLE < self._last else max(self._last, read)
        return self._last

    def steady_s(self) -> float:
        return self._counted().total_seconds()

    def true_time(self, local: datetime) -> datetime:
        """When it will show that, if nothing befalls it."""
        return self._timeline.now + (local - self._wall()) / self._rate
