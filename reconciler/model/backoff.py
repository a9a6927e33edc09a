"""Pauses after failures in a row, each twice the one before, up to a longest. Pure.

The client stands alone and has its own (`egs.calling`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

_MOST_DOUBLINGS = 20
"""More would make every pause the longest anyway, and numbers that a timedelta cannot hold."""


@dataclass(frozen=True, slots=True)
class Backoff:
    first: timedelta
    longest: timedelta

    def longer(self, than: timedelta | None) -> timedelta:
        """The pause after `than`; None: there was no failure before."""
        return self.first if than is None else min(self.longest, than * 2)

    def after(self, failures: int) -> timedelta:
        """The pause after this many failures in a row, one or more."""
        return min(self.longest, self.first * (1 << min(failures - 1, _MOST_DOUBLINGS)))


CYCLES = Backoff(timedelta(seconds=1), timedelta(minutes=5))
"""Of a loop whose cycle failed as a whole."""
DOOR = Backoff(timedelta(seconds=5), timedelta(minutes=5))
"""Of steps that carry request objects to main."""
ANSWERS = Backoff(timedelta(seconds=0.5), timedelta(seconds=8))
"""Between reads of a remote that did not answer whether a push arrived."""
PULLS = Backoff(timedelta(seconds=30), timedelta(minutes=15))
"""Of rounds over pull requests."""
FORGE = Backoff(timedelta(seconds=30), timedelta(minutes=5))
"""How long a forge that did not answer in time is not asked: a loop loses one call's time now and then."""
CLUSTERS = Backoff(timedelta(seconds=1), timedelta(seconds=30))
"""How long a cluster that kept us waiting in vain is not asked."""
WATCHES = Backoff(timedelta(seconds=0.2), timedelta(seconds=10))
"""Of watches of a cluster's API that broke."""
OBJECT_REPAIRS = Backoff(timedelta(seconds=5), timedelta(hours=1))
"""Between writes of one object that others change back; it resets after the longest pause without a change."""
SLICE_REPAIRS = Backoff(timedelta(seconds=30), timedelta(hours=1))
"""The same, as the loop sees an object of a slice."""
MESSAGES = Backoff(timedelta(minutes=1), timedelta(hours=1))
"""Of a message that its service did not take."""
