"""What was tried in vain, and need not be tried again while nothing is another. A memory of one process.

An extension that would hurt somebody, an eviction that cannot be called off, room that nobody could make: each costs
plans of its own to find out, and would be found again in every cycle. As long as nothing but the time is another, the
answer stands; after `LOOK_AGAIN_S` everything is tried once more, for time alone may open a way too.

A plan that leaves everybody where they were promised to be is kept as long (`scheduler.standing`).

Worth it by `benchmarks.cycle`, of cycles in which nothing changed: without the plan that is kept they cost 15 % more,
and with ten refused extensions three times as much without what was tried.

Held by tests/reconciler/deciding/test_failed_attempts.py: a quiet cycle makes no plan, or one; whatever changes is
tried at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from scheduler.calendars.elastic import is_placeholder
from scheduler.choices.preemption import Terms, ripe_at
from scheduler.snapshot import Lease, Plan, Pool, Request, Snapshot
from scheduler.standing import is_settled, stands

LOOK_AGAIN_S = 300
"""A promise that moves earlier by less is hardly worth a plan in every cycle until then."""


class FailedAttempts:
    """What one process life has tried in vain in the present world. One owner."""

    def __init__(self) -> None:
        self._world: Snapshot | None = None
        self._hurt: dict[tuple[str, Lease], str | None] = {}
        self._nobody: tuple[Mapping[str, int], Terms] | None = None
        self._until = 0
        self._settled: tuple[Snapshot, Plan] | None = None

    def planned(self, world: Snapshot, make: Callable[[Snapshot], Plan]) -> Plan:
        """The plan of this world: the last one, where it still stands, else as `make` makes it."""
        if self._settled is not None and stands(*self._settled, world):
            return self._settled[1]
        planned = make(world)
        self._settled = (world, planned) if is_settled(world, planned) else None
        return planned

    def enter(self, world: Snapshot) -> None:
        """Forget what was tried in another world, or long ago."""
        old = self._world
        if old is None or world.now >= old.now + LOOK_AGAIN_S or not alike(old, world):
            self._world, self._hurt, self._nobody = world, {}, None

    def hurt(self, key: str, longer: Lease, found: Callable[[], str | None]) -> str | None:
        """Whom it would hurt if that lease were so; None, nobody, is never remembered."""
        known = self._hurt.get((key, longer))
        if known is None:
            known = self._hurt[key, longer] = found()
        return known

    def is_nobody_sent(self, going: Mapping[str, int], terms: Terms, now: int) -> bool:
        """Whether a look showed that none of these is worth to be sent away, and none has become so since."""
        return self._nobody == (going, terms) and now < self._until

    def nobody_was_sent(self, world: Snapshot, going: Mapping[str, int], terms: Terms) -> None:
        """A look at that world in vain."""
        self._nobody, self._until = (dict(going), terms), ripe_at(world, going, terms)


def alike(old: Snapshot, new: Snapshot) -> bool:
    """Whether nothing but the time differs. Costs a glance at each request."""
    if old.requests.keys() != new.requests.keys() or old.leases != new.leases:
        return False
    if old.pools.keys() != new.pools.keys():
        return False
    passed = new.now - old.now
    return all(_is_same(was, new.requests[key]) for key, was in old.requests.items()) and all(
        _is_as_large(was, new.pools[key], passed) for key, was in old.pools.items()
    )


def _is_same(was: Request, request: Request) -> bool:
    return was is request or was == request


def _is_as_large(was: Pool, pool: Pool, passed: int) -> bool:
    """The same pool; of one that grows, nodes that nobody asked for are always as far away."""
    if was == pool:
        return True
    if not any(map(is_placeholder, pool.nodes)) or len(was.withheld) != len(pool.withheld):
        return False
    shifted = tuple(kept if kept.reserve else replace(kept, end=kept.end + passed) for kept in was.withheld)
    steps = zip(was.withheld, shifted, pool.withheld, strict=True)
    return all(now in (then, later) for then, later, now in steps) and was == replace(
        pool, withheld=was.withheld
    )
