"""The one module that reads the clock; everything else is told the time."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

WOBBLE = timedelta(minutes=1)
"""A step back of the machine's time that is not passed on: time services correct by less."""


class Clock(Protocol):
    """Tells the time as aware UTC."""

    def now(self) -> datetime:
        """The present instant; goes back only where the machine's clock was set back by more than `WOBBLE`."""


class Timepiece(Clock, Protocol):
    """A clock that also counts the seconds by itself, so that one sees when it was set."""

    def steady_s(self) -> float:
        """Seconds on a clock that nobody sets; only differences mean anything."""


class SystemClock:
    """The machine's clock; a small step back of the machine's time is not passed on."""

    def __init__(self) -> None:
        self._last = datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime:
        """The present instant."""
        read = wall()
        # A clock that was set stands for hours otherwise; whether it is right is decided by
        # `reconciler.timekeeping.clock_doubt`.
        self._last = read if read + WOBBLE < self._last else max(self._last, read)
        return self._last

    def steady_s(self) -> float:
        """See `steady_s`."""
        return steady_s()


class ScaledClock:
    """Starts at `start` and runs `speed` times as fast as `base`, for demonstrations."""

    def __init__(self, base: Clock, speed: float, start: datetime | None = None) -> None:
        self._base = base
        self._begun = base.now()
        self._start = self._begun if start is None else start
        self._speed = speed

    def now(self) -> datetime:
        """The scaled instant."""
        return self._start + (self._base.now() - self._begun) * self._speed


class ManualClock:
    """Stands still until it is set: tests and simulated stories."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        """The instant set last."""
        return self._now

    def steady_s(self) -> float:
        """Seconds pass as the time that is set."""
        return self._now.timestamp()

    def set(self, to: datetime) -> None:
        """Move on to `to`; an earlier instant is ignored."""
        self._now = max(self._now, to)


def monotonic_s() -> float:
    """Seconds on a clock that is never set: only differences mean anything. For pauses and deadlines of calls."""
    return time.monotonic()


def steady_s() -> float:
    """Seconds on a clock that is never set and that goes on while the machine sleeps, where the system has one."""
    return time.clock_gettime(_STEADY)


_STEADY: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def wall() -> datetime:
    """What the machine's clock says, whatever it said before: for schedulers that go by it themselves."""
    return datetime.now(UTC)  # noqa: TID251 - this is the one place
