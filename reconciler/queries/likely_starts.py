"""The likely start of a request that is not filed yet, for each pool it could use."""

from __future__ import annotations

from reconciler.planning.forecast import forecast
from reconciler.planning.forecast_inputs import lesson
from reconciler.queries.state import State
from scheduler.estimates.calibration import habit_of, told
from scheduler.estimates.expected_starts import drawn_quotes
from scheduler.plan import plan
from scheduler.quote import Quote
from scheduler.snapshot import PoolKey, Request
from schemas.status.insights import Forecast


def likely_starts(state: State, request: Request, answers: tuple[Quote, ...]) -> dict[PoolKey, Forecast]:
    """By pool; empty if too few requests have ended to learn from, as in a repository without a controller."""
    planned = {answer.pool: answer.start for answer in answers if answer.start is not None}
    if state.committed is None or not state.facts.ended or not planned:
        return {}
    known = lesson(state.facts, state.snapshot)
    found = drawn_quotes(state.snapshot, plan(state.snapshot), known.learnt, request)
    habit, now = habit_of(known.habits, request.priority), state.snapshot.now
    return {
        pool: forecast(told(one, planned[pool], now, now, habit), known)
        for pool, one in found.items()
        if pool in planned
    }
