"""What can happen to a small world between two plans, each on a thing of its own, so that any of it can be left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from scheduler.promises import with_promises
from scheduler.snapshot import Lease, Plan, Pool, PoolKey, Request, Snapshot, Window
from schemas.status.gpr_status import Cause
from tests.scheduler.worlds import EAST, OUT, WEST


@dataclass(frozen=True)
class Happening:
    """One thing that happened. `cause` None: it only gives room."""

    cause: Cause | None
    by: str
    to: Callable[[Snapshot], Snapshot]


def after(before: Snapshot, happened: Iterable[Happening]) -> Snapshot:
    """The world in which these happened and nothing else did."""
    for one in happened:
        before = one.to(before)
    return before


@st.composite
def committed_worlds(draw: st.DrawFn, plan: Callable[[Snapshot], Plan], *, most: int = 5) -> Snapshot:
    """Leases and promises on one or two pools of equal nodes."""
    keys = draw(st.sampled_from([(EAST,), (EAST, WEST)]))
    pools, leases, requests = {}, {}, {}
    for key in keys:
        names = tuple(f"{key[1]}-{i}" for i in range(1, draw(st.integers(1, 3)) + 1))
        pools[key] = Pool(key, "H100-80GB", 8, 80, names, drain=draw(st.sampled_from([0, 1])))
        for name in names:
            if draw(st.integers(0, 2)) == 0:
                end = draw(st.integers(2, 9))
                lease = Lease(f"run/{name}", "", key, (name,), 0, 0, end, end + pools[key].drain)
                leases[lease.key] = lease
    for i in range(draw(st.integers(1, most))):
        requests[f"s/{i}"] = Request(
            f"s/{i}",
            draw(st.sampled_from(["", "", "x"])),
            draw(st.integers(1, 2)),
            draw(st.integers(1, 7)),
            tuple(draw(st.permutations(keys)))[: draw(st.integers(1, len(keys)))],
            priority=draw(st.integers(1, 3)),
        )
    bare = Snapshot(0, pools, leases, requests)
    return with_promises(bare, plan(bare))


@st.composite
def happenings(draw: st.DrawFn, world: Snapshot) -> list[Happening]:
    """Up to five, each on a thing of its own."""
    possible = [
        *(_filed(draw, i, sorted(world.pools)) for i in range(2)),
        *(_raised(key) for key in sorted(world.requests)),
        *(_cancelled(key) for key in sorted(world.requests)[:1]),
        *(_of_lease(draw, key) for key in sorted(world.leases)),
        *(one for key in sorted(world.pools) for one in _of_pool(draw, world.pools[key])),
        Happening(Cause.CONTROLLER_ABSENT, "", lambda w: replace(w, now=w.now + 1)),
    ]
    chosen = draw(st.lists(st.integers(0, len(possible) - 1), min_size=1, max_size=5, unique=True))
    return [possible[i] for i in sorted(chosen)]


def _filed(draw: st.DrawFn, i: int, keys: Sequence[PoolKey]) -> Happening:
    nodes, duration, priority = draw(st.tuples(st.integers(1, 2), st.integers(1, 7), st.integers(1, 4)))
    fresh = Request(f"new/{i}", "", nodes, duration, tuple(keys), priority=priority, filed_at=9)
    return Happening(
        Cause.HIGHER_RANK_ARRIVED,
        fresh.key,
        lambda w: replace(w, requests={**w.requests, fresh.key: fresh}),
    )


def _raised(key: str) -> Happening:
    def to(world: Snapshot) -> Snapshot:
        old = world.requests.get(key)
        if old is None:
            return world
        new = replace(old, priority=old.priority + 2, filed_at=9, promise=None, may_displace=True)
        return replace(world, requests={**world.requests, key: new})

    return Happening(Cause.REQUEST_CHANGED, key, to)


def _cancelled(key: str) -> Happening:
    return Happening(
        None, key, lambda w: replace(w, requests={k: r for k, r in w.requests.items() if k != key})
    )


def _of_lease(draw: st.DrawFn, key: str) -> Happening:
    """It gets grace, takes longer to clean, or is over."""
    more, what = draw(st.integers(1, 6)), draw(st.sampled_from(["grace", "cleaning", "over"]))

    def to(world: Snapshot) -> Snapshot:
        old = world.leases[key]
        if what == "over":
            return replace(world, leases={k: x for k, x in world.leases.items() if k != key})
        end = old.end + (more if what == "grace" else 0)
        new = replace(old, end=end, held_until=old.held_until + more)
        return replace(world, leases={**world.leases, key: new})

    cause = {"grace": Cause.REQUEST_CHANGED, "cleaning": Cause.CHECKS_FAILED, "over": None}[what]
    return Happening(cause, key, to)


def _of_pool(draw: st.DrawFn, pool: Pool) -> list[Happening]:
    def with_pool(change: Callable[[Pool], Pool]) -> Callable[[Snapshot], Snapshot]:
        return lambda w: replace(w, pools={**w.pools, pool.key: change(w.pools[pool.key])})

    found = [
        Happening(Cause.CLUSTER_UNREACHABLE, pool.key[0], with_pool(lambda p: replace(p, open=False))),
    ]
    for name in pool.nodes:
        begin = draw(st.integers(0, 9))
        windows = draw(st.sampled_from([OUT, (Window(begin, begin + 4),)]))
        cause = Cause.NODE_LOST if windows == OUT else Cause.MAINTENANCE_ADDED
        change = _with_windows(name, windows)
        found.append(Happening(cause, "/".join((*pool.key, name)), with_pool(change)))
    return found


def _with_windows(name: str, windows: tuple[Window, ...]) -> Callable[[Pool], Pool]:
    return lambda p: replace(p, windows={**p.windows, name: windows})
