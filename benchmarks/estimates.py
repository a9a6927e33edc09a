"""How good expectations are beside planned starts, on a real trace: `python -m benchmarks.estimates [TRACE]`.

TRACE is philly_jobs.csv.gz (see `benchmarks.philly`, which says what is made up); its first thousands of jobs, of
weeks in which next to nothing was submitted, are left out (`--skip`). Requests release early, bands are drawn at
random. Of every N requests that have to wait one is told what the controller would tell it, from nothing but what was
known at that instant; the first fifth is for learning and not counted. Figures are by band and for all; hours.

Without TRACE arrivals and durations are made up, so that it runs anywhere.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from benchmarks.philly import HOUR, Asked, Instance, instance
from scheduler.calibrating import Outcome, band_of, habit_of, habits, told
from scheduler.expecting import Arrived, Drawn, Learnt, Past, Released, drawn
from scheduler.instance import Row
from scheduler.simulating.simulation import Rules, Simulation
from scheduler.simulating.trace import Trace, from_rows
from scheduler.simulating.watching import Moment
from scheduler.snapshot import Lease, Request

SKIP = 3000
"""Jobs of the trace's first three weeks, in which next to nothing was submitted."""
POOL = "philly"
BANDS = ("low", "medium", "high")
LEARNING = 0.2
"""Share of those told that only teach: nobody is told anything good before there is something to learn from."""


@dataclass(slots=True)
class Told:
    """One request: what it was planned and told, and when it started."""

    request: Request
    planned: int
    drawn: Drawn
    said: Drawn
    start: int = 0


@dataclass(slots=True)
class Listener:
    """Learns as the controller does and tells one in `every` of those that wait."""

    every: int
    told: dict[str, Told] = field(default_factory=dict)
    past: list[Released] = field(default_factory=list)
    arrived: list[Arrived] = field(default_factory=list)
    waiting: int = 0
    seconds: float = 0.0

    def estimated(self, moment: Moment, request: Request, start: int) -> None:
        """Files it, and tells it."""
        self.arrived.append(
            Arrived(
                moment.now,
                request.slice,
                "",
                request.nodes,
                request.duration,
                request.priority,
                request.pools,
            )
        )
        if start - moment.now <= 60:
            return
        self.waiting += 1
        if self.waiting % self.every:
            return
        began = time.perf_counter()
        learnt = Learnt(Past(tuple(self.past[-5000:]), tuple(self.arrived[-5000:])))
        found = drawn(moment.world, moment.plan, learnt, [request.key]).get(request.key)
        if found is not None:
            habit = habit_of(habits(self._outcomes(moment.now)), request.priority)
            said = told(found, start, moment.now, moment.now, habit)
            self.told[request.key] = Told(request, start, found, said)
        self.seconds += time.perf_counter() - began

    def _outcomes(self, now: int) -> Iterable[Outcome]:
        for one in self.told.values():
            band, filed = band_of(one.request.priority), one.request.filed_at
            is_open = not one.start or one.start > now
            yield Outcome(band, filed, one.planned, one.drawn, now if is_open else one.start, is_open)

    def started(self, now: int, request: Request, lease: Lease) -> None:  # noqa: ARG002
        """Its start is known."""
        if request.key in self.told:
            self.told[request.key].start = lease.start

    def ended(self, now: int, request: Request, lease: Lease) -> None:  # noqa: ARG002
        """What it used is known."""
        self.past.append(Released(request.slice, "", request.duration, lease.end - lease.start))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimates", description=__doc__)
    parser.add_argument("trace", nargs="?", type=Path, help="philly_jobs.csv.gz")
    parser.add_argument("--requests", type=int, default=16_000)
    parser.add_argument("--skip", type=int, default=SKIP)
    parser.add_argument("--every", type=int, default=8, help="of how many that wait one is told")
    parser.add_argument("--load", type=float, default=1.3, help="reserved node-hours over those there are")
    given = parser.parse_args()
    made = _made_up(given.requests) if given.trace is None else _philly(given.trace, given)
    listener = Listener(given.every)
    simulation, began = (
        Simulation(_trace(made), rules=Rules(trial_work=0), watcher=listener),
        time.perf_counter(),
    )
    for _ in simulation.instants():
        pass
    out = sys.stdout
    out.write(
        f"{len(made.asked):,} requests on {made.nodes} nodes, {listener.waiting:,} waited, "
        f"{len(listener.told):,} told in {listener.seconds:.0f} s of {time.perf_counter() - began:.0f} s\n"
    )
    _table(list(listener.told.values()))


def _philly(file: Path, given: argparse.Namespace) -> Instance:
    whole = instance(file, given.requests + given.skip, given.load)
    asked = whole.asked[given.skip :]
    begin = asked[0].submit
    work = sum(one.nodes * one.duration for one in asked)
    nodes = max(round(work / (asked[-1].submit - begin) / given.load), max(one.nodes for one in asked))
    return Instance(tuple(replace(one, submit=one.submit - begin) for one in asked), nodes)


def _made_up(count: int) -> Instance:
    """Poisson arrivals that are denser by day, uneven sizes, and everybody releases early by their group's habit."""
    chance, now, asked = random.Random(7), 0.0, []
    for number in range(count):
        now += chance.expovariate(1 / 240) / (1 + 0.8 * math.sin(now / 86_400 * 2 * math.pi))
        reserved = chance.choice((1, 2, 4, 8, 12, 24)) * HOUR
        group = chance.randrange(6)
        share = min(1.0, chance.betavariate(1 + group, 3))
        priority = chance.choices((50, 150, 250), (0.5, 0.35, 0.15))[0]
        used = max(60, round(share * reserved))
        asked.append(
            Asked(
                f"m{number}",
                int(now),
                chance.choice((1, 1, 1, 2, 4, 8)),
                reserved,
                used,
                priority,
                f"g{group}",
            )
        )
    work = sum(one.nodes * one.actual for one in asked)
    return Instance(tuple(asked), max(8, round(work / asked[-1].submit / 0.95)))


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


def _table(found: Sequence[Told]) -> None:
    done = [one for one in found if one.start][int(len(found) * LEARNING) :]
    head = (
        "",
        "told",
        "mean wait",
        "planned",
        "drawn",
        "told p50",
        "ratio",
        "p10-p90",
        "below",
        "above",
        "width",
    )
    sys.stdout.write(" ".join(f"{name:>9}" for name in head) + "\n")
    for number, name in enumerate(BANDS):
        _row(name, [one for one in done if band_of(one.request.priority) == number])
    _row("all", done)


def _row(name: str, found: Sequence[Told]) -> None:
    if not found:
        return
    start = np.array([one.start for one in found])
    said = np.array([(one.said.p10, one.said.p50, one.said.p90) for one in found])
    planned = np.abs(np.array([one.planned for one in found]) - start).mean() / HOUR
    middle = np.abs(np.array([one.drawn.p50 for one in found]) - start).mean() / HOUR
    error = np.abs(said[:, 1] - start).mean() / HOUR
    wait = np.mean([one.start - one.request.filed_at for one in found]) / HOUR
    below, above = (start < said[:, 0]).mean(), (start > said[:, 2]).mean()
    cells = (wait, planned, middle, error, error / planned if planned else 0.0)
    width = (said[:, 2] - said[:, 0]).mean() / HOUR
    shares = (1 - below - above, below, above)
    text = [f"{cell:.2f}" for cell in cells] + [f"{share:.1%}" for share in shares] + [f"{width:.2f}"]
    sys.stdout.write(" ".join(f"{cell:>9}" for cell in (name, len(found), *text)) + "\n")


if __name__ == "__main__":
    main()
