"""Remembers failed attempts, which need not be repeated while only the clock changes. A memory of one process.

Finding out that an extension, a cancelled eviction or making room fails costs plans in every cycle. After
`LOOK_AGAIN_S` all is tried again: time alone may make it possible. A plan that keeps every promise is kept as
long (`scheduler.standing`).

Worth it by `benchmarks.cycle` if nothing changed: without the kept plan a cycle costs 15 % more, and with ten
refused extensions three times as much without what was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from scheduler.calendars.elastic import is_placeholder
from scheduler.choices.preemption import Terms, ripe_at
from scheduler.snapshot import Lease, Plan, Pool, Snapshot
from scheduler.standing import is_settled, stands

LOOK_AGAIN_S = 300
"""Until then, a promise that could move earlier by less is not worth a plan in every cycle."""


class FailedAttempts:
    """Failed attempts of this process in the present snapshot. One owner."""

    def __init__(self) -> None:
        self._world: Snapshot | None = None
        self._hurt: dict[tuple[str, Lease], str | None] = {}
        self._nobody: tuple[Mapping[str, int], Terms] | None = None
        self._until = 0
        self._settled: tuple[Snapshot, Plan] | None = None

    def planned(self, world: Snapshot, make: Callable[[Snapshot], Plan]) -> Plan:
        """The plan of this snapshot: the last one if it still holds, else as `make` makes it."""
        if self._settled is not None and stands(*self._settled, world):
            return self._settled[1]
        planned = make(world)
        self._settled = (world, planned) if is_settled(world, planned) else None
        return planned

    def enter(self, world: Snapshot) -> None:
        """Forgets attempts in another snapshot, or from long ago."""
        old = self._world
        if old is None or world.now >= old.now + LOOK_AGAIN_S or not alike(old, world):
            self._world, self._hurt, self._nobody = world, {}, None

    def hurt(self, key: str, longer: Lease, found: Callable[[], str | None]) -> str | None:
        """The request that this lease would delay, cached; None (no request) is never cached."""
        known = self._hurt.get((key, longer))
        if known is None:
            known = self._hurt[key, longer] = found()
        return known

    def is_nobody_sent(self, going: Mapping[str, int], terms: Terms, now: int) -> bool:
        """True if an earlier look found none of these worth evicting, and none has become so since."""
        return self._nobody == (going, terms) and now < self._until

    def nobody_was_sent(self, world: Snapshot, going: Mapping[str, int], terms: Terms) -> None:
        self._nobody, self._until = (dict(going), terms), ripe_at(world, going, terms)


def alike(old: Snapshot, new: Snapshot) -> bool:
    """True if only the clock changed. O(requests)."""
    if old.requests.keys() != new.requests.keys() or old.leases != new.leases:
        return False
    if old.pools.keys() != new.pools.keys():
        return False
    passed = new.now - old.now
    return all(
        was is new.requests[key] or was == new.requests[key] for key, was in old.requests.items()
    ) and all(_is_as_large(was, new.pools[key], passed) for key, was in old.pools.items())


def _is_as_large(was: Pool, pool: Pool, passed: int) -> bool:
    """True for the same pool; unrequested nodes of a growing pool stay equally far in the future."""
    if was == pool:
        return True
    if not any(map(is_placeholder, pool.nodes)) or len(was.withheld) != len(pool.withheld):
        return False
    shifted = tuple(kept if kept.reserve else replace(kept, end=kept.end + passed) for kept in was.withheld)
    steps = zip(was.withheld, shifted, pool.withheld, strict=True)
    return all(now in (then, later) for then, later, now in steps) and was == replace(
        pool, withheld=was.withheld
    )
