"""The Philly trace as requests: Microsoft's GPU cluster, 2017 (Jeon et al., ATC '19; CC BY 4.0).

The trace has no priorities and no requested durations, so both are synthetic and deterministic: a request reserves the
next step of a menu above its run time (at most the longest step, and it then uses all of that), bands are drawn
at random, a GPU counts as a node, and a virtual cluster serves as the slice for fairness. The pool is sized so that
the reserved node-hours are `load` times those available while requests arrive.
"""

from __future__ import annotations

import csv
import gzip
import io
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HOUR = 3600
MENU_H = (1, 2, 4, 8, 12, 24, 48, 72)
"""Durations that people may reserve, in hours."""
BANDS = ((50, 0.5), (150, 0.35), (250, 0.15))
"""Priorities and their frequencies: most work is in the low band."""
REQUESTS = 16_000
LOAD = 1.3
SEED = 1
QUIET = 3000
"""Jobs of the first three weeks, in which next to nothing was submitted."""


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One request; seconds and whole nodes."""

    id: str
    submit: int
    nodes: int
    duration: int
    actual: int
    priority: int
    group: str


@dataclass(frozen=True, slots=True)
class Instance:
    """Requests on one pool of so many nodes."""

    asked: tuple[TraceRequest, ...]
    nodes: int

    def text(self) -> str:
        """The CSV of the bare interface; `actual` is what each request really ran."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("id", "pool", "submit", "nodes", "duration", "priority", "actual"))
        for a in self.asked:
            writer.writerow((a.id, "philly", a.submit, a.nodes, a.duration, a.priority, a.actual))
        return out.getvalue()


@dataclass(frozen=True, slots=True)
class Job:
    """A job of a trace as it ran; seconds and GPUs."""

    id: str
    submit: int
    ran: int
    gpus: int
    group: str


def jobs(file: Path) -> list[Job]:
    """The trace's jobs that ran on GPUs, in order of submission."""
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        rows = [
            Job(row["job"], int(row["submit_s"]), int(row["duration_s"]), int(row["gpus"]), row["vc"])
            for row in csv.DictReader(lines)
        ]
    return sorted((row for row in rows if row.gpus > 0 and row.ran > 0), key=lambda row: (row.submit, row.id))


def instance(
    file: Path,
    requests: int = REQUESTS,
    load: float = LOAD,
    bands: Sequence[tuple[int, float]] = BANDS,
    *,
    seed: int = SEED,
    skip: int = 0,
) -> Instance:
    """The first `requests` that were submitted after `skip` that are left out; `seed`: of the bands."""
    return reserved(jobs(file)[: skip + requests], load, bands, seed=seed, skip=skip)


def reserved(
    rows: Sequence[Job], load: float, bands: Sequence[tuple[int, float]], *, seed: int, skip: int
) -> Instance:
    """Jobs as requests, without the first `skip`."""
    chance = random.Random(seed)
    priorities, weights = zip(*bands, strict=True)
    asked = []
    for row in rows:
        used = min(row.ran, MENU_H[-1] * HOUR)
        duration = next(step * HOUR for step in MENU_H if step * HOUR >= used)
        priority = chance.choices(priorities, weights)[0]
        asked.append(TraceRequest(row.id, row.submit, row.gpus, duration, used, priority, row.group))
    del asked[:skip]
    span = asked[-1].submit - asked[0].submit
    work = sum(a.nodes * a.duration for a in asked)
    nodes = max(round(work / span / load), max(a.nodes for a in asked))
    return Instance(tuple(asked), nodes)
