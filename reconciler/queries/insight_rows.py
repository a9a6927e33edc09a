"""`egs insights`: statistics of finished requests, from `insights.yaml` on the status branch."""

from __future__ import annotations

from typing import Any

from reconciler.accounts.insights import EMPTY, MARKS_S
from reconciler.queries.state import clock
from reconciler.sources.open_source import opened
from schemas.status.insights import DayTally, Insights, Tally


def insights_json(found: Insights, days: int) -> dict[str, Any]:
    return {
        "total": tally_json(found.total),
        "byShape": {name: tally_json(one) for name, one in found.shapes.items()},
        "bySlice": {name: tally_json(one) for name, one in found.slices.items()},
        "byHour": {name: tally_json(one) for name, one in found.hours.items()},
        "byDay": {name: tally_json(one) for name, one in sorted(found.days.items())[-days:]},
        "slips": dict(found.causes),
    }


def tally_json(one: Tally) -> dict[str, Any]:
    """Statistics of finished requests; null where nothing was counted."""
    content: dict[str, Any] = {
        "requests": one.requests,
        "ran": one.ran,
        "askedGpuHours": one.asked_gpu_hours,
        "usedGpuHours": one.used_gpu_hours,
        "meanWaitSeconds": _per(one.wait_s, one.ran),
        "p50WaitAtMostSeconds": wait_at_most(one, 0.5),
        "p90WaitAtMostSeconds": wait_at_most(one, 0.9),
        "promise": {
            "requests": one.promised,
            "meanAbsoluteErrorSeconds": _per(one.error_s, one.promised),
            "within10min": _per(one.within_10min, one.promised),
            "within1h": _per(one.within_1h, one.promised),
        },
        "forecast": {
            "requests": one.expected,
            "meanAbsoluteErrorSeconds": _per(one.expected_error_s, one.expected),
            "covered": _per(one.covered, one.expected),
        },
        "slipped": one.slipped,
    }
    if isinstance(one, DayTally):
        content["heldGpuHours"] = one.held_gpu_hours
        content["utilisation"] = _per(one.held_gpu_hours, one.gpus * 24)
    return content


def _per(sum_: float, count: float) -> float | None:
    return round(sum_ / count, 4) if count else None


def wait_at_most(one: Tally, share: float) -> int | None:
    """The smallest bucket bound that covers this share of the waits; None: beyond all bounds, or none ran."""
    passed = 0
    for mark, count in zip(MARKS_S, one.waits, strict=False):
        passed += count
        if one.ran and passed >= share * one.ran:
            return mark
    return None


def insights_of(repo: str | None, now: str | None, days: int) -> dict[str, Any]:
    with opened(repo) as source:
        loaded = source.loaded(clock(now, source))
    return insights_json(EMPTY if loaded is None else loaded.facts.insights or EMPTY, days)
