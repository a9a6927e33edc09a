"""Reservations as arrays by rank, so that those in somebody's way are found at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler.board import Spot
from scheduler.calendar import Ints
from scheduler.snapshot import PoolKey, Request

Thing = TypeVar("Thing", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Overlapping:
    """Reservations, the lowest rank first, with the begins and ends of their holds."""

    numbers: Ints
    begins: Ints
    ends: Ints

    def first_over(self, short: tuple[Ints, Ints]) -> tuple[int, Overlapping]:
        """The lowest rank that overlaps one of these stretches, and those after it; one must.

        Those passed over need not be looked at again as long as the stretches only become fewer.
        """
        begins, ends = short
        following = np.minimum(ends.searchsorted(self.begins, "right"), begins.size - 1)
        over = (begins[following] < self.ends) & (ends[following] > self.begins)
        at = int(over.argmax())
        rest = slice(at + 1, None)
        return int(self.numbers[at]), Overlapping(self.numbers[rest], self.begins[rest], self.ends[rest])


class Overlaps:
    """Which reservations of lower rank overlap a stretch of time, the lowest rank first."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self._pool_numbers = _numbered(pool for request in requests for pool in request.pools)
        self._slice_numbers = _numbered(request.slice for request in requests)
        self._slices = np.array([self._slice_numbers[request.slice] for request in requests], dtype=np.int64)
        self._names = [request.slice for request in requests]
        self._pool: Ints = np.full(len(requests), -1, dtype=np.int64)
        # Rows: hold begin, hold end, start, end.
        self._times: Ints = np.zeros((4, len(requests)), dtype=np.int64)

    def note(self, i: int, place: Spot | None) -> None:
        """Request `i` now stands at `place`, or nowhere."""
        if place is None:
            self._pool[i] = -1
        else:
            self._pool[i] = self._pool_numbers[place.pool]
            self._times[:, i] = (place.hold.begin, place.hold.end, place.start, place.end)

    def of_pool(self, i: int, pool: PoolKey, begin: int, end: int) -> Overlapping:
        """Those ranked after `i` whose holds in `pool` overlap [begin, end)."""
        begins, ends = self._times[0, i + 1 :], self._times[1, i + 1 :]
        there = self._pool[i + 1 :] == self._pool_numbers[pool]
        found = _from_the_last(i + 1, there & (begins < end) & (ends > begin))
        return Overlapping(found, self._times[0, found], self._times[1, found])

    def of_slice(self, i: int, start: int, end: int) -> list[int]:
        """Those ranked after `i` of the same slice that run within [start, end)."""
        if not self._names[i]:
            return []
        starts, ends = self._times[2, i + 1 :], self._times[3, i + 1 :]
        same = (self._slices[i + 1 :] == self._slices[i]) & (self._pool[i + 1 :] >= 0)
        return [int(j) for j in _from_the_last(i + 1, same & (starts < end) & (ends > start))]


def _numbered(things: Iterable[Thing]) -> dict[Thing, int]:
    return {thing: number for number, thing in enumerate(dict.fromkeys(things))}


def _from_the_last(offset: int, chosen: NDArray[np.bool_]) -> Ints:
    return np.flatnonzero(chosen)[::-1] + offset
