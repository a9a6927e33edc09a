"""The one module that reads the clock; everything else is told the time."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time as aware UTC."""

    def now(self) -> datetime:
        """The present instant; never goes back."""


class SystemClock:
    """The machine's clock; a step back of the machine's time is not passed on."""

    def __init__(self) -> None:
        self._last = datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime:
        """The present instant."""
        self._last = max(self._last, datetime.now(UTC))  # noqa: TID251 - this is the one place
        return self._last


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

    def set(self, to: datetime) -> None:
        """Move on to `to`; an earlier instant is ignored."""
        self._now = max(self._now, to)


def monotonic_s() -> float:
    """Seconds on a clock that is never set: only differences mean anything. For pauses and deadlines of calls."""
    return time.monotonic()
