"""A model in a few figures: average use, the hottest GPU, the one that draws most, idle ones, time lost. Pure.

Held by tests/reconciler/workloads/test_summary.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from statistics import fmean
from typing import Any

from reconciler.telemetry.telemetry_port import Metric, Series
from reconciler.workloads.gpu_rows import Gpu
from reconciler.workloads.thresholds import BRAKE_BIT, HEAT_BITS, IDLE_PERCENT

Row = dict[str, Any]


def summary(gpus: Sequence[Gpu], allocated: int) -> Row:
    """Of these GPUs, as far as they are measured; `allocated` counts unmeasured ones too."""
    used = [gpu.values[Metric.UTILISATION] for gpu in gpus if Metric.UTILISATION in gpu.values]
    return {
        "gpus": allocated,
        "measuredGpus": len(used),
        "idleGpus": sum(gpu.is_idle is True for gpu in gpus) if used else None,
        "hotGpus": sum(gpu.is_hot for gpu in gpus) if used else None,
        "averageUtilisationPercent": round(fmean(used), 1) if used else None,
        "powerW": _total(gpus, Metric.POWER),
        "hottest": _most(gpus, Metric.TEMPERATURE, "tempC"),
        "mostPower": _most(gpus, Metric.POWER, "powerW"),
    }


def _total(gpus: Iterable[Gpu], metric: Metric) -> float | None:
    found = [gpu.values[metric] for gpu in gpus if metric in gpu.values]
    return round(sum(found), 1) if found else None


def _most(gpus: Iterable[Gpu], metric: Metric, name: str) -> Row | None:
    """The GPU with the highest value; the first by place of equal ones."""
    known = [gpu for gpu in gpus if metric in gpu.values]
    if not known:
        return None
    top = min(known, key=lambda gpu: (-gpu.values[metric], gpu.cluster, gpu.node, gpu.index or 0, gpu.uuid))
    return {
        "cluster": top.cluster,
        "node": top.node,
        "index": top.index,
        "uuid": top.uuid,
        name: top.values[metric],
    }


def time_lost(series: Iterable[Series], step: timedelta) -> Row:
    """GPU-seconds of a range in which GPUs were idle, or slowed down by heat or the power brake; null: unknown."""
    found = list(series)
    return {
        "idleGpuSeconds": _seconds(found, Metric.UTILISATION, step, IDLE_PERCENT),
        "slowedGpuSeconds": _slowed(found, step),
    }


def _seconds(series: Sequence[Series], metric: Metric, step: timedelta, below: float) -> int | None:
    points = [point for one in series if one.metric is metric for point in one.points]
    return int(sum(point.value < below for point in points) * step.total_seconds()) if points else None


def _slowed(series: Sequence[Series], step: timedelta) -> int | None:
    points = [point for one in series if one.metric is Metric.THROTTLE for point in one.points]
    slow = sum(bool(int(point.value) & (HEAT_BITS | BRAKE_BIT)) for point in points)
    return int(slow * step.total_seconds()) if points else None
