"""A settled plan is that of every later instant until its first start: planning again gives the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.plan import planned_plainly
from scheduler.promises import with_promises
from scheduler.snapshot import Plan, Promise, Snapshot
from scheduler.standing import is_settled, stands
from tests.scheduler.crowds import crowd
from tests.scheduler.worlds import EAST, lease, pool, request, world, worlds
from tests.support.profile import law


def committed(snapshot: Snapshot) -> tuple[Snapshot, Plan]:
    """The world once its plan is promised, and planned again."""
    promised = with_promises(snapshot, planned_plainly(snapshot))
    return promised, planned_plainly(promised)


def is_same(one: Plan, other: Plan) -> bool:
    return (one.order, dict(one.placements), dict(one.refusals), tuple(one.displaced)) == (
        other.order,
        dict(other.placements),
        dict(other.refusals),
        tuple(other.displaced),
    )


@law(300)
@given(worlds(), st.integers(0, 60))
def test_a_plan_that_stands_is_the_plan(snapshot: Snapshot, passed: int) -> None:
    was, planned = committed(snapshot)
    now = replace(was, now=was.now + passed)
    if is_settled(was, planned) and stands(was, planned, now):
        assert is_same(planned, planned_plainly(now))


@pytest.mark.parametrize("seed", range(1, 30))
def test_so_is_that_of_a_crowd(seed: int) -> None:
    was, planned = committed(crowd(seed, 40))
    first = min((p.start for p in planned.placements.values() if p.start > was.now), default=was.now)
    for now in (was.now + 1, (was.now + first) // 2, first):
        later = replace(was, now=now)
        if is_settled(was, planned) and stands(was, planned, later):
            assert is_same(planned, planned_plainly(later))


HELD = request("a", 2, promise=Promise(EAST, 10))
BUSY = lease("b", ["h100-1", "h100-2"], 10)


@pytest.mark.parametrize(
    ("later", "want"),
    [
        pytest.param({"now": 5}, True, id="time passed"),
        pytest.param({"now": 10}, True, id="the start is now"),
        pytest.param({"now": 11}, False, id="the start passed"),
        pytest.param({"leases": {}}, False, id="a lease is gone"),
        pytest.param({"pools": {EAST: pool(3)}}, False, id="a node came"),
        pytest.param({"requests": {}}, False, id="a request is gone"),
        pytest.param({"requests": {HELD.key: replace(HELD, boost=1)}}, False, id="somebody waited long"),
    ],
)
def test_it_stands_while_nothing_but_the_time_is_another(later: dict[str, object], want: bool) -> None:
    was = world(HELD, pools=[pool(2)], leases=[BUSY])
    planned = planned_plainly(was)
    assert is_settled(was, planned)
    assert stands(was, planned, replace(was, **later)) is want  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(world(request("a"), pools=[pool(2)]), id="somebody has no promise yet"),
        pytest.param(world(HELD, pools=[pool(2)]), id="somebody moves earlier"),
        pytest.param(world(HELD, pools=[pool(1)]), id="a promise does not hold"),
    ],
)
def test_what_moves_somebody_is_not_settled(snapshot: Snapshot) -> None:
    assert not is_settled(snapshot, planned_plainly(snapshot))
