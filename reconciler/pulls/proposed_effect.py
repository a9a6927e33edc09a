"""What a check says, and beside it what people ask before they push: costs before and after, evictions, likely starts.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from reconciler.planning.forecast import expected
from reconciler.pulls.before_and_after import Sights
from reconciler.pulls.check import PullCheck, RequestChange, holding, priced
from scheduler.causes.compare import carry
from scheduler.plan import plan
from schemas.reading.units import instant
from schemas.status.gpr_status import HOLDING, Phase
from schemas.status.insights import Forecast

FORECAST_AMONG = 200
"""Largest queue for which likely starts are computed: that simulates many futures of the whole queue."""


@dataclass(frozen=True, slots=True)
class Evicted:
    """A running request that has to give its nodes back earlier."""

    key: str
    by: str  # the request that it makes room for
    at: datetime
    was: datetime | None  # its end before the change
    back: datetime | None  # when it resumes; None: unknown


@dataclass(frozen=True, slots=True)
class Proposed:
    """The answer to a change that was not pushed."""

    check: PullCheck
    costs_before: Mapping[str, float] = field(default_factory=dict)  # of its requests that had a cost
    evicted: tuple[Evicted, ...] = ()
    forecasts: Mapping[str, Forecast] = field(default_factory=dict)  # of its waiting requests

    @property
    def cost_before(self) -> float:
        """Of all its requests."""
        return round(sum(self.costs_before.values()), 2)

    @property
    def cost_after(self) -> float:
        """Of all its requests."""
        return round(sum(request.amount or 0.0 for request in self.check.requests), 2)


def proposed(check: PullCheck, sights: Sights) -> Proposed:
    """The check of these two sides with the rest."""
    costs = ((request.key, _cost_before(request.key, sights)) for request in check.requests)
    return Proposed(
        check,
        {key: cost for key, cost in costs if cost is not None},
        tuple(_evicted(check, sights)),
        _forecasts(check, sights),
    )


def _cost_before(key: str, sights: Sights) -> float | None:
    status = sights.base.facts.requests.get(key)
    if status is None:
        return None
    request = RequestChange(key, "", "changed", status.phase, nodes=status.accepted_spec.nodes)
    if status.phase in HOLDING:
        return holding(request, status, sights.base).amount
    planned = sights.promised.requests.get(key)
    if planned is None or planned.promise is None:
        return None
    start = planned.promise.start
    placed = replace(request, start=instant(start), end=instant(start + planned.duration))
    return priced(placed, planned.promise.pool, sights.base).amount


def _evicted(check: PullCheck, sights: Sights) -> Iterator[Evicted]:
    base, head = sights.base.facts.requests, sights.head.facts.requests
    for key in check.sent_away:
        status, before = head[key], base.get(key)
        if status.eviction is not None:
            was = None if before is None else before.end_time or before.estimated_end_time
            back = None if status.eviction.back is None else status.eviction.back.start
            yield Evicted(key, status.eviction.by, status.eviction.at, was, back)


def _forecasts(check: PullCheck, sights: Sights) -> dict[str, Forecast]:
    head = sights.head
    waiting = [one.key for one in check.requests if one.phase is Phase.QUEUED and one.start is not None]
    if not waiting or len(head.snapshot.requests) > FORECAST_AMONG:
        return {}
    world = carry(sights.promised, head.snapshot)
    found = expected(head.facts, head.facts.requests, world, plan(world), waiting)
    return {key: one.forecast for key, one in sorted(found.items())}
