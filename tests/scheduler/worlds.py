"""Small worlds for the planner's tests: builders that name only what matters, and random ones nobody would write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from scheduler.calendars.node_binding import Held, wanted_shares
from scheduler.calendars.stretches import free_stretches, leases_by_pool
from scheduler.snapshot import (
    FOREVER,
    Lease,
    Plan,
    Pool,
    PoolKey,
    Promise,
    Request,
    Snapshot,
    Window,
    Withheld,
)

EAST: PoolKey = ("east", "h100")
WEST: PoolKey = ("west", "a100")
OUT = (Window(0, FOREVER),)


def pool(nodes: int, key: PoolKey = EAST, **given: object) -> Pool:
    names = tuple(f"{key[1]}-{i}" for i in range(1, nodes + 1))
    return replace(Pool(key, "H100-80GB", 8, 80, names), **given)


def request(name: str, nodes: int = 1, duration: int = 10, **given: object) -> Request:
    """`a` asks for one node of the pool in the east for ten seconds, in a slice of its own."""
    return replace(Request(f"{name}/r", name, nodes, duration, (EAST,)), **given)


def lease(name: str, nodes: Sequence[str], end: int, **given: object) -> Lease:
    return replace(Lease(f"{name}/r", name, EAST, tuple(nodes), 0, 0, end, end), **given)


def world(
    *requests: Request, pools: Iterable[Pool] = (), leases: Iterable[Lease] = (), now: int = 0
) -> Snapshot:
    return Snapshot(
        now,
        {pool.key: pool for pool in pools},
        {lease.key: lease for lease in leases},
        {request.key: request for request in requests},
    )


def starts(plan: Plan) -> dict[str, int]:
    """Start by the request's slice, which the builders make unique."""
    return {key.split("/")[0]: placement.start for key, placement in plan.placements.items()}


def shares_by_key(snapshot: Snapshot, plan: Plan) -> dict[str, tuple[tuple[int, int], ...]]:
    """From which groups of nodes each placement is served, read off the names that were bound."""
    by_pool = leases_by_pool(snapshot.leases)
    found = {}
    for key, placement in plan.placements.items():
        pool = snapshot.pools[placement.pool]
        stretches = free_stretches(pool, by_pool.get(pool.key, ()), snapshot.now)
        held = Held(
            key, snapshot.requests[key].nodes, hold_of(snapshot, pool, placement.start, placement.end)
        )
        found[key] = wanted_shares(stretches, held, placement.bound)
    return found


def hold_of(snapshot: Snapshot, pool: Pool, start: int, end: int) -> Window:
    return Window(max(snapshot.now, start - pool.prepare), end + pool.drain)


@st.composite
def pools_and_leases(
    draw: st.DrawFn, *, windows: bool, most_nodes: int = 4
) -> tuple[list[Pool], list[Lease]]:
    keys = draw(st.sampled_from([(EAST,), (EAST,), (EAST, WEST)]))
    pools, leases = [], []
    for key in keys:
        fresh = pool(
            draw(st.integers(1, most_nodes)),
            key,
            prepare=draw(st.sampled_from([0, 0, 1, 2])),
            drain=draw(st.sampled_from([0, 0, 1, 3])),
        )
        found: dict[str, tuple[Window, ...]] = {}
        for name in fresh.nodes:
            what = draw(st.integers(0, 5))
            if what == 0:
                end = draw(st.integers(1, 12))
                running = draw(st.integers(1, end))
                slice_ = draw(st.sampled_from(["x", "y", ""])) if not leases else ""
                leases.append(Lease(f"run{len(leases)}/r", slice_, key, (name,), 0, 0, running, end))
            elif what == 1 and windows:
                begin = draw(st.integers(1, 14))
                found[name] = (Window(begin, begin + draw(st.integers(1, 8))),)
            elif what == 2 and windows:
                first = draw(st.integers(1, 8))
                second = first + draw(st.integers(2, 8))
                found[name] = (Window(first, first + 1), Window(second, FOREVER))
            elif what == 3 and draw(st.integers(0, 3)) == 0:
                found[name] = OUT
        pools.append(replace(fresh, windows=found, withheld=draw(withheld())))
    return pools, leases


def withheld() -> st.SearchStrategy[tuple[Withheld, ...]]:
    """Mostly nothing; a node or two for a while, or for good."""
    spans = st.tuples(st.integers(0, 9), st.sampled_from([4, 12, FOREVER]), st.integers(1, 2))
    kept = spans.map(lambda span: (Withheld(span[0], min(span[0] + span[1], FOREVER), span[2]),))
    return st.sampled_from([(), (), ()]).flatmap(lambda none: st.just(none) | kept)


@st.composite
def requests(
    draw: st.DrawFn, keys: Sequence[PoolKey], most: int = 6, slices: Sequence[str] = ("", "", "x", "y")
) -> Mapping[str, Request]:
    found = {}
    for i in range(draw(st.integers(1, most))):
        found[f"s/{i}"] = Request(
            key=f"s/{i}",
            slice=draw(st.sampled_from(slices)),
            nodes=draw(st.integers(1, 3)),
            duration=draw(st.integers(1, 9)),
            pools=tuple(draw(st.permutations(keys)))[: draw(st.integers(1, len(keys)))],
            priority=draw(st.integers(1, 3)),
            move=draw(st.sampled_from([0, 0, 0, 1, -1])),
            filed_at=draw(st.integers(0, 3)),
            not_before=draw(st.sampled_from([0, 0, 0, 3, 9])),
            movable=draw(st.sampled_from([True, True, True, False])),
            fallback={key: draw(st.integers(0, 14)) for key in keys if draw(st.integers(0, 3)) == 0},
        )
    return found


@st.composite
def worlds(draw: st.DrawFn, *, windows: bool = True, most: int = 6) -> Snapshot:
    """Requests without promises, on pools with running leases and, if asked for, nodes with windows."""
    pools, leases = draw(pools_and_leases(windows=windows))
    waiting = draw(requests([pool.key for pool in pools], most))
    return world(*waiting.values(), pools=pools, leases=leases)


@st.composite
def promised_worlds(draw: st.DrawFn, *, windows: bool = False) -> Snapshot:
    """As `worlds`, with promises of every kind: kept, impossible, past, and of pools that are not theirs."""
    snapshot = draw(worlds(windows=windows))
    promised = {}
    for key, request in snapshot.requests.items():
        start = draw(st.none() | st.integers(-1, 25))
        key_of_pool = draw(st.sampled_from(sorted(snapshot.pools)))
        promise = None if start is None else Promise(key_of_pool, start)
        promised[key] = replace(request, promise=promise, may_displace=draw(st.booleans()))
    return replace(snapshot, requests=promised)
