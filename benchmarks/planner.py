"""How long planning takes: `python -m benchmarks.planner [--quick | --large]`.

Worlds are random but always the same: whole nodes, 1 to 24 hours to the second, all nodes busy at the start, one slice
per request. Each may use all pools of one shape, of which there are as many as `of a shape` says: where that is all of
them, every request may use every pool. For each: from nothing, as objects in memory to all estimates, the
first time and again (rows of requests that are known are not read twice), and of that the compiled part alone; with
every start promised and nothing new; with one more request of the lowest, of a middle and of the highest rank, which
makes the most others give way; and what a question for all pools costs on that plan, at its 99th percentile.

The compiled engine is built first, if there is none; how long that takes is said beside. Plain is the same world from
nothing without it.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from reconciler.machine_code import make_ready
from scheduler.kernel import engine
from scheduler.kernel.rows import forget_rows
from scheduler.plan import plan, planned_plainly
from scheduler.promises import with_promises
from scheduler.quote import Quoter
from scheduler.snapshot import Lease, Plan, Pool, PoolKey, Request, Snapshot

HOUR = 3600
CASES = (
    (1_000, 1_000, 1, 1),
    (10_000, 1_000, 1, 1),
    (10_000, 10_000, 20, 20),
    (100_000, 10_000, 1, 1),
    (100_000, 10_000, 20, 4),
    (100_000, 10_000, 20, 20),
)
"""Requests, nodes, pools, and pools of a shape."""
LARGE = ((1_000_000, 100_000, 20, 4),)
"""Some gigabytes of requests; only when asked for."""
PLAINLY = 10_000
"""Requests up to which the plain engine is timed beside the compiled one."""
QUESTIONS = 1000
COLUMNS = ("nothing", "again", "kernel", "standing", "+lowest", "+middle", "+highest", "quote p99", "plain")


def main() -> None:
    """Prints machine and medians, in seconds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planner", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the smallest case, once")
    parser.add_argument("--large", action="store_true", help="also a million requests on 100,000 nodes")
    given = parser.parse_args()
    begin = time.perf_counter()
    make_ready()
    ready = time.perf_counter() - begin
    out = sys.stdout
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    out.write(f"{machine}; seconds, medians; the compiled engine was ready after {ready:.1f} s\n")
    out.write(
        f"{'requests':>9} {'nodes':>7} {'pools':>6} {'of a shape':>10}"
        + "".join(f"{name:>10}" for name in COLUMNS)
        + "\n"
    )
    for case in CASES[:1] if given.quick else (*CASES, *(LARGE if given.large else ())):
        requests, nodes, pools, alike = case
        figures = _row(world(requests, nodes, pools, alike), 1 if given.quick or case in LARGE else 5)
        cells = "".join(f"{'-':>10}" if figure is None else f"{figure:>10.4f}" for figure in figures)
        out.write(f"{requests:>9,} {nodes:>7,} {pools:>6} {alike:>10}{cells}\n")
        out.flush()


def world(requests: int, nodes: int, pools: int = 1, alike: int | None = None) -> Snapshot:
    """A queue of `requests` on full pools that share `nodes` evenly; so many `alike` have one shape, else all."""
    chance = random.Random(requests)
    keys: list[PoolKey] = [("bench", f"pool{i}") for i in range(pools)]
    there = {key: _pool(key, nodes // pools) for key in keys}
    leases = {key: lease for pool in there.values() for key, lease in _leases(chance, pool).items()}
    shapes = [keys[i : i + (alike or pools)] for i in range(0, pools, alike or pools)]
    waiting = {f"s{i}/r": _request(chance, i, chance.choice(shapes)) for i in range(requests)}
    return Snapshot(0, there, leases, waiting)


def _pool(key: PoolKey, nodes: int) -> Pool:
    return Pool(key, "H100-80GB", 8, 80, tuple(f"{key[1]}-{i}" for i in range(nodes)))


def _leases(chance: random.Random, pool: Pool) -> dict[str, Lease]:
    leases, first = {}, 0
    while first < len(pool.nodes):
        nodes = pool.nodes[first : first + chance.randint(1, 16)]
        end, key = chance.randint(1, 24 * HOUR), f"running-{pool.key[1]}-{first}/r"
        leases[key] = Lease(key, key, pool.key, nodes, 0, 0, end, end)
        first += len(nodes)
    return leases


def _request(chance: random.Random, i: int, keys: Sequence[PoolKey]) -> Request:
    return Request(
        key=f"s{i}/r",
        slice=f"s{i}",
        nodes=chance.randint(1, 16),
        duration=chance.randint(HOUR, 24 * HOUR),
        pools=tuple(chance.sample(keys, len(keys))),
        priority=chance.randint(1, 300),
        filed_at=i,
    )


def _row(snapshot: Snapshot, rounds: int) -> list[float | None]:
    nothing = _median(lambda: _afresh(snapshot), rounds)
    again = _median(lambda: plan(snapshot), rounds)
    planned = plan(snapshot)
    promised = with_promises(snapshot, planned)
    standing = _median(lambda: plan(promised), rounds)
    worlds = [_with_one_more(promised, priority) for priority in (0, 150, 301)]
    more = [_median(partial(plan, changed), rounds) for changed in worlds]
    plainly = None
    if len(snapshot.requests) <= PLAINLY:
        plainly = _median(lambda: planned_plainly(snapshot), 1)
    return [nothing, again, _kernel(snapshot, rounds), standing, *more, _question(snapshot, planned), plainly]


def _afresh(snapshot: Snapshot) -> Plan:
    """Nothing of these requests is remembered."""
    forget_rows()
    return plan(snapshot)


def _with_one_more(promised: Snapshot, priority: int) -> Snapshot:
    pools = next(iter(promised.requests.values())).pools
    one = Request("urgent/r", "urgent", 16, 2 * HOUR, pools, priority=priority, filed_at=1 << 30)
    return replace(promised, requests={**promised.requests, one.key: one})


def _kernel(snapshot: Snapshot, rounds: int) -> float:
    """The compiled part of planning from nothing."""
    taken = []
    for _ in range(rounds):
        prepared = engine.prepare(snapshot)
        begin = time.perf_counter()
        engine.place_all(prepared)
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def _question(snapshot: Snapshot, planned: Plan) -> float:
    """The 99th percentile of what an answer for all pools takes, for requests of all ranks and sizes."""
    quoter, chance = Quoter(snapshot, planned), random.Random(1)
    taken = []
    for i in range(QUESTIONS):
        asked = replace(
            _request(chance, i, list(snapshot.pools)), key="asked/r", slice="asked", filed_at=1 << 30
        )
        begin = time.perf_counter()
        quoter.quote(asked)
        taken.append(time.perf_counter() - begin)
    return sorted(taken)[int(0.99 * QUESTIONS)]


def _median(work: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


if __name__ == "__main__":
    main()
