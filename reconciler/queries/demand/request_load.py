"""The load of a slice as its own requests tell it: nodes in use by hour, and nodes known to be needed. Pure.

Use comes from `insights/` on the status branch, which keeps two weeks of finished requests, and from running ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import ceil

import numpy as np

from reconciler.accounts.insights import Ended, ended_of
from reconciler.model.facts import Facts
from reconciler.model.statuses import live
from scheduler.demand.advice import HOUR_S
from scheduler.demand.load import Floats, Load
from scheduler.snapshot import Plan, Snapshot
from schemas.reading.units import seconds

EDGE = 0.1
"""Node-hours: a lease that reaches a few minutes into an hour is no need of that hour."""

Use = tuple[int, int, int]
"""From, to (seconds since 1970), and nodes."""


def load_of(facts: Facts, slice_: str, now: int) -> Load:
    """Nodes in use in each whole hour up to `now`, from the first use that is known on."""
    ended = (one for record in facts.ended.values() for one in _read(record.rows) if one.slice == slice_)
    past = [(one.start, one.start + one.used, one.nodes) for one in ended if one.start is not None]
    uses = [*past, *_running(facts, slice_, now)]
    if not uses:
        return Load(HOUR_S, np.zeros(0))
    first = min(begin for begin, _, _ in uses)
    return Load(HOUR_S, by_hour(uses, now - HOUR_S * ((now - first) // HOUR_S), now))


def by_hour(uses: Iterable[Use], since: int, until: int) -> Floats:
    """The mean of nodes in use in each hour of [since, until)."""
    edges = np.arange(since, until + 1, HOUR_S, dtype=np.float64)
    found = np.zeros(max(0, len(edges) - 1))
    for begin, end, nodes in uses:
        shared = np.minimum(edges[1:], end) - np.maximum(edges[:-1], begin)
        found += nodes * np.maximum(shared, 0.0) / HOUR_S
    return found


def known_needs(slice_: str, facts: Facts, world: Snapshot, plan: Plan, hours: int) -> list[int]:
    """Nodes that its requests of today need in each hour from now on, on the mean and rounded up.

    A waiting request needs them from when it wanted to start until its planned end.
    """
    spans = _spans(slice_, facts, world, plan)
    found = by_hour(spans, world.now, world.now + hours * HOUR_S)
    return [max(0, ceil(float(nodes) - EDGE)) for nodes in found]


def own_ends(slice_: str, world: Snapshot, plan: Plan) -> list[int]:
    """When the slice's leases and planned requests end."""
    leases = [lease.end for lease in world.leases.values() if lease.slice == slice_]
    placed = [
        plan.placements[key].end
        for key, request in sorted(world.requests.items())
        if request.slice == slice_ and key in plan.placements
    ]
    return [*leases, *placed]


def _spans(slice_: str, facts: Facts, world: Snapshot, plan: Plan) -> Iterator[Use]:
    for lease in world.leases.values():
        if lease.slice == slice_:
            yield lease.start, lease.end, len(lease.nodes)
    placements = plan.placements
    for key, status in sorted(live(facts.requests).items()):
        request = world.requests.get(key)
        if request is not None and status.accepted_spec.slice == slice_:
            since = max(request.filed_at, request.not_before)
            placed = placements.get(key)
            until = since + request.duration if placed is None else placed.end
            yield since, max(until, since + request.duration), request.nodes


def _running(facts: Facts, slice_: str, now: int) -> Iterator[Use]:
    for status in live(facts.requests).values():
        if status.accepted_spec.slice == slice_ and status.start_time is not None:
            end = now if status.end_time is None else min(now, seconds(status.end_time))
            yield seconds(status.start_time), end, status.accepted_spec.nodes


@lru_cache(maxsize=64)
def _read(rows: tuple[str, ...]) -> tuple[Ended, ...]:
    return tuple(one for row in rows if (one := ended_of(row)) is not None)
