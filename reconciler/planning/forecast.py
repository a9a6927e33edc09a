"""The likely start, recorded with each published promise and only then: learning causes no commit. Pure."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.accounts.promises import promise_of
from reconciler.model.facts import Facts
from reconciler.planning.forecast_inputs import Lesson, lesson
from scheduler.estimates.calibration import habit_of, told
from scheduler.estimates.expected_starts import Drawn, drawn
from scheduler.snapshot import Plan, Snapshot
from schemas.reading.units import instant, seconds
from schemas.status.gpr_status import GPRStatus, Phase
from schemas.status.insights import FirstEstimate, Forecast


@dataclass(frozen=True, slots=True)
class Expected:
    """The forecast of one request, before and after calibration."""

    drawn: Drawn
    forecast: Forecast


def with_forecasts(
    facts: Facts, published: MutableMapping[str, GPRStatus], world: Snapshot, planned: Plan
) -> None:
    """Sets a new forecast, and the first estimate, for the requests whose promises changed since `facts`."""
    fresh = [key for key in planned.placements if _is_fresh(facts.requests.get(key), published.get(key))]
    if fresh:
        found = expected(facts, published, world, planned, fresh)
        for key in fresh:
            published[key] = _with_forecast(published[key], found.get(key))


def _is_fresh(old: GPRStatus | None, new: GPRStatus | None) -> bool:
    if new is None or new.phase is not Phase.QUEUED or new.estimated_start_time is None:
        return False
    return old is None or old.estimated_start_time != new.estimated_start_time


def expected(
    facts: Facts, requests: Mapping[str, GPRStatus], world: Snapshot, planned: Plan, keys: list[str]
) -> dict[str, Expected]:
    """Forecasts of these waiting requests; empty if there are too few data."""
    if not facts.ended:
        return {}
    known = lesson(facts, world)
    found = drawn(world, planned, known.learnt, keys)
    return {
        key: _told(known, requests[key], one, (world, planned.placements[key].start))
        for key, one in found.items()
    }


def _told(known: Lesson, status: GPRStatus, one: Drawn, plan: tuple[Snapshot, int]) -> Expected:
    habit, (world, start) = habit_of(known.habits, status.accepted_spec.priority), plan
    said = told(one, start, seconds(status.filed_at), world.now, habit)
    return Expected(one, forecast(said, known))


def forecast(said: Drawn, known: Lesson) -> Forecast:
    return Forecast(
        p10=instant(said.p10), p50=instant(said.p50), p90=instant(said.p90), learnt_from=known.requests
    )


def _with_forecast(status: GPRStatus, found: Expected | None) -> GPRStatus:
    status = status.edited(forecast=None if found is None else found.forecast)
    if promise_of(status) is not None or status.estimated_start_time is None:
        return status
    return status.edited(
        first_estimate=FirstEstimate(
            filed_at=status.filed_at,
            start=status.estimated_start_time,
            drawn=() if found is None else _instants(found.drawn),
            told=() if found is None else (found.forecast.p10, found.forecast.p50, found.forecast.p90),
            served=status.served or None,
        )
    )


def _instants(one: Drawn) -> tuple[datetime, ...]:
    return (instant(one.p10), instant(one.p50), instant(one.p90))
