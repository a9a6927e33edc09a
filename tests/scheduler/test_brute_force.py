"""The planner agrees with one that only tries (design, section 6; E1, E10)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from scheduler.plan import plan
from scheduler.snapshot import FOREVER, Snapshot
from scheduler.stretches import free_stretches, leases_by_pool
from tests.scheduler.brute import BrutePlanner, Job, assignable, busy_seconds, hold, realisable
from tests.scheduler.worlds import promised_worlds, shares_by_key, worlds


def placed(snapshot: Snapshot) -> dict[str, tuple[tuple[str, str], int]]:
    return {key: (placement.pool, placement.start) for key, placement in plan(snapshot).placements.items()}


@settings(max_examples=1500, deadline=None)
@given(worlds(windows=False))
def test_from_nothing_the_plan_is_the_one_found_by_trying_everything(snapshot: Snapshot) -> None:
    assert placed(snapshot) == BrutePlanner(snapshot).run()


@settings(max_examples=1500, deadline=None)
@given(promised_worlds(windows=False))
def test_with_promises_the_plan_is_the_one_found_by_trying_everything(snapshot: Snapshot) -> None:
    brute = BrutePlanner(snapshot)
    assert placed(snapshot) == brute.run()
    assert [(d.key, d.by) for d in plan(snapshot).displaced] == brute.displaced


@settings(max_examples=600, deadline=None)
@given(worlds(windows=True))
def test_nodes_can_be_named_for_every_plan(snapshot: Snapshot) -> None:
    assert realisable(snapshot, plan(snapshot))


@settings(max_examples=600, deadline=None)
@given(promised_worlds(windows=True))
def test_nodes_can_be_named_for_every_plan_with_promises(snapshot: Snapshot) -> None:
    assert realisable(snapshot, plan(snapshot))


@settings(max_examples=600, deadline=None)
@given(worlds(windows=True))
def test_with_windows_each_start_is_the_earliest_over_all_mixes_of_nodes(snapshot: Snapshot) -> None:
    """Given the groups of nodes that higher ranks are bound to, no earlier second has room for all nodes."""
    whole = plan(snapshot)
    for place, key in enumerate(whole.order):
        ahead = whole.order[:place]
        # Planning the higher ranks alone gives the same: a lower rank never changes a higher one's place.
        alone = plan(replace(snapshot, requests={k: snapshot.requests[k] for k in whole.order[: place + 1]}))
        assert {k: alone.placements.get(k) and alone.placements[k].start for k in ahead} == {
            k: whole.placements.get(k) and whole.placements[k].start for k in ahead
        }
        expected = _first_second_with_room(snapshot, ahead, key)
        assert (whole.placements.get(key) and whole.placements[key].start) == expected


def _first_second_with_room(snapshot: Snapshot, ahead: tuple[str, ...], key: str) -> int | None:
    whole = plan(snapshot)
    brute, request = BrutePlanner(snapshot), snapshot.requests[key]
    shares = shares_by_key(snapshot, whole)
    for start in range(60):
        for name in request.pools:
            jobs = [
                Job(hold(snapshot, pool, snapshot.requests[other], at.start), count, _group(snapshot, name, other, end))
                for other in ahead
                if (at := whole.placements.get(other)) and at.pool == name and (pool := snapshot.pools[name])
                for end, count in shares[other]
            ]
            pool = snapshot.pools[name]
            jobs.append(Job(hold(snapshot, pool, request, start), request.nodes, pool.nodes))
            others = {k: (whole.placements[k].pool, whole.placements[k].start) for k in ahead if k in whole.placements}
            if (
                brute.may_start(request, name, start)
                and _slice_free(brute, others, request, start)
                and assignable(jobs, busy_seconds(snapshot, pool))
            ):
                return start
    return None


def _group(snapshot, name, other, end):
    pool = snapshot.pools[name]
    stretches = free_stretches(pool, leases_by_pool(snapshot.leases).get(name, ()), snapshot.now)
    at = plan(snapshot).placements[other]
    window = hold(snapshot, pool, snapshot.requests[other], at.start)
    return tuple(
        n
        for n, ws in stretches.items()
        if any(w.begin <= window.start and window.stop <= w.end and w.end == end for w in ws)
    )


def _slice_free(brute, others, request, start) -> bool:
    bare = {k: v for k, v in others.items() if brute.get(k).slice == request.slice and request.slice}
    if any(brute.same_slice(request, start, brute.get(k), s) for k, (_, s) in bare.items()):
        return False
    return not any(
        request.slice and l.slice == request.slice and l.start < start + request.duration and start < l.end
        for l in brute.snapshot.leases.values()
    )
