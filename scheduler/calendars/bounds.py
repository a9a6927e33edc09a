"""What searches of a pool have shown: before this instant nothing so large finds room.

A request that is at least as large, at least as long and not wanted earlier than another cannot start before the
other could. So each search leaves a bound for all that are like it or more, and the next one begins there. Room
that is taken keeps bounds true; room that is given back lowers them where it could be used.

Held by tests/scheduler/calendars/test_bounds.py: with bounds and without, plans are the same.
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
"""Marks on each axis. More make bounds closer and each of them dearer; a table has at most the product."""

Size = tuple[int, int, int]
"""Places of a request on the three scales: when it is wanted, nodes, duration."""


class Scale:
    """Marks along one axis, the last above all known values."""

    __slots__ = ("_marks",)

    def __init__(self, origin: int, values: Iterable[int], most: int) -> None:
        """No value, known or not, is below `origin`; many values are thinned to `most` equally common ones."""
        rising = sorted(values)
        step = 1 if len(set(rising)) <= most else len(rising) // most
        self._marks = sorted({origin, *rising[::step], (rising or [origin])[-1] + 1})

    def __len__(self) -> int:
        return len(self._marks)

    def at_most(self, value: int) -> int:
        """The last mark that is not above `value`."""
        return bisect_right(self._marks, value) - 1

    def at_least(self, value: int) -> int:
        """The first mark that is not below `value`; one past the last when there is none."""
        return bisect_left(self._marks, value)

    def reaches(self) -> Ints:
        """The largest value of which each mark is the last that is not above it."""
        return np.array([*(mark - 1 for mark in self._marks[1:]), FOREVER], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The scales on which requests are compared."""

    now: int
    wishes: Scale
    nodes: Scale
    durations: Scale

    def below(self, request: Request) -> Size:
        """The largest marks that `request` is at least as large as: what holds for them holds for it."""
        wish = wanted_from(request, self.now)
        return (
            self.wishes.at_most(wish),
            self.nodes.at_most(request.nodes),
            self.durations.at_most(request.duration),
        )

    def above(self, request: Request) -> Size:
        """The smallest marks that are at least as large as `request`: what holds for it holds for them."""
        wish = wanted_from(request, self.now)
        return (
            self.wishes.at_least(wish),
            self.nodes.at_least(request.nodes),
            self.durations.at_least(request.duration),
        )


class Bounds:
    """For each pool and size the hold's begin before which there is no room. Times are begins of holds."""

    __slots__ = ("_reaches", "_tables", "sizes")

    def __init__(self, now: int, requests: Iterable[Request]) -> None:
        """Nothing is shown yet; `requests` are those that searches will mostly be for."""
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
        """An equal one that changes alone."""
        twin = object.__new__(type(self))
        twin.sizes, twin._reaches = self.sizes, self._reaches
        twin._tables = {key: table.copy() for key, table in self._tables.items()}
        return twin

    def of(self, pool: PoolKey, size: Size) -> int:
        """No hold of a request with these marks below it begins before this."""
        table = self._tables.get(pool)
        return self.sizes.now if table is None else int(table[size])

    def show(self, pool: PoolKey, size: Size, begin: int) -> None:
        """A search for a request with these marks above it found no begin before this one."""
        table = self._tables.get(pool)
        if table is None:
            shape = (len(self.sizes.wishes), len(self.sizes.nodes), len(self.sizes.durations))
            table = self._tables[pool] = np.full(shape, self.sizes.now, dtype=np.int64)
        wish, nodes, duration = size
        larger = table[wish:, nodes:, duration:]
        np.maximum(larger, begin, out=larger)

    def give(self, pool: PoolKey, begin: int, margin: int) -> None:
        """Room appeared from `begin` on: a hold may begin so much before it as it is long, `margin` included."""
        table = self._tables.get(pool)
        if table is not None:
            np.minimum(table, begin - margin - self._reaches + 1, out=table)


def wanted_from(request: Request, now: int) -> int:
    """The instant before which it may not start in any pool."""
    pinned = request.promise is not None and not request.movable
    promised = request.promise.start if request.promise is not None and pinned else now
    return max(now, request.not_before, promised)
