"""What another clock said, so that it can be asked later what it would say by then. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Heard:
    """One reading, and when it was: by the clock of `reconciler.clock.steady_s`, which nobody sets."""

    says: datetime
    steady_s: float

    def at(self, steady_s: float) -> datetime:
        """What it would say by now."""
        return self.says + timedelta(seconds=steady_s - self.steady_s)
