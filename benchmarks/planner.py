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
from collections.abc import Callable, Sequence
from dataclasses import replace

from scheduler.plan import plan
from scheduler.promises import with_promises
from scheduler.snapshot import Lease, Pool, PoolKey, Request, Snapshot

HOUR = 3600
CASES = ((1_000, 1_000, 1), (10_000, 1_000, 1))
"""Requests, nodes, pools; every request may use every pool."""
LARGE = ((100_000, 10_000, 1), (100_000, 10_000, 20))
"""Half a minute for twenty pools, and more with promises; only when asked for, and then from nothing."""


def main() -> None:
    """Prints machine and medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planner", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the smallest case, once")
    parser.add_argument(
        "--large", action="store_true", help="also 100,000 requests, on one pool and on twenty"
    )
    given = parser.parse_args()
    out = sys.stdout
    out.write(
        f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}; seconds, median\n"
    )
    out.write(
        f"{'requests':>9} {'nodes':>7} {'pools':>6} {'from nothing':>13} {'all promised':>13} {'one more':>9}\n"
    )
    for case in CASES[:1] if given.quick else (*CASES, *(LARGE if given.large else ())):
        requests, nodes, pools = case
        snapshot, rounds = world(requests, nodes, pools), 1 if given.quick or case in LARGE else 5
        figures = _from_nothing(snapshot) if case in LARGE else _row(snapshot, rounds)
        out.write(f"{requests:>9,} {nodes:>7,} {pools:>6} {figures}\n")
        out.flush()


def world(requests: int, nodes: int, pools: int = 1) -> Snapshot:
    """A queue of `requests` on full pools that share `nodes` evenly."""
    chance = random.Random(requests)
    keys: list[PoolKey] = [("bench", f"pool{i}") for i in range(pools)]
    there = {key: _pool(key, nodes // pools) for key in keys}
    leases = {key: lease for pool in there.values() for key, lease in _leases(chance, pool).items()}
    waiting = {f"s{i}/r": _request(chance, i, keys) for i in range(requests)}
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


def _from_nothing(snapshot: Snapshot) -> str:
    return f"{_median(lambda: plan(snapshot), 1):>13.3f} {'-':>13} {'-':>9}"


def _row(snapshot: Snapshot, rounds: int) -> str:
    nothing = _median(lambda: plan(snapshot), rounds)
    promised = with_promises(snapshot, plan(snapshot))
    urgent = Request("urgent/r", "urgent", 16, 2 * HOUR, tuple(snapshot.pools), priority=300, filed_at=-1)
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
