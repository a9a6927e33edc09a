"""What a change does to everyone (design, section 7, `egs plan --against`)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.causes.compare import Effect, compare
from scheduler.snapshot import Promise, Snapshot
from schemas.status.gpr_status import Cause
from tests.scheduler.worlds import EAST, OUT, lease, pool, request, world

TWO = pool(2)
A = request("a", 2, filed_at=1)
B = request("b", 2, filed_at=2)
BEFORE = world(A, B, pools=[TWO])


@pytest.mark.parametrize(
    ("after", "want"),
    [
        pytest.param(BEFORE, [], id="no change, no effect"),
        pytest.param(
            world(A, B, request("c", 2, filed_at=3), pools=[TWO]),
            [Effect("c/r", "new", None, 20)],
            id="a new request delays nobody of higher rank",
        ),
        pytest.param(
            world(A, B, request("c", 2, priority=300), pools=[TWO]),
            [
                Effect("c/r", "new", None, 0),
                Effect("a/r", "later", 0, 10, Cause.HIGHER_RANK_ARRIVED, "c/r"),
                Effect("b/r", "later", 10, 20, Cause.HIGHER_RANK_ARRIVED, "c/r"),
            ],
            id="a new request of higher rank, and whom it delays",
        ),
        pytest.param(
            world(B, pools=[TWO]),
            [Effect("b/r", "earlier", 10, 0), Effect("a/r", "gone", 0, None)],
            id="a cancelled request makes room",
        ),
        pytest.param(
            world(A, B, pools=[replace(TWO, windows={"h100-1": OUT})]),
            [
                Effect("a/r", "refused", 0, None, Cause.NODE_LOST, "east/h100/h100-1"),
                Effect("b/r", "refused", 10, None, Cause.NODE_LOST, "east/h100/h100-1"),
            ],
            id="a start that is lost",
        ),
        pytest.param(
            world(A, B, request("c", 9), pools=[TWO]),
            [Effect("c/r", "refused", None, None)],
            id="a new request that fits nowhere",
        ),
        pytest.param(
            world(A, replace(B, priority=300, filed_at=9), pools=[TWO]),
            [
                Effect("b/r", "earlier", 10, 0),
                Effect("a/r", "later", 0, 10, Cause.REQUEST_CHANGED, "b/r"),
            ],
            id="an edit that raises a priority",
        ),
        pytest.param(
            world(B, pools=[TWO], leases=[lease("a", TWO.nodes, 10)]),
            [],
            id="a start as promised changes nothing",
        ),
    ],
)
def test_effects(after: Snapshot, want: list[Effect]) -> None:
    assert list(compare(BEFORE, after)) == want


def test_promises_that_stand_are_counted_and_not_what_planning_from_nothing_gives() -> None:
    """`b` may not move before its promise; the new request goes before it and delays nobody."""
    held = replace(B, promise=Promise(EAST, 50), movable=False)
    after = world(held, request("c", 2, filed_at=3, duration=30), pools=[TWO])
    assert list(compare(world(held, pools=[TWO]), after)) == [Effect("c/r", "new", None, 0)]
