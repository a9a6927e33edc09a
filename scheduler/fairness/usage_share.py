"""What a slice used, relative to its weight. Pure.

A share is a whole number of steps, so that slices served about equally compare equal and the next criterion of the
rank decides. Its inputs are read once, when a request takes its place in the queue, and decay from then on like all
use, so that requests filed at different times are comparable.

Use counts half after a half-life, however it is split; on a saturated fleet slices get what their weights say.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

HOUR = 3600


@dataclass(frozen=True, slots=True)
class Demand:
    """What a request will hold, for fairness; `key` breaks ties of `filed_at`."""

    key: str
    filed_at: int
    gpus: int
    duration: int

    @property
    def gpu_hours(self) -> float:
        return self.gpus * self.duration / HOUR


@dataclass(frozen=True, slots=True)
class Scale:
    """Units of use: the slice's weight, GPU-hours per step, and the half-life in seconds."""

    weight: float
    step: int
    half_life_s: float


def decayed(gpu_hours: float, age_s: float, half_life_s: float) -> float:
    """The rest of GPU-hours counted `age_s` ago: half after each half-life."""
    return gpu_hours * math.exp2(-max(0.0, age_s) / half_life_s)


def used(gpus: float, begin: float, end: float, at: float, half_life_s: float) -> float:
    """GPU-hours of `gpus` GPUs on [begin, end), each instant decayed until `at`, which is not before `end`.

    The integral of gpus x 2^(-(at - t) / half-life) over [begin, end), in hours.
    """
    if end <= begin:
        return 0.0
    rate = half_life_s / HOUR / math.log(2)
    return gpus * rate * (math.exp2((end - at) / half_life_s) - math.exp2((begin - at) / half_life_s))


def of_lease(gpus: float, begin: float, end: float, at: float, half_life_s: float) -> float:
    """What a lease on [begin, end) counts at `at`: its use until then, decayed, plus all of its remaining time."""
    until = min(max(at, begin), end)
    return used(gpus, begin, until, at, half_life_s) + gpus * (end - until) / HOUR


def share(used_h: float, ahead_h: float, waited_s: float, scale: Scale) -> int:
    """Whole steps of use over weight, `waited_s` after the request took its place."""
    return math.floor(counted(used_h, ahead_h, waited_s, scale.half_life_s) / scale.weight / scale.step)


def counted(used_h: float, ahead_h: float, waited_s: float, half_life_s: float) -> float:
    """GPU-hours that count for a request `waited_s` after it took its place.

    The slice's earlier use decays on; what its own earlier requests will hold counts as used evenly over the wait, so
    that long and short queues compare: the mean of 2^(-t / half-life) for t in [0, waited).
    """
    x = max(0.0, waited_s) * math.log(2) / half_life_s
    left = math.exp(-x)
    return used_h * left + ahead_h * ((1 - left) / x if x > 0 else 1.0)


def ahead(waiting: Iterable[Demand]) -> Iterator[tuple[str, float]]:
    """For each waiting request of one slice, by key, the GPU-hours of those filed before it."""
    before = 0.0
    for request in sorted(waiting, key=lambda asked: (asked.filed_at, asked.key)):
        yield request.key, before
        before += request.gpu_hours
