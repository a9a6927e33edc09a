"""The same search without a memory: from the first instant, pool by pool, every time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from scheduler.calendars.board import Board, Spot, floor, held_back_until, spot
from scheduler.snapshot import FOREVER, Pool, PoolKey, Request


class PlainBoard(Board):
    """As its parent, but what one search has shown is not known to the next."""

    def earliest(self, request: Request) -> Spot | None:
        """Each of its pools alone; of those not held back, or held back in vain, the earliest."""
        return self._earliest_of(request, None)

    def _earliest_of(self, request: Request, place: Spot | None) -> Spot | None:
        found = {
            key: spot(self._pools[key], request, start, self._now) for key, start in self._starts(request)
        }
        best: Spot | None = None
        for since in sorted({held_back_until(request, key) for key in found}):
            own = since if place is None else held_back_until(request, place.pool)
            reached = best or (place if own < since else None)
            if reached is not None and reached.start <= since:
                break
            group = [key for key in found if held_back_until(request, key) == since]
            better = [
                found[k] for k in group if place is None or found[k].start < place.start + (since < own)
            ]
            least = min(better, key=lambda other: other.start, default=None)
            if least is not None and (best is None or least.start < best.start):
                best = least
        return best

    def _starts(self, request: Request) -> Iterator[tuple[PoolKey, int]]:
        for key in request.pools:
            if key in self._pools and self._pools[key].open:
                start = self._earliest_there(self._pools[key], request, FOREVER)
                if start is not None:
                    yield key, start

    def advance(self, request: Request, place: Spot) -> Spot:
        self.lift(request, place)
        better = self._earliest_of(request, place)
        if better is not None:
            return self.put(request, better)
        self.put_back(request, place)
        return place

    def _earliest_there(self, pool: Pool, request: Request, before: int) -> int | None:
        calendar, steps = self.calendars[pool.key], self._slices.get(request.slice)
        length = pool.prepare + request.duration + pool.drain
        start = floor(pool, request, self._now)
        while True:
            begin = calendar.earliest(request.nodes, length, start - pool.prepare, before - pool.prepare)
            if begin is None or steps is None:
                return None if begin is None else begin + pool.prepare
            start = begin + pool.prepare
            free_from = steps.first_gap(1, request.duration, start, before)
            if free_from is None or free_from == start:
                return free_from
            start = free_from


@contextmanager
def plainly() -> Iterator[None]:
    """Plans made meanwhile are made without bounds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scheduler.plan.Board", PlainBoard)
        yield
