"""A reading of another clock, which can be extrapolated later. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Heard:
    """One reading, and when it was taken, by the monotonic `reconciler.clock.steady_s`."""

    says: datetime
    steady_s: float

    def at(self, steady_s: float) -> datetime:
        """What that clock would show now."""
        return self.says + timedelta(seconds=steady_s - self.steady_s)
