"""A Lease among controllers, as `reconciler.clusters.kubernetes.api.lease_election` keeps it: renewed, or lost."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.process import Process
    from tests.simulation.timeline import Timeline

TERM = timedelta(seconds=15)
"""Another candidate takes a Lease that was not renewed for this long."""


class Election:
    """A process that runs renews its Lease all the time; nothing needs an event of its own for that."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._holder: Process | None = None
        self._life = 0
        self._renewed = timeline.now

    def leads(self, asks: Process) -> bool:
        """Whether that process holds the Lease now; it takes one that is free."""
        now = self._timeline.now
        holder = self._holder
        if holder is not None and self._renews(holder, now):
            self._renewed = now
        is_free = holder is None or now - self._renewed > TERM
        if holder is asks and self._life == asks.lives and not is_free:
            return True
        if is_free:
            self._holder, self._life, self._renewed = asks, asks.lives, now
        return is_free

    def _renews(self, holder: Process, now: datetime) -> bool:
        is_still = holder.still_until is not None and holder.still_until > now
        return holder.is_up and holder.lives == self._life and not is_still and not holder.is_paused
