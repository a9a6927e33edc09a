"""Simulated time: what happens when, in one total order.

A process that stands still in the middle of a call lets the others go on: `run` may be called from within an act.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
"""A Saturday morning; every story begins then."""

Act = Callable[[], object]


class Timeline:
    """The true time, and all that is to happen."""

    def __init__(self) -> None:
        self.now = START
        self._due: list[tuple[datetime, int, Act]] = []
        self._count = 0

    def at(self, when: datetime, act: Act) -> None:
        """`act` happens then; of two at one instant the one that was planned first comes first."""
        self._count += 1
        heapq.heappush(self._due, (max(when, self.now), self._count, act))

    def after(self, seconds: float, act: Act) -> None:
        """`act` happens that many seconds from now."""
        self.at(self.now + timedelta(seconds=seconds), act)

    def run(self, until: datetime) -> None:
        """Everything until then, that instant included."""
        while self._due and self._due[0][0] <= until:
            when, _, act = heapq.heappop(self._due)
            self.now = max(self.now, when)
            act()
        self.now = max(self.now, until)
