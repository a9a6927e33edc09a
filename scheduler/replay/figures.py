"""The figures of a replay. Pure.

Waits, slowdowns and errors cover every request that started; those that ran from the beginning count for utilisation
only. Percentiles interpolate linearly between the two nearest values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.replay.record import Record, Run

_SHORT_S = 10
"""Bounded slowdown counts shorter runs as this long (Feitelson and Rudolph, JSSPP 1998)."""
_NEAR_S, _FAR_S = 600, 3600
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Wait:
    """Seconds from filing to start."""

    mean: float
    p50: float
    p90: float
    p99: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """Distance of starts from the first estimates: absolute errors in seconds, and shares of the requests."""

    mean_absolute_error: float
    p50: float
    p90: float
    within_10min: float
    within_1h: float


@dataclass(frozen=True, slots=True)
class Figures:
    """The result of `egs simulate`.

    `utilisation`: node-seconds used, divided by those available from the first arrival to the last end.
    `slipped`: requests that ever moved later; `slips_with_true_cause`: those whose causes were all proven by planning
    again without them.
    """

    requests: int
    wait: Wait
    utilisation: float
    bounded_slowdown: float
    estimate: Estimate
    slipped: int
    slips_with_true_cause: int

    def json(self) -> dict[str, object]:
        """The documented JSON."""
        wait, estimate = self.wait, self.estimate
        return {
            "requests": self.requests,
            "wait": {"mean": wait.mean, "p50": wait.p50, "p90": wait.p90, "p99": wait.p99},
            "utilisation": self.utilisation,
            "boundedSlowdown": self.bounded_slowdown,
            "estimate": {
                "meanAbsoluteError": estimate.mean_absolute_error,
                "p50": estimate.p50,
                "p90": estimate.p90,
                "within10min": estimate.within_10min,
                "within1h": estimate.within_1h,
            },
            "slipped": self.slipped,
            "slipsWithTrueCause": self.slips_with_true_cause,
        }


def figures(run: Run, records: Iterable[Record] | None = None) -> Figures:
    """Figures of the whole run, or of these records; shares of nothing are 0."""
    chosen = run.records if records is None else tuple(records)
    filed = [record for record in chosen if not record.was_running]
    started = [record for record in filed if record.start is not None]
    errors = [abs(record.error) for record in started if record.error is not None]
    slipped = [record for record in filed if record.slips]
    true = [record for record in slipped if record.is_explained]
    return Figures(
        requests=len(filed),
        wait=_wait([record.wait or 0 for record in started]),
        utilisation=utilisation(run, chosen),
        bounded_slowdown=_mean([bounded_slowdown(record) for record in started]),
        estimate=_estimate(errors),
        slipped=len(slipped),
        slips_with_true_cause=len(true),
    )


def utilisation(run: Run, records: Iterable[Record] | None = None) -> float:
    """Share of all node-seconds from the first arrival to the last end that were used."""
    chosen = run.records if records is None else records
    there = run.nodes * (run.end - run.begin)
    return round(sum(record.used * record.nodes for record in chosen) / there, _DIGITS) if there > 0 else 0.0


def bounded_slowdown(record: Record) -> float:
    """Time from filing to the end, divided by the running time (at least ten seconds); never below 1."""
    wait, used = record.wait or 0, record.used
    return max(1.0, (wait + used) / max(used, _SHORT_S))


def _wait(waits: Sequence[int]) -> Wait:
    p50, p90, p99 = _percentiles(waits, (50, 90, 99))
    return Wait(_mean(waits), p50, p90, p99)


def _estimate(errors: Sequence[int]) -> Estimate:
    p50, p90 = _percentiles(errors, (50, 90))
    near = _mean([error <= _NEAR_S for error in errors])
    return Estimate(_mean(errors), p50, p90, near, _mean([error <= _FAR_S for error in errors]))


def _percentiles(values: Sequence[float], at: Sequence[int]) -> list[float]:
    return [round(float(v), _DIGITS) for v in np.percentile(values, at)] if values else [0.0] * len(at)


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), _DIGITS) if values else 0.0
