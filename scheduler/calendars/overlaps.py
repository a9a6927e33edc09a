"""Reservations as arrays by rank, to find those in a request's way fast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.calendars.board import Spot
from scheduler.calendars.calendar import Ints
from scheduler.choices.displacement import Overlapping
from scheduler.snapshot import PoolKey, Request


class Overlaps:
    """Which reservations of lower rank overlap a period, lowest rank first."""

    def __init__(self, requests: Sequence[Request]) -> None:
        pools = dict.fromkeys(pool for request in requests for pool in request.pools)
        self._pool_numbers = {pool: number for number, pool in enumerate(pools)}
        self._slices = [request.slice for request in requests]
        self._members = _by_slice(self._slices)
        self._pool: Ints = np.full(len(requests), -1, dtype=np.int64)
        # Rows: hold begin, hold end, start, end.
        self._times: Ints = np.zeros((4, len(requests)), dtype=np.int64)

    def note(self, i: int, place: Spot | None) -> None:
        """Request `i` is now at `place`, or nowhere."""
        if place is None:
            self._pool[i] = -1
        else:
            self._pool[i] = self._pool_numbers[place.pool]
            self._times[:, i] = (place.hold.begin, place.hold.end, place.start, place.end)

    def of_pool(self, i: int, pool: PoolKey, begin: int, end: int) -> Overlapping:
        """Those ranked after `i` whose holds in `pool` overlap [begin, end)."""
        begins, ends = self._times[0, i + 1 :], self._times[1, i + 1 :]
        there = self._pool[i + 1 :] == self._pool_numbers[pool]
        found = np.flatnonzero(there & (begins < end) & (ends > begin))[::-1] + i + 1
        return Overlapping(found, self._times[0, found], self._times[1, found])

    def of_slice(self, i: int, start: int, end: int) -> list[int]:
        """Those ranked after `i` of the same slice that run within [start, end)."""
        lower = (j for j in reversed(self._members.get(self._slices[i], ())) if j > i and self._pool[j] >= 0)
        return [j for j in lower if self._times[2, j] < end and self._times[3, j] > start]


def _by_slice(slices: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, slice_ in enumerate(slices):
        if slice_:
            found.setdefault(slice_, []).append(i)
    return found
