"""What is wrong at present, and what was: the simulation's own record of its faults, for the auditor's allowances."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

DELAYS = frozenset({"down", "pause", "clock", "api", "slow", "remote", "drain"})
"""Troubles that may delay what is due: with others everything is on time."""
STILL = frozenset({"pause", "slow"})
"""In the middle of a call."""


@dataclass(slots=True)
class Trouble:
    """One fault; `until` None: it lasts."""

    kind: str
    whom: str  # a process, a cluster, or empty: everything
    since: datetime
    until: datetime | None = None


@dataclass(slots=True)
class Troubles:
    """All faults so far, oldest first."""

    known: list[Trouble] = field(default_factory=list)

    def begin(self, kind: str, whom: str, now: datetime) -> Trouble:
        """A fault begins; its end is set by the one who ends it."""
        trouble = Trouble(kind, whom, now)
        self.known.append(trouble)
        return trouble

    def delays(self, since: datetime, now: datetime) -> timedelta:
        """How much of that time at least one fault held that may delay what is due."""
        spans = sorted(
            (max(since, t.since), min(now, t.until or now)) for t in self.known if t.kind in DELAYS
        )
        total, reached = timedelta(), since
        for begin, end in spans:
            if end > reached:
                total += end - max(begin, reached)
                reached = end
        return total

    def stood_since(self, now: datetime) -> datetime:
        """Since when a process stands still that goes on right now with what it knew; `now`: none does."""
        still = (t.since for t in self.known if t.kind in STILL and (t.until is None or t.until >= now))
        return min([now, *still])
