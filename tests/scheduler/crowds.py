"""Worlds of some hundred requests, the same for the same seed, and what may befall them once they are planned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from scheduler.plan import plan
from scheduler.promises import with_promises
from scheduler.snapshot import Lease, Plan, Pool, PoolKey, Request, Snapshot, Window
from tests.scheduler.worlds import OUT, pool, world

HOUR = 3600


def crowd(seed: int, requests: int = 100) -> Snapshot:
    """Nothing promised yet; in every third world nodes have windows, in every second slices are shared."""
    chance = Random(seed)
    pools = [_pool(chance, (f"c{i}", "h100"), seed % 3 == 0) for i in range(chance.randint(1, 4))]
    leases = [lease for there in pools for lease in _leases(chance, there)]
    keys = [there.key for there in pools]
    slices = requests if seed % 2 else requests // 8
    waiting = [_request(chance, i, keys, f"s{chance.randrange(slices)}") for i in range(requests)]
    return world(*waiting, pools=pools, leases=leases, now=1_000)


def history(seed: int) -> Iterator[tuple[Snapshot, Plan]]:
    """A crowd planned from nothing, planned again, and after each of several things that happen to it."""
    snapshot, chance = crowd(seed), Random(seed + 1)
    for step in range(6):
        planned = plan(snapshot)
        yield snapshot, planned
        snapshot = _befall(chance, with_promises(snapshot, planned), step)


def _befall(chance: Random, snapshot: Snapshot, step: int) -> Snapshot:
    if step == 1:
        leases = dict(list(snapshot.leases.items())[::2])
        return replace(snapshot, leases=leases)
    if step == 2:
        keys = sorted(snapshot.pools)
        urgent = replace(_request(chance, 9_999, keys, "urgent"), priority=300, filed_at=0)
        return replace(snapshot, requests={**snapshot.requests, urgent.key: urgent})
    if step == 3:
        key = min(snapshot.pools)
        there = snapshot.pools[key]
        lost = replace(there, windows={**there.windows, there.nodes[0]: OUT})
        return replace(snapshot, pools={**snapshot.pools, key: lost})
    if step == 4:
        return replace(snapshot, now=snapshot.now + HOUR)
    return snapshot


def _pool(chance: Random, key: PoolKey, windows: bool) -> Pool:
    there = pool(chance.randint(6, 24), key, prepare=chance.choice([0, 120]), drain=chance.choice([0, 300]))
    if not windows:
        return there
    begins = {name: chance.randrange(80 * HOUR) for name in there.nodes[::5]}
    return replace(there, windows={name: (Window(at, at + 5 * HOUR),) for name, at in begins.items()})


def _leases(chance: Random, there: Pool) -> Iterator[Lease]:
    for first in range(0, len(there.nodes), 3):
        nodes, end = there.nodes[first : first + 3], chance.randint(2_000, 24 * HOUR)
        key = f"running-{there.key[0]}-{first}/r"
        yield Lease(key, key, there.key, nodes, 0, 0, end, end + there.drain)


def _request(chance: Random, i: int, keys: list[PoolKey], slice_: str) -> Request:
    return Request(
        key=f"{slice_}/r{i}",
        slice=slice_,
        nodes=chance.randint(1, 6),
        duration=chance.choice([HOUR, 2 * HOUR, chance.randint(600, 24 * HOUR)]),
        pools=tuple(chance.sample(keys, chance.randint(1, len(keys)))),
        priority=chance.randint(1, 300),
        filed_at=i,
        not_before=chance.choice([0, 0, 0, chance.randrange(200 * HOUR)]),
        movable=chance.random() < 0.9,
    )
