"""A world in motion: plans are committed, starts decided, ends kept, and things happen in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from scheduler.choices.node_choice import choose_nodes, in_order_of_begin, need
from scheduler.fairness.rank import overtaking, rank_key
from scheduler.plan import plan
from scheduler.promises import with_promises
from scheduler.snapshot import Lease, Plan, Pool, Request, Snapshot, Window
from tests.scheduler.worlds import OUT

BENIGN = ("end early", "cancel", "heal", "add node")
HARMFUL = ("file", "raise", "move", "lose node", "add window", "close pool")


def decide_due(snapshot: Snapshot, planned: Plan, ahead: int = 0) -> Snapshot:
    """Names nodes for every hold that begins within `ahead` of now; fails if there are too few."""
    for placement in in_order_of_begin(snapshot, planned):
        request, pool = snapshot.requests[placement.key], snapshot.pools[placement.pool]
        wanted = need(pool, request, placement, snapshot.now)
        if wanted.hold.begin > snapshot.now + ahead or pool.observed:
            continue
        names = choose_nodes(pool, snapshot.leases.values(), wanted)
        assert names is not None, f"no nodes for {placement} at {snapshot.now}"
        snapshot = with_lease(snapshot, request, pool.key, names, wanted.hold, placement.start)
    return snapshot


def with_lease(snapshot, request, pool, names, hold, start) -> Snapshot:
    end = start + request.duration
    lease = Lease(request.key, request.slice, pool, names, hold.begin, start, end, hold.end)
    rest = {key: other for key, other in snapshot.requests.items() if key != request.key}
    return replace(snapshot, requests=rest, leases={**snapshot.leases, request.key: lease})


def at(snapshot: Snapshot, now: int) -> Snapshot:
    """The same world later; leases that are over are gone."""
    leases = {key: lease for key, lease in snapshot.leases.items() if lease.held_until > now}
    return replace(snapshot, now=now, leases=leases)


def next_instant(snapshot: Snapshot, planned: Plan) -> int | None:
    """When the next hold begins after now."""
    begins = [
        max(snapshot.now, placement.start - snapshot.pools[placement.pool].prepare)
        for placement in planned.placements.values()
    ]
    return min((begin for begin in begins if begin > snapshot.now), default=None)


def commit(snapshot: Snapshot) -> tuple[Snapshot, Plan]:
    planned = plan(snapshot)
    return with_promises(snapshot, planned), planned


def happen(draw: st.DrawFn, snapshot: Snapshot, what: str) -> Snapshot:
    """Something happens; when there is nothing for it to happen to, nothing does."""
    key = draw(st.sampled_from(sorted(snapshot.pools)))
    pool = snapshot.pools[key]
    node = draw(st.sampled_from(pool.nodes))
    if what == "end early" and snapshot.leases:
        gone = draw(st.sampled_from(sorted(snapshot.leases)))
        return replace(snapshot, leases={k: v for k, v in snapshot.leases.items() if k != gone})
    if what == "cancel" and snapshot.requests:
        gone = draw(st.sampled_from(sorted(snapshot.requests)))
        return replace(snapshot, requests={k: v for k, v in snapshot.requests.items() if k != gone})
    if what == "heal":
        return _with_pool(
            snapshot, replace(pool, windows={k: v for k, v in pool.windows.items() if k != node})
        )
    if what == "add node":
        return _with_pool(snapshot, replace(pool, nodes=(*pool.nodes, f"{key[1]}-{len(pool.nodes) + 1}")))
    if what == "file":
        fresh = draw(fresh_requests(sorted(snapshot.pools), snapshot.now))
        return replace(snapshot, requests={**snapshot.requests, fresh.key: fresh})
    if what in {"raise", "move"} and snapshot.requests:
        return _ranked_anew(draw, snapshot, what)
    if what == "lose node":
        return _with_pool(snapshot, replace(pool, windows={**pool.windows, node: OUT}))
    if what == "add window":
        begin = snapshot.now + draw(st.integers(0, 12))
        windows = (*pool.windows.get(node, ()), Window(begin, begin + draw(st.integers(1, 8))))
        return _with_pool(snapshot, replace(pool, windows={**pool.windows, node: windows}))
    if what == "close pool":
        return _with_pool(snapshot, replace(pool, open=not pool.open))
    return snapshot


def _ranked_anew(draw: st.DrawFn, snapshot: Snapshot, what: str) -> Snapshot:
    """Somebody asks for a higher priority, or an admin moves a request among those of its own."""
    chosen = snapshot.requests[draw(st.sampled_from(sorted(snapshot.requests)))]
    if what == "move":
        placed = replace(chosen, move=draw(st.integers(-2, 2)))
        return _let_past(snapshot, {**snapshot.requests, placed.key: placed})
    raised = replace(
        chosen, priority=chosen.priority + 2, filed_at=snapshot.now, promise=None, may_displace=True
    )
    return replace(snapshot, requests={**snapshot.requests, raised.key: raised})


def _let_past(snapshot: Snapshot, requests: Mapping[str, Request]) -> Snapshot:
    """Whoever is ahead of somebody by a move plans anew, as `reconciler.planning.snapshot.asked_anew` has it."""
    ahead = overtaking(*({k: rank_key(r) for k, r in side.items()} for side in (snapshot.requests, requests)))
    anew = {k: replace(r, promise=None, may_displace=True) for k, r in requests.items() if k in ahead}
    return replace(snapshot, requests={**requests, **anew})


@st.composite
def fresh_requests(draw: st.DrawFn, keys: Sequence[tuple[str, str]], now: int) -> Request:
    return Request(
        key=f"new/{draw(st.integers(0, 999))}",
        slice=draw(st.sampled_from(["", "x", "y"])),
        nodes=draw(st.integers(1, 3)),
        duration=draw(st.integers(1, 9)),
        pools=tuple(draw(st.permutations(keys))),
        priority=draw(st.integers(1, 4)),
        filed_at=now,
    )


def names_overlap(snapshot: Snapshot) -> bool:
    """Whether a node serves two leases at one instant."""
    held: dict[tuple[object, str], list[Window]] = {}
    for lease in snapshot.leases.values():
        for name in lease.nodes:
            others = held.setdefault((lease.pool, name), [])
            if any(lease.held_from < other.end and other.begin < lease.held_until for other in others):
                return True
            others.append(Window(lease.held_from, lease.held_until))
    return False


def slices_overlap(snapshot: Snapshot) -> bool:
    """Whether a slice runs two requests at one instant."""
    named = [lease for lease in snapshot.leases.values() if lease.slice]
    return any(
        one.key < other.key and one.slice == other.slice and one.start < other.end and other.start < one.end
        for one in named
        for other in named
    )


def _with_pool(snapshot: Snapshot, pool: Pool) -> Snapshot:
    return replace(snapshot, pools={**snapshot.pools, pool.key: pool})


def later(before: Snapshot, planned: Plan) -> list[str]:
    """Who is promised less than before."""
    return [
        key
        for key, request in before.requests.items()
        if request.promise is not None
        and key in planned.order
        and (key not in planned.placements or planned.placements[key].start > request.promise.start)
    ]
