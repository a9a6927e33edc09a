"""The input of a replay: pools, leases at the beginning, and requests with the time that they really use.

Pure. Times are whole seconds on the trace's own clock.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from scheduler.instance import Row, as_snapshot
from scheduler.snapshot import Lease, Pool, PoolKey, Request

_LEAST_USED = 0.05
"""Least share of its time that an early release uses."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request as it is filed at `request.filed_at`.

    `actual`: seconds after which it gives its nodes back; if not less than its duration, it runs to its
    strict end.
    """

    request: Request
    actual: int
    name: str = ""  # its name in the trace
    preemptible: bool = True


@dataclass(frozen=True, slots=True)
class Trace:
    """All input of a simulation. `running` hold nodes from `begin` on; `actual` says how long, by key."""

    begin: int
    pools: Mapping[PoolKey, Pool]
    arrivals: tuple[Arrival, ...]
    running: Mapping[str, Lease] = field(default_factory=dict)
    actual: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)  # of those that run
    weights: Mapping[str, float] = field(default_factory=dict)  # of slices; default 1
    order: tuple[str, ...] = ()  # keys in the order of the file


def from_rows(rows: Sequence[Row], sizes: Mapping[str, int]) -> Trace:
    """The rows of the bare interface on pools of these sizes; raises InstanceError.

    The clock starts with the first request; running rows hold their nodes from then on.
    """
    begin = min((row.submit for row in rows if not row.running), default=0)
    snapshot = as_snapshot(rows, dict(sizes), begin)
    keys = [*snapshot.requests, *snapshot.leases]
    by_key = dict(zip(keys, sorted(rows, key=lambda row: row.running), strict=True))
    asked = [(request, by_key[key]) for key, request in snapshot.requests.items()]
    return Trace(
        begin=begin,
        pools=snapshot.pools,
        arrivals=tuple(Arrival(request, _used(row), row.id) for request, row in asked),
        running=snapshot.leases,
        actual={key: _used(by_key[key]) for key in snapshot.leases},
        names={key: by_key[key].id for key in snapshot.leases},
        order=tuple(sorted(keys)),
    )


def _used(row: Row) -> int:
    return row.duration if row.actual is None else min(row.actual, row.duration)


def arriving_faster(trace: Trace, factor: float) -> Trace:
    """The same requests with all intervals between arrivals divided by `factor`, and their other times shifted."""

    def sooner(at: int) -> int:
        return trace.begin + round((at - trace.begin) / factor)

    def moved(arrival: Arrival) -> Arrival:
        request = arrival.request
        filed_at = sooner(request.filed_at)
        after = max(filed_at, filed_at + request.not_before - request.filed_at)
        passed = filed_at - request.filed_at
        fallback = {pool: since + passed for pool, since in request.fallback.items()}
        made = replace(request, filed_at=filed_at, not_before=after, fallback=fallback)
        return replace(arrival, request=made)

    return replace(trace, arrivals=tuple(moved(arrival) for arrival in trace.arrivals))


def releasing_early(trace: Trace, share: float, seed: int = 0) -> Trace:
    """The trace with this share of the requests ending early: after 5 to 100 % of their time, uniformly drawn."""
    chance = random.Random(seed)  # noqa: S311 - reproducible on purpose

    def released(arrival: Arrival) -> Arrival:
        # Both numbers are drawn for each request, so that a larger share only adds early releases.
        lot, used = chance.random(), chance.uniform(_LEAST_USED, 1)
        if lot >= share:
            return arrival
        return replace(arrival, actual=min(arrival.actual, max(1, round(used * arrival.request.duration))))

    return replace(trace, arrivals=tuple(released(arrival) for arrival in trace.arrivals))
