"""Since when none of a node's GPUs is used.

Pure: what it has to remember arrives as `Lull` and leaves as `Lull`. Slow to call a node idle, quick to call it used:
every GPU has to stay at or below the threshold for five minutes in a row, and one reading above it begins the time
anew. What is not known is not idle: a GPU that does not tell its utilisation (one that is cut by MIG does not), one
that is missing, a pause in the readings, a restart of the agent.

Held by tests/agent/test_idleness.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.port import GpuReading

IDLE_AFTER = timedelta(minutes=5)
"""Shorter pauses are work: loading data, compiling, writing a checkpoint."""
LONGEST_GAP = timedelta(minutes=2)
"""Between two readings that still count as a row; who looked away longer does not know."""
HYSTERESIS = 2
"""Percent above the threshold at which a node that is idle is used again, so that a flutter makes no reports."""


@dataclass(frozen=True, slots=True)
class Lull:
    """A row of readings in which no GPU was used."""

    since: datetime  # the first of them
    until: datetime  # the last

    @property
    def idle(self) -> bool:
        """It has lasted long enough to be told."""
        return self.until - self.since >= IDLE_AFTER


def lull_after(
    before: Lull | None, readings: tuple[GpuReading, ...], below: int, now: datetime
) -> Lull | None:
    """The row with one more reading of all GPUs; None when it is broken. `below` is in percent."""
    going_on = before is not None and now - before.until <= LONGEST_GAP
    limit = below + HYSTERESIS if before is not None and going_on and before.idle else below
    if not readings or not all(_is_unused(reading, limit) for reading in readings):
        return None
    return Lull(before.since if before is not None and going_on else now, now)


def _is_unused(reading: GpuReading, limit: int) -> bool:
    use = reading.utilisation_percent
    return reading.answers and use is not None and use <= limit
