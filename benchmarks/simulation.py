"""Weeks in a minute: `python -m benchmarks.simulation TRACE.csv.gz [--requests N] [--plots FOLDER]`.

Replays the Philly trace (see `benchmarks.philly`, which says what is made up) from where it gets busy, under the
default policy, first come, and shortest service without ageing, and beside them EASY backfill and plain first come,
first served; with strict durations, and with everybody releasing when its jobs ended. Prints waits by band,
utilisation, slowdown and estimate errors as docs/explain/benchmarks.md has them.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.baselines import Served, by_arrival, by_priority, easy, first_come, replay
from benchmarks.philly import QUIET, Instance, TraceRequest, instance
from scheduler.instance import parse
from scheduler.replay.figures import figures
from scheduler.replay.record import Run
from scheduler.replay.replay_rank import Bare, ByPolicy, Ordering
from scheduler.replay.simulation import simulate
from scheduler.replay.trace import Trace, from_rows
from schemas.documents.scheduling import Scheduling

HOUR = 3600
BANDS = (250, 150, 50)
POINTS = 201
"""Of a curve: a plot of more is larger and looks the same."""
UNPROTECTED = 1000
"""Times that a promise may be displaced. With the default of five nearly everybody is protected before long on so full
a cluster, and the order is that of filing again."""
HEADS = (
    "high",
    "medium",
    "low",
    "mean",
    "p90",
    "slowdown",
    "used",
    "error",
    "within 1 h",
    "moved later",
    "took, s",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One policy on one trace; hours. Estimates are None for policies without any."""

    name: str
    waits: dict[int, float]  # mean by band
    all_waits: tuple[float, ...]
    slowdown: float
    utilisation: float
    errors: tuple[float, ...] | None
    slipped: int | None
    took_s: float


def main() -> None:
    """Prints machine and table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__)
    parser.add_argument("trace", type=Path, help="philly_jobs.csv.gz")
    parser.add_argument("--requests", type=int, default=16_000)
    parser.add_argument("--plots", type=Path, help="folder for the plots")
    given = parser.parse_args()
    sys.stdout.write(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    early = instance(given.trace, given.requests, skip=QUIET)
    strict = replace(early, asked=tuple(replace(a, actual=a.duration) for a in early.asked))
    for title, trace in (("strict durations", strict), ("early releases", early)):
        rows = [*_ours(trace), *_others(trace)]
        _print(title, trace, rows)
        if given.plots is not None:
            _plot(given.plots, title, rows)


def _ours(found: Instance) -> list[Row]:
    trace = from_rows(parse(found.text()), {"philly": found.nodes})
    shortest = Scheduling(order="shortest-service", fairness=None, ageing=None, max_displacements=UNPROTECTED)
    orders: list[tuple[str, Ordering]] = [
        ("default policy", ByPolicy(Scheduling(), trace.pools, {})),
        ("first come in each band", Bare()),
        ("shortest service, no protection", ByPolicy(shortest, trace.pools, {})),
    ]
    return [_our(name, trace, ordering) for name, ordering in orders]


def _our(name: str, trace: Trace, ordering: Ordering) -> Row:
    begin = time.perf_counter()
    run = simulate(trace, ordering)
    took, told = time.perf_counter() - begin, figures(run)
    started = [record for record in run.records if record.wait is not None]
    served = [(record.priority, record.wait or 0) for record in started]
    errors = tuple(abs(record.error or 0) / HOUR for record in started)
    last = max(record.submit for record in run.records)
    return Row(
        name,
        _by_band(served),
        _hours(served),
        told.bounded_slowdown,
        _used(run, last),
        errors,
        told.slipped,
        took,
    )


def _used(run: Run, until: int) -> float:
    """Share of the nodes in use while requests arrive."""
    used = sum(r.nodes * max(0, min(r.end or 0, until) - min(r.start or 0, until)) for r in run.records)
    return used / (run.nodes * (until - run.begin))


def _others(found: Instance) -> list[Row]:
    return [
        _other("EASY backfill", found, replay(found.asked, found.nodes, easy, by_priority)),
        _other("first come, first served", found, replay(found.asked, found.nodes, first_come, by_arrival)),
    ]


def _other(name: str, found: Instance, served: Sequence[Served]) -> Row:
    waits = [(one.asked.priority, one.start - one.asked.submit) for one in served]
    slowdown = float(np.mean([_slowdown(one.asked, one.start) for one in served]))
    begin, until = found.asked[0].submit, max(a.submit for a in found.asked)
    used = sum(s.asked.nodes * max(0, min(s.end, until) - min(s.start, until)) for s in served)
    return Row(
        name,
        _by_band(waits),
        _hours(waits),
        slowdown,
        used / (found.nodes * (until - begin)),
        None,
        None,
        0.0,
    )


def _slowdown(asked: TraceRequest, start: int) -> float:
    return max(1.0, (start - asked.submit + asked.actual) / max(asked.actual, 10))


def _by_band(waits: Sequence[tuple[int, int]]) -> dict[int, float]:
    found = {band: [wait for priority, wait in waits if priority == band] for band in BANDS}
    return {band: float(np.mean(values)) / HOUR if values else 0.0 for band, values in found.items()}


def _hours(waits: Sequence[tuple[int, int]]) -> tuple[float, ...]:
    return tuple(wait / HOUR for _, wait in waits)


def _print(title: str, found: Instance, rows: Sequence[Row]) -> None:
    out = sys.stdout
    out.write(f"\n{len(found.asked):,} requests on {found.nodes:,} nodes, {title}\n\n")
    out.write(f"| hours | {' | '.join(HEADS)} |\n| --- |{' ---: |' * len(HEADS)}\n")
    for row in rows:
        waits = (*row.waits.values(), float(np.mean(row.all_waits)), float(np.percentile(row.all_waits, 90)))
        cells = [*(f"{wait:.1f}" for wait in waits), f"{row.slowdown:.1f}", f"{row.utilisation:.1%}"]
        if row.errors is None:
            cells += ["-"] * 4
        else:
            near = float(np.mean([error <= 1 for error in row.errors]))
            cells += [
                f"{float(np.mean(row.errors)):.1f}",
                f"{near:.0%}",
                f"{row.slipped:,}",
                f"{row.took_s:.0f}",
            ]
        out.write(f"| {row.name} | {' | '.join(cells)} |\n")
    out.flush()


def _plot(folder: Path, title: str, rows: Sequence[Row]) -> None:
    """Shares of requests that wait, or are off, by no more than so many hours."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "egs"  # the same figures give the same bytes
    from matplotlib import pyplot as plt

    shares = np.linspace(0, 1, POINTS)
    for what, chosen in (("wait", [(r.name, r.all_waits) for r in rows]), ("error", _known(rows))):
        figure, axes = plt.subplots(figsize=(7, 4))
        for name, values in chosen:
            axes.plot(np.quantile(values, shares), shares, label=name)
        axes.set_xlabel(f"{what}, hours")
        axes.set_ylabel("share of requests")
        axes.set_title(title)
        axes.legend(loc="lower right")
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / f"{what}-{title.replace(' ', '-')}.svg", metadata={"Date": None})
        plt.close(figure)


def _known(rows: Sequence[Row]) -> list[tuple[str, tuple[float, ...]]]:
    return [(row.name, row.errors) for row in rows if row.errors is not None]


if __name__ == "__main__":
    main()
