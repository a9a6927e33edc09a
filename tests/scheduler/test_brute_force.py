"""The planner agrees with one that only tries (design, section 6; E1, E10)."""

from __future__ import annotations

from hypothesis import given, settings

from scheduler.plan import plan
from scheduler.snapshot import Snapshot
from tests.scheduler.brute import HORIZON, BoundPlanner, BrutePlanner, realisable
from tests.scheduler.worlds import promised_worlds, shares_by_key, worlds


def placed(snapshot: Snapshot) -> dict[str, tuple[tuple[str, str], int]]:
    return {key: (placement.pool, placement.start) for key, placement in plan(snapshot).placements.items()}


@settings(max_examples=1000, deadline=None)
@given(worlds(windows=False))
def test_from_nothing_the_plan_is_the_one_found_by_trying_everything(snapshot: Snapshot) -> None:
    assert placed(snapshot) == BrutePlanner(snapshot).run()


@settings(max_examples=1000, deadline=None)
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


@settings(max_examples=400, deadline=None)
@given(worlds(windows=True, most=5))
def test_with_windows_each_start_is_the_earliest_over_all_mixes_of_nodes(snapshot: Snapshot) -> None:
    """Given the kinds of nodes that higher ranks are bound to, no earlier second has room for all nodes."""
    whole = plan(snapshot)
    brute = BoundPlanner(snapshot, groups=shares_by_key(snapshot, whole))
    for place, key in enumerate(whole.order):
        ahead = [whole.placements[k] for k in whole.order[:place] if k in whole.placements]
        taken = {placement.key: (placement.pool, placement.start) for placement in ahead}
        assert brute.earliest(taken, snapshot.requests[key], HORIZON) == placed(snapshot).get(key)
