"""The Helios trace as jobs: SenseTime's cluster Earth, May 2020 (Hu et al., SC '21; CC BY 4.0).

It has no jobs, but at every change how many run and wait in each virtual cluster, and on how many GPUs. A rise of their
number is read as arrivals that share the GPUs that came, a fall as ends: of running jobs with the nearest number of
GPUs, the longest running first. So sizes and single run times are guesses; bursts, hours of the day and the work in
total are the trace's. Jobs that ran when it begins, or still run when it ends, are left out.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.philly import Job

_HEAD = "vc,time,running_gpujob_num,"
_BEGIN = datetime(2020, 5, 1, tzinfo=UTC)


def is_helios(file: Path) -> bool:
    """Whether the file is this trace, by its first line."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return lines.readline().startswith(_HEAD)


def jobs(file: Path) -> list[Job]:
    """The jobs of all virtual clusters, in order of submission."""
    clusters: dict[str, list[_Change]] = {}
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            clusters.setdefault(row["vc"], []).append(_change(row))
    found = [job for name, many in sorted(clusters.items()) for job in _Cluster(name).jobs(many)]
    return sorted(found, key=lambda job: (job.submit, job.id))


@dataclass(frozen=True, slots=True)
class _Change:
    at: int
    running: int
    jobs: int
    gpus: int


def _change(row: dict[str, str]) -> _Change:
    at = datetime.fromisoformat(row["time"]).replace(tzinfo=UTC)
    running = int(row["running_gpujob_num"])
    gpus = int(row["running_gpu_num"]) + int(row["pending_gpu_num"])
    return _Change(
        int((at - _BEGIN).total_seconds()), running, running + int(row["pending_gpujob_num"]), gpus
    )


@dataclass(slots=True)
class _Live:
    submit: int
    gpus: int
    is_whole: bool  # it arrived after the trace begins
    start: int | None = None


@dataclass(slots=True)
class _Cluster:
    name: str
    live: list[_Live] = field(default_factory=list)  # in order of submission
    done: list[Job] = field(default_factory=list)

    def jobs(self, changes: Sequence[_Change]) -> list[Job]:
        """Those that arrived and ended between the changes."""
        before = _Change(0, 0, 0, 0)
        for number, now in enumerate(changes):
            many, gpus = now.jobs - before.jobs, now.gpus - before.gpus
            if many > 0:
                self._come(now.at, many, gpus, is_whole=number > 0)
            elif many < 0:
                self._go(now.at, -many, -gpus)
            elif gpus and self.live:
                left = self.live[0].gpus  # one went and one came
                self._go(now.at, 1, left)
                self._come(now.at, 1, left + gpus, is_whole=True)
            for one in self.live[: now.running]:
                one.start = now.at if one.start is None else one.start
            before = now
        return self.done

    def _come(self, at: int, many: int, gpus: int, *, is_whole: bool) -> None:
        each, more = divmod(max(many, gpus), many)
        self.live += [_Live(at, each + (i < more), is_whole) for i in range(many)]

    def _go(self, at: int, many: int, gpus: int) -> None:
        for left in range(min(many, len(self.live)), 0, -1):
            wanted = max(1, gpus / left)
            one = min(self.live, key=lambda one: (one.start is None, abs(one.gpus - wanted), one.submit))
            self.live.remove(one)
            gpus -= one.gpus
            if one.is_whole and one.start is not None and at > one.start:
                name = f"{self.name}-{len(self.done):05}"
                self.done.append(Job(name, one.submit, at - one.start, one.gpus, self.name))
