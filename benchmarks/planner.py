"""How long planning takes: `python -m benchmarks.planner [--quick | --large]`.

Worlds are random but always the same: whole nodes, 1 to 24 hours, all nodes busy at the start, one slice per
request. Three figures for each: from nothing; with every start promised and nothing new; and with one more
request of the highest rank, which makes the most others give way.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from scheduler.plan import plan
from scheduler.promises import with_promises
from scheduler.snapshot import Lease, Pool, PoolKey, Request, Snapshot

HOUR = 3600
POOL: PoolKey = ("bench", "pool")
CASES = ((1_000, 1_000), (10_000, 1_000))
LARGE = ((100_000, 10_000),)
"""Minutes, for this kernel costs (requests x steps of the calendar); only when asked for."""
MINUTE_S = 60.0


def main() -> None:
    """Prints machine and medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planner", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the smallest case, once")
    parser.add_argument("--large", action="store_true", help="also 100,000 requests, from nothing")
    given = parser.parse_args()
    out = sys.stdout
    out.write(
        f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}; seconds, median\n"
    )
    out.write(f"{'requests':>9} {'nodes':>7} {'from nothing':>13} {'all promised':>13} {'one more':>9}\n")
    for requests, nodes in CASES[:1] if given.quick else (*CASES, *(LARGE if given.large else ())):
        rounds = 1 if given.quick or requests >= 100_000 else 5
        out.write(f"{requests:>9,} {nodes:>7,} {_row(world(requests, nodes), rounds)}\n")
        out.flush()


def world(requests: int, nodes: int) -> Snapshot:
    """A queue of `requests` on one full pool."""
    chance = random.Random(requests)
    pool = Pool(POOL, "H100-80GB", 8, 80, tuple(f"n{i}" for i in range(nodes)))
    waiting = {f"s{i}/r": _request(chance, i) for i in range(requests)}
    return Snapshot(0, {POOL: pool}, _leases(chance, pool), waiting)


def _leases(chance: random.Random, pool: Pool) -> dict[str, Lease]:
    leases, first = {}, 0
    while first < len(pool.nodes):
        nodes = pool.nodes[first : first + chance.randint(1, 16)]
        end, key = chance.randint(1, 24 * HOUR), f"running{first}/r"
        leases[key] = Lease(key, key, POOL, nodes, 0, 0, end, end)
        first += len(nodes)
    return leases


def _request(chance: random.Random, i: int) -> Request:
    return Request(
        key=f"s{i}/r",
        slice=f"s{i}",
        nodes=chance.randint(1, 16),
        duration=chance.randint(HOUR, 24 * HOUR),
        pools=(POOL,),
        priority=chance.randint(1, 300),
        filed_at=i,
    )


def _row(snapshot: Snapshot, rounds: int) -> str:
    nothing = _median(lambda: plan(snapshot), rounds)
    if nothing > MINUTE_S:
        return f"{nothing:>13.3f} {'-':>13} {'-':>9}"
    promised = with_promises(snapshot, plan(snapshot))
    urgent = Request("urgent/r", "urgent", 16, 2 * HOUR, (POOL,), priority=300, filed_at=-1)
    more = replace(promised, requests={**promised.requests, urgent.key: urgent})
    again = _median(lambda: plan(promised), rounds)
    return f"{nothing:>13.3f} {again:>13.3f} {_median(lambda: plan(more), 1):>9.3f}"


def _median(work: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


if __name__ == "__main__":
    main()
