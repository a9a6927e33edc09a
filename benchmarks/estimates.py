"""Accuracy of forecasts compared with planned starts, on a real trace: `python -m benchmarks.estimates TRACE`.

TRACE is philly_jobs.csv.gz or helios_earth_vc_series.csv.gz (see `benchmarks.philly` and `benchmarks.helios`, which say
what is synthetic); the first thousands of jobs, from weeks with next to no submissions, are skipped (`--skip`). Every
request ends when the trace's job ended. Of every N waiting requests one gets the controller's forecast, by its own
functions and from what was known at that instant; the first 200 are for learning and not counted (`--learning`).

"Score" is the interval score of p10 and p90: the width, and ten times what the start lies outside (Gneiting and
Raftery, JASA 2007, alpha = 0.2); less is better, and neither narrow nor wide intervals can cheat. "In 1 h" is the share
of starts within an hour of p50.

For comparison, on the same requests: "true ends" knows all real durations, but no future arrivals, and "all known"
knows both: the distance between `scheduler.estimates.drawn_futures` and the planner. Figures are in hours, by band and
for all. `--bands one` puts all requests into one band, `--seed` draws other bands.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from benchmarks import helios, philly
from benchmarks.philly import BANDS, HOUR, Instance, TraceRequest
from scheduler.estimates.calibration import Outcome, habit_of, habits, told
from scheduler.estimates.drawn_futures import Going, dispatched
from scheduler.estimates.expected_starts import Arrived, Drawn, Learnt, Past, drawn
from scheduler.estimates.habits import Released
from scheduler.fairness.rank import band, in_rank_order
from scheduler.instance import Row
from scheduler.replay.observer import Moment
from scheduler.replay.simulation import Rules, Simulation
from scheduler.replay.trace import Trace, from_rows
from scheduler.snapshot import Lease, Request

SKIP = 3000
"""Jobs of the trace's first three weeks, in which next to nothing was submitted."""
POOL = "philly"
NAMES = ("low", "medium", "high")
LEARNING = 200
"""Number of forecasts used only for learning."""
OUTSIDE = 10
"""What an hour outside of an interval costs in its score: 2 / alpha, as it should cover four starts in five."""
LEARNT = 5000
"""Most recent requests that are learnt from, as in the controller."""


@dataclass(slots=True)
class Told:
    """One request: its plan and forecast, the estimates with more knowledge, and its start."""

    request: Request
    planned: int
    drawn: Drawn
    said: Drawn
    true_ends: int
    all_known: int
    start: int = 0


@dataclass(slots=True)
class Listener:
    """Learns as the controller does and makes a forecast for one in `every` waiting requests."""

    every: int
    asked: Mapping[str, TraceRequest]
    told: dict[str, Told] = field(default_factory=dict)
    past: list[Released] = field(default_factory=list)
    arrived: list[Arrived] = field(default_factory=list)
    began: dict[str, int] = field(default_factory=dict)
    waiting: int = 0
    seconds: float = 0.0

    def estimated(self, moment: Moment, request: Request, start: int) -> None:
        """Files it, and tells it."""
        self.arrived.append(self._arrived(request))
        if start - moment.now <= 60:
            return
        self.waiting += 1
        if self.waiting % self.every:
            return
        world, plan = moment.world, moment.plan
        grouped = replace(
            world,
            leases={key: replace(one, slice=self._group(key)) for key, one in world.leases.items()},
        )
        began = time.perf_counter()
        learnt = Learnt(
            Past((*self.past[-LEARNT:], *self._running(moment.now)), tuple(self.arrived[-LEARNT:]))
        )
        found = drawn(grouped, plan, learnt, [request.key]).get(request.key)
        if found is not None:
            habit = habit_of(habits(self._outcomes(moment.now)), request.priority)
            said = told(found, start, moment.now, moment.now, habit)
            self.seconds += time.perf_counter() - began
            true = [self._knowing(moment, request, later) for later in ((), self._later(moment.now, request))]
            self.told[request.key] = Told(request, start, found, said, *true)

    def _group(self, key: str) -> str:
        return self.asked[key].group

    def _arrived(self, request: Request) -> Arrived:
        group, at = self._group(request.key), request.filed_at
        return Arrived(at, group, "", request.nodes, request.duration, request.priority, request.pools)

    def _running(self, now: int) -> Iterable[Released]:
        for key, start in self.began.items():
            asked = self.asked[key]
            yield Released(asked.group, "", asked.duration, now - start, asked.submit, is_open=True)

    def _outcomes(self, now: int) -> Iterable[Outcome]:
        for one in self.told.values():
            is_open = not one.start or one.start > now
            start = now if is_open else one.start
            number, filed_at = band(one.request.priority), one.request.filed_at
            yield Outcome(number, filed_at, one.planned, one.drawn, start, is_open)

    def _later(self, now: int, request: Request) -> Sequence[tuple[str, TraceRequest]]:
        """Requests that will arrive and rank before it, even long after its start."""
        until = now + 14 * 24 * HOUR
        return [
            (key, one)
            for key, one in self.asked.items()
            if now < one.submit < until and one.priority > request.priority
        ]

    def _knowing(self, moment: Moment, request: Request, later: Sequence[tuple[str, TraceRequest]]) -> int:
        """The start if all true ends are known, and these later arrivals."""
        world = moment.world
        ends = {
            key: max(moment.now + 1, self.began[key] + self.asked[key].actual)
            for key in world.leases
            if key in self.began
        }
        ranked = in_rank_order(world.requests.values())
        before = ranked[: 1 + next(i for i, one in enumerate(ranked) if one.key == request.key)]
        waiting = [(-one.priority, one.filed_at, one.key) for one in before]
        coming = [(-one.priority, one.submit, key) for key, one in later]
        order = sorted((*waiting, *coming))
        going = [_going(self.asked[key]) for _, _, key in order]
        mine = next(i for i, (_, _, key) in enumerate(order) if key == request.key)
        return dispatched(world, ends, going, {mine})[mine]

    def started(self, now: int, request: Request, lease: Lease) -> None:  # noqa: ARG002
        """Its start is known."""
        self.began[request.key] = lease.start
        if request.key in self.told:
            self.told[request.key].start = lease.start

    def ended(self, now: int, request: Request, lease: Lease) -> None:  # noqa: ARG002
        """What it used is known."""
        self.began.pop(request.key, None)
        used, group = lease.end - lease.start, self._group(request.key)
        self.past.append(Released(group, "", request.duration, used, request.filed_at))


def _going(one: TraceRequest) -> Going:
    return Going(one.nodes, one.duration, max(1, one.actual), one.submit, "", ((("", POOL), 0),))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimates", description=__doc__)
    parser.add_argument("trace", type=Path, help="philly_jobs.csv.gz or helios_earth_vc_series.csv.gz")
    parser.add_argument("--requests", type=int, default=8000)
    parser.add_argument("--skip", type=int, default=SKIP)
    parser.add_argument("--every", type=int, default=8, help="forecast every N-th waiting request")
    parser.add_argument("--load", type=float, default=1.3, help="reserved node-hours over those there are")
    parser.add_argument("--bands", choices=("three", "one"), default="three")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--learning", type=int, default=LEARNING, help="forecasts that are not counted")
    given = parser.parse_args()
    made = _instance(given.trace, given)
    trace = _trace(made)
    by_name = {one.id: one for one in made.asked}
    asked = {arrival.request.key: by_name[arrival.name] for arrival in trace.arrivals}
    listener, began = Listener(given.every, asked), time.perf_counter()
    for _ in Simulation(trace, rules=Rules(trial_work=0), watcher=listener).instants():
        pass
    out = sys.stdout
    out.write(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    out.write(
        f"{len(asked):,} requests on {made.nodes} nodes, {listener.waiting:,} waited, {len(listener.told):,} told "
        f"in {listener.seconds:.0f} s of {time.perf_counter() - began:.0f} s\n"
    )
    print_table(list(listener.told.values())[given.learning :])


def _instance(file: Path, given: argparse.Namespace) -> Instance:
    bands = BANDS if given.bands == "three" else ((150, 1.0),)
    jobs = helios.jobs(file) if helios.is_helios(file) else philly.jobs(file)
    jobs = jobs[: given.requests + given.skip]
    asked = philly.reserved(jobs, given.load, bands, seed=given.seed, skip=given.skip).asked
    begin = asked[0].submit
    work = sum(one.nodes * one.duration for one in asked)
    nodes = max(round(work / (asked[-1].submit - begin) / given.load), max(one.nodes for one in asked))
    return Instance(tuple(replace(one, submit=one.submit - begin) for one in asked), nodes)


def _trace(made: Instance) -> Trace:
    rows = [
        Row(
            id=one.id, pools=(POOL,), submit=one.submit, nodes=one.nodes, duration=one.duration,
            priority=one.priority, slice="", running=False, not_before=0, actual=one.actual,
            line=line,
        )
        for line, one in enumerate(made.asked, start=2)
    ]  # fmt: skip
    return from_rows(rows, {POOL: made.nodes})


def _off(start: Callable[[Told], int], found: Sequence[Told]) -> float:
    """Mean absolute error, hours."""
    return float(np.mean([abs(start(one) - one.start) for one in found])) / HOUR


def print_table(found: Sequence[Told]) -> None:
    """Figures by band and for all."""
    done = [one for one in found if one.start]
    head = (
        "",
        "told",
        "wait",
        "planned",
        "p50",
        "ratio",
        "true ends",
        "all known",
        "p10-p90",
        "below",
        "above",
        "width",
        "score",
        "in 1 h",
    )
    sys.stdout.write(" ".join(f"{name:>9}" for name in head) + "\n")
    for number, name in enumerate(NAMES):
        _row(name, [one for one in done if band(one.request.priority) == number])
    _row("all", done)


def _row(name: str, found: Sequence[Told]) -> None:
    if not found:
        return
    start = np.array([one.start for one in found])
    said = np.array([(one.said.p10, one.said.p50, one.said.p90) for one in found])
    wait = np.mean([one.start - one.request.filed_at for one in found]) / HOUR
    planned, error = _off(lambda one: one.planned, found), _off(lambda one: one.said.p50, found)
    knowing = (_off(lambda one: one.true_ends, found), _off(lambda one: one.all_known, found))
    below, above = (start < said[:, 0]).mean(), (start > said[:, 2]).mean()
    cells = (wait, planned, error, error / planned if planned else 0.0, *knowing)
    width = said[:, 2] - said[:, 0]
    outside = np.maximum(0, np.maximum(said[:, 0] - start, start - said[:, 2]))
    lengths = (width.mean() / HOUR, (width + OUTSIDE * outside).mean() / HOUR)
    near = (abs(start - said[:, 1]) <= HOUR).mean()
    text = [f"{cell:.2f}" for cell in cells] + [f"{share:.1%}" for share in (1 - below - above, below, above)]
    text += [*(f"{length:.2f}" for length in lengths), f"{near:.1%}"]
    sys.stdout.write(" ".join(f"{cell:>9}" for cell in (name, len(found), *text)) + "\n")


if __name__ == "__main__":
    main()
