"""`egs insights`: statistics of finished requests, from `insights.yaml` on the status branch."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from reconciler.accounts.insights import EMPTY, MARKS_S
from reconciler.cli import output
from reconciler.cli.output import Form
from reconciler.queries.state import clock
from reconciler.sources.source import opened
from schemas.status.insights import DayTally, Insights, Tally

_HEAD = (
    "REQUESTS",
    "RAN",
    "GPU-H ASKED",
    "GPU-H USED",
    "MEAN WAIT",
    "P50",
    "P90",
    "ERROR",
    "IN 1H",
    "COVERED",
)


def insights_json(found: Insights, days: int) -> dict[str, Any]:
    """The answer of `egs insights -o json`."""
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


def show_insights(repo: str | None, now: str | None, days: int, form: Form) -> None:
    with opened(repo) as source:
        loaded = source.loaded(clock(now, source))
    found = EMPTY if loaded is None else loaded.facts.insights or EMPTY
    if form is not Form.TABLE:
        output.data(insights_json(found, days), form)
        return
    if not found.total.requests:
        output.note("no request has ended yet, so there is nothing to show")
        return
    _table("SHAPE", {**found.shapes, "all": found.total})
    _table("SLICE", found.slices)
    _table("HOUR (UTC)", found.hours)
    _days(dict(sorted(found.days.items())[-days:]))
    output.text("")
    rows = sorted(found.causes.items(), key=lambda entry: (-entry[1], entry[0]))
    output.table(("CAUSE", "MOVES TO LATER"), rows, "no promise moved later")


def _table(what: str, tallies: Mapping[str, Tally]) -> None:
    output.table((what, *_HEAD), (_cells(name, one) for name, one in tallies.items()), "")
    output.text("")


def _days(days: Mapping[str, DayTally]) -> None:
    rows = ((*_cells(day, one), _share(_per(one.held_gpu_hours, one.gpus * 24))) for day, one in days.items())
    output.table(("DAY (UTC)", *_HEAD, "UTILISATION"), rows, "")


def _cells(name: str, one: Tally) -> tuple[Any, ...]:
    return (
        name,
        one.requests,
        one.ran,
        round(one.asked_gpu_hours, 1),
        round(one.used_gpu_hours, 1),
        _spoken(_per(one.wait_s, one.ran)),
        _bound(one, 0.5),
        _bound(one, 0.9),
        _spoken(_per(one.error_s, one.promised)),
        _share(_per(one.within_1h, one.promised)),
        _share(_per(one.covered, one.expected)),
    )


def _bound(one: Tally, share: float) -> str | None:
    mark = wait_at_most(one, share)
    if mark is None:
        return f"> {output.spoken(timedelta(seconds=MARKS_S[-1]))}" if one.ran else None
    return f"<= {output.spoken(timedelta(seconds=mark))}"


def _spoken(wait_s: float | None) -> str | None:
    return None if wait_s is None else output.spoken(timedelta(seconds=round(wait_s)))


def _share(share: float | None) -> str | None:
    return None if share is None else f"{share:.0%}"
