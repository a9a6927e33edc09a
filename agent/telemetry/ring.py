"""The last six hours of a node's GPUs, in memory: a sample each 10 s for an hour, one each 60 s before that.

Memory is bounded by the number of GPUs that were ever seen, and a GPU that was not seen for six hours is forgotten. A
sample each minute summarises those of that minute, each metric in its own way. Nothing here reads a clock, and times
that go back are ignored. Not thread-safe.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import isnan, nan

from reconciler.telemetry.telemetry_port import Metric, Summary

FINE_S, FINE_SLOTS = 10, 360
COARSE_S, COARSE_SLOTS = 60, 360
"""Seconds between two samples, and how many are kept."""


@dataclass(slots=True)
class _Tier:
    """Samples at one distance; the slot of an instant is its number of steps since 1970, modulo `slots`."""

    step_s: int
    slots: int
    times: array[int] = field(init=False)  # when a slot's sample ends; 0: none
    columns: dict[Metric, array[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.times = array("q", [0]) * self.slots

    def put(self, number: int, ends_s: int, values: Mapping[Metric, float]) -> None:
        slot = number % self.slots
        self.times[slot] = ends_s
        for metric in values.keys() - self.columns.keys():
            self.columns[metric] = array("d", [nan]) * self.slots
        for metric, column in self.columns.items():
            column[slot] = values.get(metric, nan)

    def samples(self, metric: Metric, since_s: int, until_s: int) -> Iterator[tuple[int, float]]:
        """Time and value in (since, until], by time."""
        column = self.columns.get(metric)
        if column is None:
            return
        last = until_s // self.step_s
        for number in range(max(since_s // self.step_s - 1, last - self.slots + 1), last + 1):
            slot = number % self.slots
            if since_s < self.times[slot] <= until_s and not isnan(column[slot]):
                yield self.times[slot], column[slot]


@dataclass(slots=True)
class _Gpu:
    fine: _Tier = field(default_factory=lambda: _Tier(FINE_S, FINE_SLOTS))
    coarse: _Tier = field(default_factory=lambda: _Tier(COARSE_S, COARSE_SLOTS))
    seen_s: int = 0


class Ring:
    """Values of GPUs by uuid; times in seconds since 1970."""

    def __init__(self) -> None:
        self._gpus: dict[str, _Gpu] = {}
        self._at_s = 0

    def put(self, values: Mapping[str, Mapping[Metric, float]], at: datetime) -> None:
        """One sample of every GPU that answered, by uuid."""
        at_s = int(at.timestamp())
        if at_s < self._at_s:
            return  # the clock was set back: what is known already counts
        self._at_s = at_s
        for uuid, of_gpu in values.items():
            if not of_gpu:
                continue
            gpu = self._gpus.setdefault(uuid, _Gpu())
            gpu.fine.put(at_s // FINE_S, at_s, of_gpu)
            self._put_minute(gpu, at_s)
            gpu.seen_s = at_s
        for uuid in [u for u, gpu in self._gpus.items() if at_s - gpu.seen_s > COARSE_S * COARSE_SLOTS]:
            del self._gpus[uuid]

    @property
    def fine_since_s(self) -> int:
        """Before it there is one sample a minute."""
        return self._at_s // FINE_S * FINE_S - (FINE_SLOTS - 1) * FINE_S

    def uuids(self) -> tuple[str, ...]:
        return tuple(sorted(self._gpus))

    def points(self, uuid: str, metric: Metric, instants: range, window_s: int) -> list[float | None]:
        """The metric's summary of (t - window, t] for each instant; None where nothing is known."""
        gpu = self._gpus.get(uuid)
        if gpu is None or not instants:
            return [None] * len(instants)
        since_s, until_s = instants[0] - window_s, min(instants[-1], self._at_s)
        samples = self._samples(gpu, metric, since_s, until_s)
        return _windows(samples, instants, window_s, metric.summary)

    def _samples(self, gpu: _Gpu, metric: Metric, since_s: int, until_s: int) -> list[tuple[int, float]]:
        turn = min(max(since_s, self.fine_since_s), until_s)
        old = gpu.coarse.samples(metric, since_s, turn)
        return [*old, *gpu.fine.samples(metric, turn, until_s)]

    def _put_minute(self, gpu: _Gpu, at_s: int) -> None:
        """The running minute's sample, of all that was read in it so far."""
        begin = at_s // COARSE_S * COARSE_S
        minute = {
            metric: [value for _, value in gpu.fine.samples(metric, begin - 1, at_s)]
            for metric in gpu.fine.columns
        }
        # It ends with its minute, so that a window never has a part of it that lies after the window.
        gpu.coarse.put(
            begin // COARSE_S,
            begin + COARSE_S,
            {m: _summary(values, m.summary) for m, values in minute.items() if values},
        )


def _windows(
    samples: list[tuple[int, float]], instants: range, window_s: int, how: Summary
) -> list[float | None]:
    """Both ends of each window only move forward. O(instants + samples × windows that overlap)."""
    found: list[float | None] = []
    first = last = 0
    for at in instants:
        while last < len(samples) and samples[last][0] <= at:
            last += 1
        while first < last and samples[first][0] <= at - window_s:
            first += 1
        values = [value for _, value in samples[first:last]]
        found.append(_summary(values, how) if values else None)
    return found


def _summary(values: list[float], how: Summary) -> float:
    if how == "last":
        return values[-1]
    return max(values) if how == "highest" else sum(values) / len(values)
