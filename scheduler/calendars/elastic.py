"""Pools whose nodes come when they are needed and go when they are not. Pure.

Nodes that a pool could have and has not stand in it as placeholders, alike with all others, and are withheld until the
instant at which they can be there: from now if nobody asked for them, from the asking if somebody did. So planning
needs to know nothing of them: whoever is worth waiting for a new node is planned on one.

Held by tests/scheduler/calendars/test_elastic.py:
  * following `sizes` as time passes, whoever is planned on nodes that do not exist finds them there;
  * no node is let go that the plan needs before another could be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from scheduler.snapshot import Lease, Plan, Pool, PoolKey, Snapshot, Withheld
from schemas.documents.elastic import Elastic
from schemas.reading.units import seconds
from schemas.status.inventory import PoolScale

AHEAD_S = 120
"""Nodes are asked for so much before they are needed: the controller looks twice a minute, and may be slow once."""
LONGEST_DOUBLING = 5
"""Nodes that do not come are expected after twice the time, four times, at most 32 times the time it should take."""
_MARK = "+"
"""No node's name may begin so."""


def placeholders(count: int) -> tuple[str, ...]:
    """Names of so many nodes that do not exist."""
    return tuple(f"{_MARK}{i}" for i in range(1, count + 1))


def is_placeholder(node: str) -> bool:
    """Whether this is a node that does not exist (yet)."""
    return node.startswith(_MARK)


def existing(pool: Pool) -> tuple[str, ...]:
    """The pool's nodes that are there."""
    return tuple(node for node in pool.nodes if not is_placeholder(node))


def grown(pool: Pool, names: Iterable[str], terms: Elastic, scale: PoolScale | None, now: int) -> Pool:
    """The pool with all nodes it could have; `names` are there, `scale` is what was asked for (None: nothing yet)."""
    leaving = () if scale is None else scale.leaving
    there = tuple(name for name in names if name not in leaving)
    missing = max(0, terms.max - len(there))
    waits = int(terms.scale_up.total_seconds())
    coming = {} if scale is None else coming_at(scale, waits, now)
    if scale is None:  # nobody looked: the least it has is there
        missing_now = max(0, missing - max(0, terms.min - len(there)))
        coming = {now: missing - missing_now}
    asked = sum(coming.values())
    kept = [Withheld(0, now + waits, missing - asked)] if missing > asked else []
    kept += [Withheld(0, at, nodes) for at, nodes in sorted(coming.items()) if at > now and nodes]
    return replace(
        pool, nodes=(*there, *placeholders(missing)), withheld=(*pool.withheld, *kept), discovered=False
    )


def coming_at(scale: PoolScale, waits: int, now: int) -> dict[int, int]:
    """How many of the nodes that were asked for are expected when."""
    found: dict[int, int] = {}
    for ask in scale.asks:
        at = max(expected(seconds(ask.at), ask.late, waits), now + 1)
        found[at] = found.get(at, 0) + ask.nodes
    return found


def expected(asked_at: int, late: int, waits: int) -> int:
    """When nodes asked for then are to be there, after so many times of waiting in vain."""
    return asked_at + (waits << min(late, LONGEST_DOUBLING))


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many usable nodes a pool should have: at least `least` (ask for what is missing), at most `most` (let go)."""

    least: int
    most: int


def sizes(snapshot: Snapshot, planned: Plan, terms: Mapping[PoolKey, Elastic]) -> dict[PoolKey, Sizes]:
    """For each elastic pool, from what the plan needs of it and when.

    Ask for what is needed before new nodes could be there (and a little longer, see `AHEAD_S`); let go of what is not
    needed within `letGo`, nor before others could be there.
    """
    holds = _holds(snapshot, planned, terms)
    found = {}
    for key, elastic in terms.items():
        soon = snapshot.now + int(elastic.scale_up.total_seconds()) + AHEAD_S
        later = max(soon, snapshot.now + int(elastic.let_go.total_seconds()))
        least, most = (_most_at_once(holds[key], snapshot.now, until) for until in (soon, later))
        found[key] = Sizes(_bounded(least, elastic), _bounded(most, elastic))
    return found


def asked_at(snapshot: Snapshot, planned: Plan, terms: Mapping[PoolKey, Elastic]) -> tuple[int, ...]:
    """The instants from now on at which `sizes` counts one more request among what is needed soon."""
    found = set[int]()
    for place in planned.placements.values():
        elastic = terms.get(place.pool)
        if elastic is not None:
            begin = place.start - snapshot.pools[place.pool].prepare
            found.add(begin - int(elastic.scale_up.total_seconds()) - AHEAD_S + 1)
    return tuple(sorted(at for at in found if at > snapshot.now))


def _bounded(needed: int, elastic: Elastic) -> int:
    return min(max(needed + elastic.warm, elastic.min), elastic.max)


Hold = tuple[int, int, int]
"""(begin, end, nodes)."""


def _holds(snapshot: Snapshot, planned: Plan, terms: Mapping[PoolKey, Elastic]) -> dict[PoolKey, list[Hold]]:
    holds: dict[PoolKey, list[Hold]] = {key: [] for key in terms}
    for lease in snapshot.leases.values():
        if lease.pool in holds:
            holds[lease.pool].append((0, _until(lease), len(lease.nodes)))
    if holds:
        for key, place in planned.placements.items():
            if place.pool in holds:
                pool = snapshot.pools[place.pool]
                begin, end = place.start - pool.prepare, place.end + pool.drain
                holds[place.pool].append((begin, end, snapshot.requests[key].nodes))
    for where, pool in snapshot.pools.items():
        if where in holds:  # what a policy keeps back has to be there too
            holds[where] += [(kept.begin, kept.end, kept.nodes) for kept in pool.withheld if kept.reserve]
    return holds


def _until(lease: Lease) -> int:
    return max(lease.held_until, lease.held_from + 1)


def _most_at_once(holds: Iterable[Hold], begin: int, end: int) -> int:
    """The largest number of nodes in use at one instant of [begin, end)."""
    steps: dict[int, int] = {}
    for start, stop, nodes in holds:
        if start < end and stop > begin:
            steps[max(start, begin)] = steps.get(max(start, begin), 0) + nodes
            steps[stop] = steps.get(stop, 0) - nodes
    most = used = 0
    for _, change in sorted(steps.items()):
        used += change
        most = max(most, used)
    return most
