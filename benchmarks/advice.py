"""Advice against HPA and KEDA on the loads of traces: `python -m benchmarks.advice TRACE...`.

TRACE is a CSV, also gzipped: either `second,load` in even steps, or one row for each request with its time in the first
column. `--synthetic` adds loads that are drawn: daily, weekend, steps, flash crowds, growth and quiet.

The load is scaled to `--nodes` nodes on average. What is asked for comes after the lead, and is paid for at once. Work
waits in one queue; waiting as long as `--patience` costs as much as the work itself; what waits longer is late. HPA and
KEDA have 48 settings (target, stabilisation window, with and without the queue), see the load exactly, and the best
of the first half is used in the second. Advice is asked for once a day, and knows only what was before.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from scheduler.demand.choice_of_rule import Accounts, accounts, chosen
from scheduler.demand.learnt_rules import LEARNT, wanted, with_backlog
from scheduler.demand.load import DAY_S, Floats, Load, Terms
from scheduler.demand.replay_load import Account, replayed
from scheduler.demand.thresholds import THRESHOLDS, thresholds

STEP_S = 60
SHORT_S = 10
"""The step for traces of less than a day."""
SYNTHETIC = ("daily", "weekend", "steps", "flash", "growth", "quiet")


@dataclass(frozen=True, slots=True)
class Result:
    """One lead on one trace, second half: cost, nodes alone, and the share of work that was late."""

    plain: tuple[float, float, float]
    hindsight: tuple[float, float, float]
    advised: tuple[float, float, float]
    learnt_days: float

    @property
    def gain(self) -> float:
        """Share of the cost that advice saves against the tuned threshold."""
        return 1.0 - self.advised[0] / self.plain[0]


def load_of(path: Path, nodes: float) -> Load:
    """The load of a trace. Raises ValueError if it is neither kind of CSV."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    rows = list(csv.reader(text.splitlines()))[1:]
    if not rows:
        raise ValueError(f"{path}: no rows")
    if len(rows[0]) == 2:
        return _even(np.array([[float(cell) for cell in row] for row in rows]), nodes)
    return _counted([datetime.fromisoformat(row[0][:26]).timestamp() for row in rows], nodes)


def _even(rows: Floats, nodes: float) -> Load:
    """Within a row the load is even: as much as the trace says."""
    step = int(rows[1, 0] - rows[0, 0])
    return _scaled(STEP_S, np.repeat(rows[:, 1], max(1, step // STEP_S)), nodes)


def _counted(instants: Sequence[float], nodes: float) -> Load:
    span = max(instants) - min(instants)
    step = STEP_S if span >= DAY_S else SHORT_S
    found, _ = np.histogram(np.array(instants) - min(instants), np.arange(0, span + step, step))
    return _scaled(step, found[:-1].astype(float), nodes)


def synthetic(kind: str, days: int, nodes: float, seed: int) -> Load:
    """A drawn load, not a measured one: a day's curve with noise that lasts, and what its name says."""
    draw = np.random.default_rng(seed)
    at = np.arange(days * 144)
    base = np.full(len(at), 10.0) if kind == "quiet" else 10 + 5 * np.sin(2 * np.pi * (at % 144 / 144 - 0.3))
    match kind:
        case "weekend":
            base = base * np.where(at // 144 % 7 >= 5, 0.35, 1.0)
        case "steps":
            base = base * (1 + 0.8 * (at // 300 % 3))
        case "flash":
            for begin in draw.integers(0, len(at), days):
                base[begin : begin + int(draw.integers(3, 12))] *= draw.uniform(1.8, 3)
        case "growth":
            base = base * (0.5 + 1.5 * at / len(at))
    noise = np.zeros(len(at))
    for step in range(1, len(at)):
        noise[step] = 0.9 * noise[step - 1] + draw.normal(0, 0.06)
    return _scaled(STEP_S, np.repeat(base * np.exp(noise), 600 // STEP_S), nodes)


def _scaled(step_s: int, found: Floats, nodes: float) -> Load:
    return Load(step_s, np.asarray(found / found.mean() * nodes))


def compared(load: Load, terms: Terms) -> Result:
    """Tunes on the first half and judges on the second."""
    found, end = accounts(load, terms), len(load.nodes)
    half, warm = end // 2, min(2 * load.day, end // 7)
    plain, later = found.plain.cost(warm, half).argmin(), found.plain.cost(half, end).argmin()
    own, days = _advised(load, terms, found)
    return Result(
        _told(found.plain, half, end, int(plain)),
        _told(found.plain, half, end, int(later)),
        _told(own, half, end, 0),
        days,
    )


def _advised(load: Load, terms: Terms, found: Accounts) -> tuple[Account, float]:
    """Each day by the rule that the steps before it speak for; and the share of days with a learnt one."""
    end, lead = len(load.nodes), terms.lead(load)
    half, every = end // 2, min(load.day, max(1, end // 14))
    picks = {edge: chosen(found, edge) for edge in range(half, end, every)}
    first = picks[half].threshold
    targets = [wanted(load, terms, rule) for rule in LEARNT]
    plain = thresholds(load)

    def decide(step: int, total: Floats, waiting: Floats) -> Floats:
        simple = plain(step, total, waiting)  # it has a memory, and is told of every step
        pick = picks.get(half + (step - half) // every * every)
        if pick is None or not pick.is_learnt:
            rule = first if pick is None else pick.threshold
            return simple[[THRESHOLDS.index(rule)]]
        return with_backlog(targets[LEARNT.index(pick.learnt)][[step]], waiting, lead)

    share = sum(pick.is_learnt for pick in picks.values()) / len(picks)
    return replayed(load, terms, decide, 1), share


def _told(account: Account, begin: int, end: int, rule: int) -> tuple[float, float, float]:
    cost, paid, late = account.cost(begin, end), account.paid(begin, end), account.lateness(begin, end)
    return float(cost[rule]), float(paid[rule]), float(late[rule])


def results(loads: Sequence[tuple[str, Load]], leads_s: Sequence[int], patience_s: int) -> Iterator[str]:
    """The table, a line at a time: cost (nodes alone @ late work), all for each node-hour of work."""
    yield f"{'trace':24} {'lead':>5}  {'HPA/KEDA tuned':24}{'best in hindsight':24}{'advice':24}{'saved':>6} learnt"
    for name, load in loads:
        for lead_s in leads_s:
            found = compared(load, Terms(lead_s, patience_s))
            cells = "".join(
                f"{cost:6.3f} ({nodes:.2f} @ {late:6.2%})  "
                for cost, nodes, late in (found.plain, found.hindsight, found.advised)
            )
            yield f"{name[:24]:24} {lead_s // 60:3d} m {cells}{found.gain:6.1%} {found.learnt_days:6.0%}"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.advice", description=__doc__)
    parser.add_argument("traces", type=Path, nargs="*", metavar="TRACE", help="CSV of a load, or of requests")
    parser.add_argument("--synthetic", action="store_true", help="also loads that are drawn")
    parser.add_argument("--leads", type=int, nargs="+", default=[5, 15, 60], metavar="MINUTES")
    parser.add_argument("--patience", type=int, default=10, metavar="SECONDS", help="the price of waiting")
    parser.add_argument("--nodes", type=float, default=12.0, help="nodes on average")
    parser.add_argument("--days", type=int, default=14, help="of a synthetic load")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    loads = [(path.name.partition(".")[0], load_of(path, given.nodes)) for path in given.traces]
    if given.synthetic:
        loads += [(kind, synthetic(kind, given.days, given.nodes, given.seed)) for kind in SYNTHETIC]
    if not loads:
        parser.error("give a TRACE, or --synthetic")
    sys.stdout.write(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    for line in results(loads, [lead * 60 for lead in given.leads], given.patience):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
