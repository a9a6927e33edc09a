"""The planner agrees with one that only tries (design, section 6; E1, E10)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from scheduler.plan import plan
from scheduler.snapshot import Snapshot
from tests.scheduler.brute import BoundPlanner, BrutePlanner, realisable
from tests.scheduler.worlds import promised_worlds, shares_by_key, worlds
from tests.support.profile import law


def placed(snapshot: Snapshot) -> dict[str, tuple[tuple[str, str], int]]:
    return {key: (placement.pool, placement.start) for key, placement in plan(snapshot).placements.items()}


@law(1000)
@given(worlds(windows=False))
def test_from_nothing_the_plan_is_the_one_found_by_trying_everything(snapshot: Snapshot) -> None:
    assert placed(snapshot) == BrutePlanner(snapshot).run()


@law(1000)
@given(promised_worlds(windows=False))
def test_with_promises_the_plan_is_the_one_found_by_trying_everything(snapshot: Snapshot) -> None:
    brute = BrutePlanner(snapshot)
    assert placed(snapshot) == brute.run()
    assert [(d.key, d.by) for d in plan(snapshot).displaced] == brute.displaced


@law(600)
@given(worlds(windows=True))
def test_nodes_can_be_named_for_every_plan(snapshot: Snapshot) -> None:
    assert realisable(snapshot, plan(snapshot))


@law(600)
@given(promised_worlds(windows=True))
def test_nodes_can_be_named_for_every_plan_with_promises(snapshot: Snapshot) -> None:
    assert realisable(snapshot, plan(snapshot))


@law(400)
@given(worlds(windows=True, most=5))
def test_with_windows_each_start_is_the_earliest_over_all_mixes_of_nodes(snapshot: Snapshot) -> None:
    """Given the kinds of nodes that higher ranks are bound to, no earlier second has room for all nodes.

    Withheld nodes are nobody's in particular, so that among unlike nodes they may cost more than their number.
    """
    pools = {key: replace(pool, withheld=()) for key, pool in snapshot.pools.items()}
    snapshot = replace(snapshot, pools=pools)
    whole = plan(snapshot)
    brute = BoundPlanner(snapshot, groups=shares_by_key(snapshot, whole))
    for place, key in enumerate(whole.order):
        ahead = [whole.placements[k] for k in whole.order[:place] if k in whole.placements]
        taken = {placement.key: (placement.pool, placement.start) for placement in ahead}
        assert brute.earliest(taken, snapshot.requests[key]) == placed(snapshot).get(key)
