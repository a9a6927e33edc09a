"""What earlier searches of a pool proved: no request of this size finds room before this instant.

A request that is at least as large, at least as long and wanted no earlier than another cannot start before the other
could. So each search leaves a bound for all such requests, and the next search begins there. Taking room keeps bounds
true; freed room lowers them where it could be used.

Plans are the same with and without bounds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from scheduler.calendars.calendar import Ints
from scheduler.snapshot import FOREVER, PoolKey, Request

_MOST_WISHES, _MOST_NODES, _MOST_DURATIONS = 8, 16, 64
"""Most marks per axis. More marks make bounds tighter and costlier; a table has at most their product."""

Size = tuple[int, int, int]
"""A request's positions on the three scales: wanted start, nodes, duration."""


class Scale:
    """Marks along one axis, the last above all known values."""

    __slots__ = ("_marks",)

    def __init__(self, origin: int, values: Iterable[int], most: int) -> None:
        """No value is below `origin`; many values are thinned to `most` equally common ones."""
        rising = sorted(values)
        step = 1 if len(set(rising)) <= most else len(rising) // most
        self._marks = sorted({origin, *rising[::step], (rising or [origin])[-1] + 1})

    def __len__(self) -> int:
        return len(self._marks)

    def at_most(self, value: int) -> int:
        """Index of the greatest mark <= `value`."""
        return bisect_right(self._marks, value) - 1

    def at_least(self, value: int) -> int:
        """Index of the smallest mark >= `value`; one past the last if there is none."""
        return bisect_left(self._marks, value)

    def reaches(self) -> Ints:
        """For each mark, the largest value for which it is the greatest mark <= value."""
        return np.array([*(mark - 1 for mark in self._marks[1:]), FOREVER], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The scales on which requests are compared."""

    now: int
    wishes: Scale
    nodes: Scale
    durations: Scale

    def below(self, request: Request) -> Size:
        """The greatest marks <= `request`: bounds for them hold for it."""
        wish = wanted_from(request, self.now)
        return (
            self.wishes.at_most(wish),
            self.nodes.at_most(request.nodes),
            self.durations.at_most(request.duration),
        )

    def above(self, request: Request) -> Size:
        """The smallest marks >= `request`: bounds for it hold for them."""
        wish = wanted_from(request, self.now)
        return (
            self.wishes.at_least(wish),
            self.nodes.at_least(request.nodes),
            self.durations.at_least(request.duration),
        )


class Bounds:
    """For each pool and size the begin of a hold before which there is no room."""

    __slots__ = ("_reaches", "_tables", "sizes")

    def __init__(self, now: int, requests: Iterable[Request]) -> None:
        """Starts without bounds; `requests` are the expected searches."""
        known = list(requests)
        self.sizes = Sizes(
            now,
            Scale(now, (wanted_from(request, now) for request in known), _MOST_WISHES),
            Scale(0, (request.nodes for request in known), _MOST_NODES),
            Scale(0, (request.duration for request in known), _MOST_DURATIONS),
        )
        self._reaches = self.sizes.durations.reaches()
        self._tables: dict[PoolKey, Ints] = {}

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin.sizes, twin._reaches = self.sizes, self._reaches
        twin._tables = {key: table.copy() for key, table in self._tables.items()}
        return twin

    def of(self, pool: PoolKey, size: Size) -> int:
        """Lower bound for the begin of a hold of a request with these marks below it."""
        table = self._tables.get(pool)
        return self.sizes.now if table is None else int(table[size])

    def show(self, pool: PoolKey, size: Size, begin: int) -> None:
        """Record that a search for a request with these marks above it found no begin before this one."""
        table = self._tables.get(pool)
        if table is None:
            shape = (len(self.sizes.wishes), len(self.sizes.nodes), len(self.sizes.durations))
            table = self._tables[pool] = np.full(shape, self.sizes.now, dtype=np.int64)
        wish, nodes, duration = size
        larger = table[wish:, nodes:, duration:]
        np.maximum(larger, begin, out=larger)

    def give(self, pool: PoolKey, begin: int, margin: int) -> None:
        """Room appeared from `begin` on: a hold may begin earlier by its length, `margin` included."""
        table = self._tables.get(pool)
        if table is not None:
            np.minimum(table, begin - margin - self._reaches + 1, out=table)


def wanted_from(request: Request, now: int) -> int:
    """The instant before which it may not start in any pool."""
    pinned = now if request.promise is None or request.movable else request.promise.start
    return max(now, request.not_before, pinned)
