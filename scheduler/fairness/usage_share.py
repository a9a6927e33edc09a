"""What a slice used, and what share of the fleet that is beside its weight. Pure.

A share is a whole number of steps, so that slices about as well served are equal and the next word of the rank
decides. What it is made of is read once, when a request takes its place in the queue; as everything that was used, it
decays from then on, so that requests filed at different times compare as they stand now.

Held by tests/scheduler/fairness/test_usage_share.py: what is used counts half after a half-life, however it is cut into
pieces; on a saturated fleet slices get what their weights say.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

HOUR = 3600


@dataclass(frozen=True, slots=True)
class Demand:
    """What a request of a slice holds once it runs, as far as fairness goes; `key` breaks ties of `filed_at`."""

    key: str
    filed_at: int
    gpus: int
    duration: int

    @property
    def gpu_hours(self) -> float:
        """All its GPUs for all its time."""
        return self.gpus * self.duration / HOUR


@dataclass(frozen=True, slots=True)
class Scale:
    """By what use is measured: a slice's weight, GPU-hours of a step, seconds after which use counts half."""

    weight: float
    step: int
    half_life_s: float


def decayed(gpu_hours: float, age_s: float, half_life_s: float) -> float:
    """What is left of GPU-hours that were counted `age_s` ago: half after each half-life."""
    return gpu_hours * math.exp2(-max(0.0, age_s) / half_life_s)


def used(gpus: float, begin: float, end: float, at: float, half_life_s: float) -> float:
    """GPU-hours of so many GPUs on [begin, end), each instant decayed until `at`, which is not before `end`.

    The integral of gpus x 2^(-(at - t) / half-life) over [begin, end), in hours.
    """
    if end <= begin:
        return 0.0
    rate = half_life_s / HOUR / math.log(2)
    return gpus * rate * (math.exp2((end - at) / half_life_s) - math.exp2((begin - at) / half_life_s))


def of_lease(gpus: float, begin: float, end: float, at: float, half_life_s: float) -> float:
    """What a lease on [begin, end) counts at `at`: what it used by then, decayed, and all that it has yet to use."""
    until = min(max(at, begin), end)
    return used(gpus, begin, until, at, half_life_s) + gpus * (end - until) / HOUR


def share(used_h: float, ahead_h: float, waited_s: float, scale: Scale) -> int:
    """Whole steps of use over weight, of a request that has waited so long since its place was read."""
    return math.floor(counted(used_h, ahead_h, waited_s, scale.half_life_s) / scale.weight / scale.step)


def counted(used_h: float, ahead_h: float, waited_s: float, half_life_s: float) -> float:
    """GPU-hours that count for a request that has waited so long since its place was read.

    What its slice had used decays on; what its own requests before it hold is taken as used evenly over the wait, so
    that long and short queues compare: the mean of 2^(-t / half-life) for t in [0, waited).
    """
    x = max(0.0, waited_s) * math.log(2) / half_life_s
    left = math.exp(-x)
    return used_h * left + ahead_h * ((1 - left) / x if x > 0 else 1.0)


def ahead(waiting: Iterable[Demand]) -> Iterator[tuple[str, float]]:
    """For each request of one slice that waits, by key, the GPU-hours of those filed before it."""
    before = 0.0
    for request in sorted(waiting, key=lambda asked: (asked.filed_at, asked.key)):
        yield request.key, before
        before += request.gpu_hours
