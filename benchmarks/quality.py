"""How good plans are: `python -m benchmarks.quality`.

On small instances the priority-weighted start beside the optimum that OR-tools' CP-SAT proves; on 128 nodes and 1,500
requests of 1 to 72 hours the makespan beside the area bound (no schedule is shorter than all the work over all the
nodes). Each beside first come and EASY backfill.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Sequence

from ortools.sat.python import cp_model

from benchmarks.baselines import conservative, easy, first_come, replay
from benchmarks.philly import TraceRequest
from scheduler.plan import plan
from scheduler.snapshot import Pool, PoolKey, Request, Snapshot

HOUR = 3600
SMALL, SMALL_NODES = 12, 8
INSTANCES = 40
LARGE, LARGE_NODES = 1_500, 128
_POOL: PoolKey = ("", "p")


def main() -> None:
    """Prints both."""
    ratios: dict[str, list[float]] = {"ours": [], "EASY": [], "first come": []}
    for seed in range(INSTANCES):
        asked = _asked(seed, SMALL, SMALL_NODES, 8)
        best = _optimum(asked, SMALL_NODES)
        if best is not None:
            for name, starts in _all(asked, SMALL_NODES).items():
                ratios[name].append(_weighted(asked, starts) / best)
    proven = len(ratios["ours"])
    sys.stdout.write(f"priority-weighted start over the optimum, {proven} of {INSTANCES} instances proven\n")
    for name, found in ratios.items():
        sys.stdout.write(f"  {name:<12} {statistics.mean(found):.3f} on average, {max(found):.3f} at most\n")
    asked = _asked(1, LARGE, LARGE_NODES, 72)
    bound = sum(a.nodes * a.duration for a in asked) / LARGE_NODES
    sys.stdout.write(f"makespan over the area bound, {LARGE:,} requests on {LARGE_NODES} nodes\n")
    for name, starts in _all(asked, LARGE_NODES).items():
        makespan = max(starts[a.id] + a.duration for a in asked)
        sys.stdout.write(f"  {name:<12} {makespan / bound:.4f}\n")
    assert _ours(asked, LARGE_NODES) == conservative(asked, LARGE_NODES, 0), "a plain planner differs"


def _asked(seed: int, count: int, nodes: int, hours: int) -> list[TraceRequest]:
    """All filed at once; half of them ask for one or two nodes."""
    chance = random.Random(seed)
    widths = [1, 2, *range(1, max(2, nodes // 2))]
    made = []
    for i in range(count):
        duration, priority = chance.randint(1, hours) * HOUR, chance.choice((50, 150, 250))
        made.append(TraceRequest(f"r{i:05d}", 0, chance.choice(widths), duration, duration, priority, ""))
    return made


def _all(asked: Sequence[TraceRequest], nodes: int) -> dict[str, dict[str, int]]:
    return {
        "ours": _ours(asked, nodes),
        "EASY": {s.asked.id: s.start for s in replay(asked, nodes, easy)},
        "first come": {s.asked.id: s.start for s in replay(asked, nodes, first_come)},
    }


def _ours(asked: Sequence[TraceRequest], nodes: int) -> dict[str, int]:
    pool = Pool(_POOL, "", 1, 1, tuple(f"p{i}" for i in range(nodes)))
    requests = {a.id: Request(a.id, "", a.nodes, a.duration, (_POOL,), a.priority) for a in asked}
    placed = plan(Snapshot(0, {_POOL: pool}, {}, requests)).placements
    return {a.id: placed[a.id].start for a in asked}


def _weighted(asked: Sequence[TraceRequest], starts: dict[str, int]) -> float:
    """Sum of starts plus an hour, times priority: the hour keeps ratios finite where everybody starts at once."""
    return sum(a.priority * (starts[a.id] + HOUR) for a in asked)


def _optimum(asked: Sequence[TraceRequest], nodes: int) -> float | None:
    """The least weighted sum of starts, in whole hours; None where it was not proven in time."""
    model, horizon = cp_model.CpModel(), sum(a.duration for a in asked) // HOUR
    starts = [model.new_int_var(0, horizon, a.id) for a in asked]
    holds = [
        model.new_fixed_size_interval_var(start, a.duration // HOUR, a.id)
        for start, a in zip(starts, asked, strict=True)
    ]
    model.add_cumulative(holds, [a.nodes for a in asked], nodes)
    model.minimize(sum(a.priority * (start + 1) for start, a in zip(starts, asked, strict=True)))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = 20, 2
    solver.parameters.random_seed = 1
    return solver.objective_value * HOUR if solver.solve(model) == cp_model.OPTIMAL else None


if __name__ == "__main__":
    main()
