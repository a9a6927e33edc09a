"""Who waits while a trace is replayed, with the promises that stand; plans are made by `scheduler.plan.plan`.

What the controller does with a plan, less the damping: every placement becomes a promise at once, and who got
none waits for room that nobody was promised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from scheduler.causes import Moved, slips
from scheduler.simulating.fleet import Fleet
from scheduler.snapshot import (
    Change,
    Displaced,
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
"""Plans a world, and may change who holds nodes in it until when."""


@dataclass(frozen=True, slots=True)
class Move:
    """A start that is not what it was; `was` None: the first one, `place` None: none any more."""

    key: str
    was: int | None
    place: Placement | None

    @property
    def is_slip(self) -> bool:
        """Later than it was promised, or lost."""
        return self.was is not None and (self.place is None or self.place.start > self.was)


@dataclass(frozen=True, slots=True)
class Planned:
    """What a plan changed, in rank order. `made` gives what was planned, promises as before, and the plan."""

    moves: tuple[Move, ...]
    displaced: Sequence[Displaced]
    refusals: Mapping[str, Refusal]
    made: Callable[[], tuple[Snapshot, Plan]]

    @property
    def settled(self) -> bool:
        """Nobody who had a start has another one: planning again would change nothing either."""
        return all(move.was is None for move in self.moves)


@dataclass(slots=True)
class Since:
    """What happened since the last plan that can take room away, and what was there before it did."""

    now: int
    changes: list[Change] = field(default_factory=list)
    requests: dict[str, Request] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    pools: dict[PoolKey, Pool] = field(default_factory=dict)

    def before(self, after: Snapshot) -> Snapshot:
        """The world at the last plan as far as undoing a change needs it."""
        return Snapshot(self.now, {**after.pools, **self.pools}, self.leases, self.requests)


class Waiting(Protocol):
    """Requests that wait, each with its promise."""

    @property
    def requests(self) -> Mapping[str, Request]:
        """By key, as they are now."""

    def file(self, request: Request) -> None:
        """It waits from now on, and may push others aside as its rank allows."""

    def change(self, request: Request) -> None:
        """Another rank for one that waits; its promise stands."""

    def leave(self, key: str) -> Request:
        """It has nodes now."""

    def plan(self, now: int, fleet: Fleet, engine: Engine, roomier: bool) -> Planned:
        """Plans everybody and keeps the starts as promises; `roomier`: room may have appeared since the last plan."""

    def causes(
        self, since: Since, planned: Planned, slipped: Sequence[Move], trials: int
    ) -> Mapping[str, Moved]:
        """Why each of these moved later, shown by planning again without the changes, at most so often."""


class Queue:
    """Any requests on any pools. Costs of a plan: the planner's, and a look at every start."""

    def __init__(self) -> None:
        self.requests: dict[str, Request] = {}

    def file(self, request: Request) -> None:
        """As `Waiting`."""
        self.requests[request.key] = replace(request, promise=None, may_displace=True)

    def change(self, request: Request) -> None:
        """As `Waiting`."""
        self.requests[request.key] = request

    def leave(self, key: str) -> Request:
        """As `Waiting`."""
        return self.requests.pop(key)

    def plan(self, now: int, fleet: Fleet, engine: Engine, roomier: bool) -> Planned:  # noqa: ARG002
        """As `Waiting`."""
        world, found = engine(Snapshot(now, fleet.pools, dict(fleet.leases), dict(self.requests)))
        moves = tuple(moves_of(world, found))
        for move in moves:
            self.requests[move.key] = promised(world.requests[move.key], move.place)
        for key in found.refusals:
            self.requests[key] = replace(self.requests[key], may_displace=False)
        return Planned(moves, tuple(found.displaced), found.refusals, lambda: (world, found))

    def causes(
        self,
        since: Since,
        planned: Planned,
        slipped: Sequence[Move],  # noqa: ARG002
        trials: int,
    ) -> Mapping[str, Moved]:
        """As `Waiting`."""
        return causes_of(since, planned, trials)


def promised(request: Request, place: Placement | None) -> Request:
    """As it waits on once its place is committed."""
    promise = None if place is None else Promise(place.pool, place.start, place.bound)
    return replace(request, promise=promise, may_displace=promise is not None)


def moves_of(world: Snapshot, found: Plan) -> Iterator[Move]:
    """Every start that is new, elsewhere or at another time."""
    placements = found.placements
    for key in found.order:
        promise, place = world.requests[key].promise, placements.get(key)
        was = None if promise is None else (promise.pool, promise.start, promise.bound)
        now = None if place is None else (place.pool, place.start, place.bound)
        if was != now:
            yield Move(key, None if promise is None else promise.start, place)


def causes_of(since: Since, planned: Planned, trials: int) -> Mapping[str, Moved]:
    """By undoing changes of the world that was planned."""
    world, plan = planned.made()
    found = slips(since.before(world), world, since.changes, plan, trials)
    return {slip.key: slip for slip in found}
