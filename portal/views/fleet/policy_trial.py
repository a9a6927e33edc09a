"""A scheduling policy tried on the requests of the last days: the same replay as `egs simulate --history`. Pure.

Held by tests/portal/pages/test_insight_pages.py: the present policy tried is the present policy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field, ValidationError

from portal.http.context import Wire, example
from portal.http.errors import bad_parameters, conflict
from portal.views.view import View
from reconciler.accounts.past_requests import history
from scheduler.fairness.rank import band
from scheduler.replay.figures import Figures, figures
from scheduler.replay.record import Run
from scheduler.replay.replay_rank import ByPolicy
from scheduler.replay.simulation import Rules, Simulation
from scheduler.replay.trace import Trace
from schemas.documents.scheduling import Scheduling

MOST = 2_000
"""Requests of one trial: more would take minutes."""
BANDS = {0: "low", 1: "medium", 2: "high"}


class TrialFigures(Wire):
    """What one policy would have done; times in seconds, shares from 0 to 1."""

    requests: int
    wait: dict[str, float]
    utilisation: float
    bounded_slowdown: float
    estimate: dict[str, float]
    slipped: int
    slips_with_true_cause: int


_EXAMPLE: dict[str, Any] = {
    "requests": 120,
    "wait": {"mean": 5400.0, "p50": 1800.0, "p90": 14400.0, "p99": 43200.0},
    "utilisation": 0.81,
    "boundedSlowdown": 2.4,
    "estimate": {
        "meanAbsoluteError": 120.0,
        "p50": 0.0,
        "p90": 600.0,
        "within10min": 0.9,
        "within1h": 0.98,
    },
    "slipped": 4,
    "slipsWithTrueCause": 4,
}


class Trial(Wire):
    """Two policies on the same requests."""

    model_config = example(
        {
            "days": 30,
            "requests": 120,
            "present": _EXAMPLE,
            "tried": {**_EXAMPLE, "slipped": 7},
            "bands": {"medium": [_EXAMPLE, _EXAMPLE]},
            "changed": 14,
            "earlier": 9,
            "later": 5,
        }
    )

    days: int
    requests: int = Field(description="Replayed requests.")
    present: TrialFigures
    tried: TrialFigures
    bands: dict[str, tuple[TrialFigures, TrialFigures]] = Field(
        description="The same by priority: low, medium, high; the present policy first."
    )
    changed: int = Field(description="Requests that would have started at another time.")
    earlier: int
    later: int


def policy_of(fields: Mapping[str, Any]) -> Scheduling:
    """The policy that `spec.scheduling` of a manifest with these fields has. ApiError 422."""
    try:
        return Scheduling.model_validate_json(json.dumps(fields))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "scheduling"
        raise bad_parameters(f"{where}: {first['msg']}") from error


def trial(view: View, tried: Scheduling, days: int, now: datetime) -> Trial:
    """ApiError 409: there is nothing to replay; 422: too many requests."""
    trace = history(view.facts, view.wanted, now - timedelta(days=days))
    if not trace.arrivals:
        raise conflict(f"no request was filed in the last {days} days, so there is nothing to replay")
    if len(trace.arrivals) > MOST:
        raise bad_parameters(f"days: {len(trace.arrivals)} requests are too many for a page; try fewer days")
    before, after = (_run(trace, policy) for policy in (view.wanted.project.scheduling, tried))
    then = {record.key: record.start for record in before.records}
    moves = [(then.get(r.key), r.start) for r in after.records if r.start != then.get(r.key)]
    return Trial(
        days=days,
        requests=len(trace.arrivals),
        present=_told(figures(before)),
        tried=_told(figures(after)),
        bands={
            name: (_told(_of_band(before, number)), _told(_of_band(after, number)))
            for number, name in BANDS.items()
            if any(band(record.priority) == number for record in before.records)
        },
        changed=len(moves),
        earlier=sum(now is not None and (was is None or now < was) for was, now in moves),
        later=sum(was is not None and (now is None or now > was) for was, now in moves),
    )


def _run(trace: Trace, policy: Scheduling) -> Run:
    ordering = ByPolicy(policy, trace.pools, trace.weights)
    rules = replace(Rules(), preemption=policy.preemption)
    simulation = Simulation(trace, ordering, rules)
    for _ in simulation.instants():
        pass
    return simulation.result()


def _of_band(run: Run, number: int) -> Figures:
    return figures(run, [record for record in run.records if band(record.priority) == number])


def _told(found: Figures) -> TrialFigures:
    told: dict[str, Any] = found.json()
    return TrialFigures.model_validate(told)
