"""The only module that reads the clock; everything else gets the time as an argument."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

WOBBLE = timedelta(minutes=1)
"""Smaller steps back of the machine's clock are hidden: time services make them."""


class Clock(Protocol):
    """The time as aware UTC."""

    def now(self) -> datetime:
        """The present; goes back only if the machine's clock was set back by more than `WOBBLE`."""


class Timepiece(Clock, Protocol):
    """A clock that also counts seconds monotonically, which reveals when it was set."""

    def steady_s(self) -> float:
        """Seconds on a monotonic clock; only differences have a meaning."""


class SystemClock:
    """The machine's clock; hides small steps back."""

    def __init__(self) -> None:
        self._last = datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime:
        read = wall()
        # A clock that was set back must not stop for hours; `reconciler.timekeeping.clock_doubt` judges it.
        self._last = read if read + WOBBLE < self._last else max(self._last, read)
        return self._last

    def steady_s(self) -> float:
        return steady_s()


class ScaledClock:
    """Starts at `start` and runs `speed` times as fast as `base`, for demonstrations."""

    def __init__(self, base: Clock, speed: float, start: datetime | None = None) -> None:
        self._base = base
        self._begun = base.now()
        self._start = self._begun if start is None else start
        self._speed = speed

    def now(self) -> datetime:
        return self._start + (self._base.now() - self._begun) * self._speed


class ManualClock:
    """Does not move until it is set: for tests and simulated stories."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def steady_s(self) -> float:
        return self._now.timestamp()

    def set(self, to: datetime) -> None:
        """Advances to `to`; an earlier time is ignored."""
        self._now = max(self._now, to)


def monotonic_s() -> float:
    """Seconds on a monotonic clock: only differences have a meaning. For pauses and deadlines of calls."""
    return time.monotonic()


def steady_s() -> float:
    """Seconds on a monotonic clock that continues while the machine sleeps, if the system has one."""
    return time.clock_gettime(_STEADY)


_STEADY: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def wall() -> datetime:
    """The machine's clock as it is: for schedulers that use it themselves."""
    return datetime.now(UTC)  # noqa: TID251 - the only place
