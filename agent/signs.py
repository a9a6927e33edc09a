"""One kind of fault as the judge follows it: how many readings speak for it and against it, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.evidence import Signal


@dataclass(frozen=True, slots=True)
class Sign:
    """State of one kind of fault: readings in a row for and against it, since when, and whether it holds."""

    bad: int = 0
    good: int = 0
    holds: bool = False
    since: datetime | None = None  # of the run of bad readings, or of the fault that holds

    def after(self, signal: Signal, now: datetime, patience: Patience, to_clear: int) -> Sign:
        """The sign after one more reading."""
        if signal is Signal.UNKNOWN:
            return self
        bad = self.bad + 1 if signal is Signal.BAD else 0
        good = self.good + 1 if signal is Signal.GOOD else 0
        since = self.since if self.holds or self.bad else now
        holds = (self.holds and good < to_clear) or patience.over(bad, since, now)
        # Larger counts mean nothing more, and equal memories should compare equal.
        return Sign(
            min(bad, patience.readings),
            min(good, to_clear) if holds else 0,
            holds,
            since if bad or holds else None,
        )


@dataclass(frozen=True, slots=True)
class Patience:
    """How many bad readings in a row, and over how long a time, make a fault."""

    readings: int = 1
    time: timedelta = timedelta(0)

    def over(self, bad: int, since: datetime | None, now: datetime) -> bool:
        return bad >= self.readings and (since is None or now - since >= self.time)


REST = Sign()
"""Nothing was ever seen."""
