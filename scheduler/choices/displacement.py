"""Which requests give way so that another gets its nodes: the lowest ranks, and as few as needed.

Pure: it works on a copy of the relevant part of the calendar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.calendars.calendar import Ints, Section, Share


@dataclass(frozen=True, slots=True)
class Overlapping:
    """Reservations, lowest rank first, with begin and end of their holds."""

    numbers: Ints
    begins: Ints
    ends: Ints


def who_gives_way(
    section: Section, nodes: int, others: Overlapping, shares: Callable[[int], Sequence[Share]]
) -> list[int]:
    """Numbers of those `others` that must go to free `nodes` on the whole section; all of them together suffice.

    Those that overlap a shortage go, lowest first, until there is none. Then those that need not go after all return,
    highest first.
    """
    firsts, lasts = section.place(others.begins), section.place(others.ends)
    gone, following = list[int](), 0
    shortages = np.zeros(section.steps + 1, dtype=np.int64)  # of the steps before each
    while (short := section.short(nodes)).any():
        short.cumsum(out=shortages[1:])
        # Those passed over need not be checked again: shortages only shrink.
        over = shortages[firsts[following:]] < shortages[lasts[following:]]
        this = following + int(over.argmax())
        section.add(shares(int(others.numbers[this])), int(firsts[this]), int(lasts[this]), 1)
        gone.append(this)
        following = this + 1
    needed = []
    for this in reversed(gone):
        number, first, last = int(others.numbers[this]), int(firsts[this]), int(lasts[this])
        section.add(shares(number), first, last, -1)
        if section.short(nodes).any():
            section.add(shares(number), first, last, 1)
            needed.append(number)
    return needed
