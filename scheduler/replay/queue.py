"""The waiting requests of a replay with their promises; `scheduler.plan.plan` makes the plans.

As in the controller, but without damping: every placement becomes a promise at once, and a request without one then
only gets nodes that no promise holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from scheduler.causes.causes import slips
from scheduler.replay.replay_fleet import Fleet
from scheduler.snapshot import (
    FOREVER,
    Change,
    Lease,
    Placement,
    Plan,
    Pool,
    PoolKey,
    Promise,
    Refusal,
    Request,
    Snapshot,
)

Engine = Callable[[Snapshot], tuple[Snapshot, Plan]]
"""Plans a world, and may change its leases."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The changes of a plan, in rank order. `made` gives the planned world, with earlier promises, and the plan.

    `first`: requests with a first start. `slipped`: requests whose start is later than promised, or lost; `gave_way`:
    those of them that were displaced, in order. `settled`: no request that had a start has a different one, so planning
    again would change nothing.
    """

    first: Sequence[tuple[str, int]]
    slipped: Sequence[str]
    gave_way: Sequence[str]
    settled: bool
    refusals: Mapping[str, Refusal]
    made: Callable[[], tuple[Snapshot, Plan]]


@dataclass(frozen=True, slots=True)
class Why:
    """The causes of some slips, and whether they are proven by planning again without them."""

    keys: Sequence[str]
    causes: tuple[Change, ...]
    proven: bool


@dataclass(slots=True)
class Since:
    """Changes since the last plan that can take nodes away, and the state before them."""

    now: int
    changes: list[Change] = field(default_factory=list)
    requests: dict[str, Request] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    pools: dict[PoolKey, Pool] = field(default_factory=dict)

    def before(self, after: Snapshot) -> Snapshot:
        """The world at the last plan, as far as undoing a change needs it."""
        return Snapshot(self.now, {**after.pools, **self.pools}, self.leases, self.requests)


class Waiting(Protocol):
    """Waiting requests, each with its promise."""

    @property
    def requests(self) -> Mapping[str, Request]:
        """By key, as they are now."""

    def file(self, request: Request) -> None:
        """Add it, without a promise."""

    def change(self, request: Request) -> None:
        """Change the rank of a waiting request; its promise stands."""

    def leave(self, key: str) -> Request:
        """Remove it: it has nodes now."""

    def plan(self, now: int, fleet: Fleet, engine: Engine, roomier: bool) -> Planned:
        """Plan all requests and keep the starts as promises; `roomier`: nodes may have become free since."""

    def causes(self, since: Since, planned: Planned, trials: int) -> Sequence[Why]:
        """The causes of the slips, proven by planning again without the changes, with at most that many plans."""

    def next_begin(self) -> int:
        """When the next hold begins; `FOREVER` without promises."""

    def due(self, now: int) -> Sequence[str]:
        """Requests whose holds begin by now, in order of promise. Each is returned once between two plans."""


class Queue:
    """Any requests on any pools, as `Waiting`. A plan costs the planner's time, plus O(requests)."""

    def __init__(self, pools: Mapping[PoolKey, Pool]) -> None:
        self.requests: dict[str, Request] = {}
        self._pools = pools
        self._named = set[str]()

    def file(self, request: Request) -> None:
        self.requests[request.key] = replace(request, promise=None)

    def change(self, request: Request) -> None:
        self.requests[request.key] = request

    def leave(self, key: str) -> Request:
        return self.requests.pop(key)

    def plan(self, now: int, fleet: Fleet, engine: Engine, roomier: bool) -> Planned:  # noqa: ARG002
        world, found = engine(Snapshot(now, fleet.pools, dict(fleet.leases), dict(self.requests)))
        self._named.clear()
        moves = tuple(moves_of(world, found))
        for key, _, place in moves:
            self.requests[key] = promised(world.requests[key], place)
        for key in found.refusals:
            self.requests[key] = replace(self.requests[key], may_displace=False)
        slipped = [k for k, was, place in moves if was is not None and (place is None or place.start > was)]
        later = set(slipped)
        return Planned(
            [(key, place.start) for key, was, place in moves if was is None and place is not None],
            slipped,
            [one.key for one in found.displaced if one.by and one.key in later],
            all(was is None for _, was, _ in moves),
            found.refusals,
            lambda: (world, found),
        )

    def causes(self, since: Since, planned: Planned, trials: int) -> Sequence[Why]:
        return causes_of(since, planned, trials)

    def next_begin(self) -> int:
        return min((at for at, _ in self._begins()), default=FOREVER)

    def due(self, now: int) -> Sequence[str]:
        found = [key for at, key in sorted(self._begins()) if at <= now]
        self._named.update(found)
        return found

    def _begins(self) -> Iterator[tuple[int, str]]:
        for key, request in self.requests.items():
            if request.promise is not None and key not in self._named:
                yield request.promise.start - self._pools[request.promise.pool].prepare, key


def promised(request: Request, place: Placement | None) -> Request:
    """The request after its place is committed."""
    promise = None if place is None else Promise(place.pool, place.start, place.bound)
    return replace(request, promise=promise, may_displace=promise is not None)


def moves_of(world: Snapshot, found: Plan) -> Iterator[tuple[str, int | None, Placement | None]]:
    """Every start that is new or changed, with the earlier one."""
    placements = found.placements
    for key in found.order:
        promise, place = world.requests[key].promise, placements.get(key)
        was = None if promise is None else (promise.pool, promise.start, promise.bound)
        now = None if place is None else (place.pool, place.start, place.bound)
        if was != now:
            yield key, None if promise is None else promise.start, place


def causes_of(since: Since, planned: Planned, trials: int) -> Sequence[Why]:
    """By undoing changes of the planned world."""
    world, plan = planned.made()
    found = slips(since.before(world), world, since.changes, plan, trials)
    return [Why((slip.key,), slip.causes, slip.proven) for slip in found]
