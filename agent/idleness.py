"""Since when none of a node's GPUs is used.

Pure: its state comes in as `Lull` and goes out as `Lull`. Slow to call a node idle, quick to call it used: every GPU
must stay at or below the threshold for five minutes, and one reading above it starts the time again. What is unknown
is not idle: a GPU that does not report its utilisation (a MIG GPU does not), a missing GPU, a pause in the readings,
a restart of the agent.

Held by tests/agent/test_idleness.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.port import GpuReading

IDLE_AFTER = timedelta(minutes=5)
"""Shorter pauses are part of the work: loading data, compiling, writing a checkpoint."""
LONGEST_GAP = timedelta(minutes=2)
"""Longest gap between two readings of one run; after a longer gap the use in between is unknown."""
HYSTERESIS = 2
"""An idle node counts as used only this many percent above the threshold, so that noise causes no reports."""


@dataclass(frozen=True, slots=True)
class Lull:
    """A run of readings in which no GPU was used."""

    since: datetime  # the first of them
    until: datetime  # the last

    @property
    def idle(self) -> bool:
        """Whether it has lasted long enough to be reported."""
        return self.until - self.since >= IDLE_AFTER


def lull_after(
    before: Lull | None, readings: tuple[GpuReading, ...], below: int, now: datetime
) -> Lull | None:
    """The run extended by one reading of all GPUs; None if it ended. `below` is in percent."""
    going_on = before is not None and now - before.until <= LONGEST_GAP
    limit = below + HYSTERESIS if before is not None and going_on and before.idle else below
    if not readings or not all(_is_unused(reading, limit) for reading in readings):
        return None
    return Lull(before.since if before is not None and going_on else now, now)


def _is_unused(reading: GpuReading, limit: int) -> bool:
    use = reading.utilisation_percent
    return reading.answers and use is not None and use <= limit
