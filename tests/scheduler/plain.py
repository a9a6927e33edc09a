"""The same search without a memory: from the first instant, pool by pool, every time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from scheduler.board import Board, Spot, floor, spot
from scheduler.snapshot import FOREVER, Pool, Request


class PlainBoard(Board):
    """As its parent, but what one search has shown is not known to the next."""

    def earliest(self, request: Request, before: int = FOREVER) -> Spot | None:
        best = None
        for key in request.pools:
            pool = self._pools.get(key)
            if pool is not None and pool.open:
                start = self._earliest_there(pool, request, before)
                if start is not None:
                    best, before = spot(pool, request, start, self._now), start
        return best

    def advance(self, request: Request, place: Spot) -> Spot:
        self.lift(request, place)
        better = self.earliest(request, place.start)
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
