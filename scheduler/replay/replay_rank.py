"""The rank during a replay: its inputs beside priority and time of filing."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from scheduler.fairness.rank import room_in_band, service_of
from scheduler.fairness.usage_share import Demand, Scale, decayed, of_lease, share, used
from scheduler.fairness.wait_bounds import aged, first_come, latest, protected
from scheduler.plan import plan
from scheduler.snapshot import FOREVER, Lease, Pool, PoolKey, Request, Snapshot
from schemas.documents.scheduling import Fairness, Scheduling


class Ordering(Protocol):
    """Assigns ranks, and is notified of what happens to requests."""

    def filed(self, request: Request, world: Snapshot) -> Request:
        """The request with its rank among those waiting in `world`."""

    def aged(self, now: int, waiting: Mapping[str, Request]) -> Iterable[Request]:
        """Requests whose rank has changed by now."""

    def displaced(self, gave_way: Iterable[str], waiting: Mapping[str, Request]) -> Iterable[Request]:
        """Requests whose rank changed because they were displaced once more and start later."""

    def started(self, request: Request, lease: Lease) -> None:
        """It does not wait any more."""

    def ended(self, lease: Lease) -> None:
        """It has used its lease."""


class Bare:
    """Priority, then time of filing, then the order of the file: the same for any two planners."""

    def filed(self, request: Request, world: Snapshot) -> Request:  # noqa: ARG002 - the port's
        return request

    def aged(self, now: int, waiting: Mapping[str, Request]) -> Iterable[Request]:  # noqa: ARG002
        return ()

    def displaced(self, gave_way: Iterable[str], waiting: Mapping[str, Request]) -> Iterable[Request]:  # noqa: ARG002
        return ()

    def started(self, request: Request, lease: Lease) -> None: ...
    def ended(self, lease: Lease) -> None: ...


class ByPolicy:
    """As a project's `scheduling`: shares, service, ageing, protection, bounded waits.

    It uses the controller's own functions (`scheduler.fairness.usage_share`,
    `scheduler.fairness.wait_bounds`). Changes by time alone are applied when they occur, not at every plan.
    """

    def __init__(
        self, scheduling: Scheduling, pools: Mapping[PoolKey, Pool], weights: Mapping[str, float]
    ) -> None:
        self._policy, self._pools = scheduling, pools
        self._books = None if scheduling.fairness is None else Books(scheduling.fairness, weights)
        self._changes: list[tuple[int, str]] = []  # when a rank changes by itself
        self._gave_way: dict[str, int] = {}
        self._protected = set[str]()

    def filed(self, request: Request, world: Snapshot) -> Request:
        """With its rank; the use and promises of its slice are not read again later."""
        gpus, found = self._gpus(request.pools, request.nodes), request
        if self._policy.order == "shortest-service":
            found = replace(found, service=service_of(gpus, request.duration))
        if self._books is not None and request.slice:
            asked = Demand(request.key, request.filed_at, gpus, request.duration)
            leases = [lease for lease in world.leases.values() if lease.slice == request.slice]
            held = [(lease, self._gpus((lease.pool,), len(lease.nodes))) for lease in leases]
            self._books.filed(request.slice, asked, held, world.now)
        if self._policy.max_wait_multiple is not None:
            found = replace(found, latest=self._latest(found, world, self._policy.max_wait_multiple))
        return self._as_of(found, world.now)

    def aged(self, now: int, waiting: Mapping[str, Request]) -> Iterator[Request]:
        """Requests whose priority rises by a whole step, or whose share falls by one."""
        while self._changes and self._changes[0][0] <= now:
            _, key = heapq.heappop(self._changes)
            request = waiting.get(key)
            if request is not None and key not in self._protected:
                changed = self._as_of(request, now)
                if changed != request:
                    yield changed

    def displaced(self, gave_way: Iterable[str], waiting: Mapping[str, Request]) -> Iterator[Request]:
        """Requests displaced so often that they are now protected within their band."""
        for key in gave_way:
            count = self._gave_way[key] = self._gave_way.get(key, 0) + 1
            if count == self._policy.max_displacements:
                self._protected.add(key)
                yield protected(waiting[key])

    def started(self, request: Request, lease: Lease) -> None:
        """Its promise becomes its lease."""
        if self._books is not None and request.slice:
            self._books.started(lease)

    def ended(self, lease: Lease) -> None:
        """Its use counts, decaying."""
        if self._books is not None and lease.slice:
            self._books.ended(lease, self._gpus((lease.pool,), len(lease.nodes)))

    def _as_of(self, request: Request, now: int) -> Request:
        """With the effects of waiting by now; notes when they change next."""
        waited, ageing, found = now - request.filed_at, self._policy.ageing, request
        if ageing is not None:
            since = max(request.filed_at, request.not_before)
            found = replace(found, boost=aged(request.priority, now - since, ageing))
            if found.boost < room_in_band(request.priority):
                every = int(ageing.every.total_seconds())
                again = since + (max(0, now - since) // every + 1) * every
                heapq.heappush(self._changes, (again, request.key))
        if self._books is not None and request.slice:
            steps, after = self._books.share(request.slice, request.key, waited)
            found = replace(found, share=steps)
            if after is not None:
                heapq.heappush(self._changes, (request.filed_at + after, request.key))
        return found

    def _gpus(self, pools: Iterable[PoolKey], nodes: int) -> int:
        return nodes * next((self._pools[key].gpus_per_node for key in pools if key in self._pools), 1)

    def _latest(self, request: Request, world: Snapshot, multiple: float) -> int:
        among = replace(world, requests={**world.requests, request.key: request})
        place = plan(first_come(among)).placements.get(request.key)
        since = max(request.filed_at, request.not_before)
        return FOREVER if place is None else latest(since, place.start, multiple)


class Books:
    """GPU-hours of each slice: used so far, held, and promised to waiting requests."""

    def __init__(self, fairness: Fairness, weights: Mapping[str, float]) -> None:
        self._step, self._half_life = fairness.step, fairness.half_life.total_seconds()
        self._weights = weights
        self._used: dict[str, tuple[float, int]] = {}  # GPU-hours, and as of when
        self._waiting: dict[str, dict[str, float]] = {}  # GPU-hours of each request, by slice
        self._places: dict[str, tuple[float, float]] = {}  # the slice's use and earlier wishes at filing

    def filed(self, slice_: str, asked: Demand, held: Iterable[tuple[Lease, int]], now: int) -> None:
        """It takes its place behind the waiting requests of its slice."""
        used_h = self._used_by(slice_, now)
        used_h += sum(of_lease(gpus, lease.start, lease.end, now, self._half_life) for lease, gpus in held)
        waiting = self._waiting.setdefault(slice_, {})
        self._places[asked.key] = (used_h, sum(waiting.values()))
        waiting[asked.key] = asked.gpu_hours

    def share(self, slice_: str, key: str, waited_s: int) -> tuple[int, int | None]:
        """Its share after this wait, and when it decreases next; None: never."""
        scale = Scale(self._weights.get(slice_, 1.0), self._step, self._half_life)
        place = self._places[key]
        found = share(*place, waited_s, scale)
        low, high = waited_s, max(1, waited_s) + 4 * int(self._half_life)
        if found == 0 or share(*place, high, scale) == found:
            return found, None if found == 0 else high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if share(*place, middle, scale) == found else (low, middle)
        return found, high

    def started(self, lease: Lease) -> None:
        """From now on its lease counts."""
        self._waiting.get(lease.slice, {}).pop(lease.key, None)

    def ended(self, lease: Lease, gpus: int) -> None:
        """Its use counts."""
        hours = used(gpus, lease.start, lease.end, lease.end, self._half_life)
        self._used[lease.slice] = (self._used_by(lease.slice, lease.end) + hours, lease.end)

    def _used_by(self, slice_: str, now: int) -> float:
        hours, at = self._used.get(slice_, (0.0, now))
        return decayed(hours, now - at, self._half_life)
