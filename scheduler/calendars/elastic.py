"""Elastic pools: nodes come when needed and go when not. Pure.

Nodes that a pool could have but has not are placeholders in it, equal to all others, and withheld until they can
exist: counted from the time they were asked for, or from now if they were not. So planning needs no special case: a
request for which a new node is worth the wait is planned on one.

What always holds:
  * following `sizes` over time, a request planned on nodes that do not exist finds them;
  * no node is removed that the plan needs before a new one could exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from scheduler.snapshot import Plan, Pool, PoolKey, Snapshot, Withheld
from schemas.documents.elastic import Elastic
from schemas.reading.units import seconds
from schemas.status.inventory import PoolScale

AHEAD_S = 120
"""How long before their use nodes are requested: the controller runs twice a minute, and one run may be slow."""
LONGEST_DOUBLING = 5
"""Late nodes are expected after twice the time, then four times, at most 32 times."""
_MARK = "+"
"""Prefix of placeholders; real node names cannot begin with it."""


def placeholders(count: int) -> tuple[str, ...]:
    return tuple(f"{_MARK}{i}" for i in range(1, count + 1))


def is_placeholder(node: str) -> bool:
    """Whether this node does not exist (yet)."""
    return node.startswith(_MARK)


def existing(pool: Pool) -> tuple[str, ...]:
    return tuple(node for node in pool.nodes if not is_placeholder(node))


def grown(pool: Pool, names: Iterable[str], terms: Elastic, scale: PoolScale | None, now: int) -> Pool:
    """The pool with all nodes it could have; `names` exist, `scale` is what was requested (None: nothing yet)."""
    leaving = () if scale is None else scale.leaving
    there = tuple(name for name in names if name not in leaving)
    missing = max(0, terms.max - len(there))
    waits = int(terms.scale_up.total_seconds())
    coming = {} if scale is None else coming_at(scale, waits, now)
    if scale is None:  # nothing observed yet: the minimum exists
        missing_now = max(0, missing - max(0, terms.min - len(there)))
        coming = {now: missing - missing_now}
    asked = sum(coming.values())
    kept = [Withheld(0, now + waits, missing - asked)] if missing > asked else []
    kept += [Withheld(0, at, nodes) for at, nodes in sorted(coming.items()) if at > now and nodes]
    return replace(
        pool, nodes=(*there, *placeholders(missing)), withheld=(*pool.withheld, *kept), discovered=False
    )


def coming_at(scale: PoolScale, waits: int, now: int) -> dict[int, int]:
    """How many requested nodes are expected when."""
    found: dict[int, int] = {}
    for ask in scale.asks:
        at = max(expected(seconds(ask.at), ask.late, waits), now + 1)
        found[at] = found.get(at, 0) + ask.nodes
    return found


def expected(asked_at: int, late: int, waits: int) -> int:
    """When nodes requested at that time are expected, after `late` failed waits."""
    return asked_at + (waits << min(late, LONGEST_DOUBLING))


@dataclass(frozen=True, slots=True)
class Sizes:
    """The range of usable nodes for a pool: below `least` request more, above `most` remove some."""

    least: int
    most: int


def sizes(snapshot: Snapshot, planned: Plan, terms: Mapping[PoolKey, Elastic]) -> dict[PoolKey, Sizes]:
    """For each elastic pool, from what the plan needs of it and when.

    Request what is needed before new nodes could exist (and a little longer, see `AHEAD_S`); remove what is needed
    neither within `letGo` nor before new nodes could exist.
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
    """Instants from now on at which `sizes` counts a further request as needed soon."""
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
            holds[lease.pool].append((0, max(lease.held_until, lease.held_from + 1), len(lease.nodes)))
    if holds:
        for key, place in planned.placements.items():
            if place.pool in holds:
                pool = snapshot.pools[place.pool]
                begin, end = place.start - pool.prepare, place.end + pool.drain
                holds[place.pool].append((begin, end, snapshot.requests[key].nodes))
    for where, pool in snapshot.pools.items():
        if where in holds:  # nodes kept by a policy must exist too
            holds[where] += [(kept.begin, kept.end, kept.nodes) for kept in pool.withheld if kept.reserve]
    return holds


def _most_at_once(holds: Iterable[Hold], begin: int, end: int) -> int:
    """The most nodes in use at any instant of [begin, end)."""
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
