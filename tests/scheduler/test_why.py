"""What a request waits for, in sentences (design, section 7, `egs why`; D3, E1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.plan import plan
from scheduler.snapshot import Promise, Snapshot, Window
from scheduler.why import why
from tests.scheduler.worlds import EAST, OUT, lease, pool, request, world

TWO = pool(2)


@pytest.mark.parametrize(
    ("snapshot", "want"),
    [
        pytest.param(world(request("a"), pools=[TWO]), [], id="it starts now"),
        pytest.param(
            world(request("a"), pools=[replace(TWO, prepare=5)]), [], id="its nodes are being checked"
        ),
        pytest.param(
            world(request("a", 2), pools=[TWO], leases=[lease("b", ["h100-1"], 7)]),
            ["b/r holds 1 node of east/h100 until 1970-01-01T00:00:07Z."],
            id="a running lease",
        ),
        pytest.param(
            world(request("a", 2, filed_at=1), request("b"), pools=[TWO]),
            ["b/r, of higher rank, gets 1 node from 1970-01-01T00:00:00Z to 1970-01-01T00:00:10Z."],
            id="a request of higher rank",
        ),
        pytest.param(
            world(request("a"), pools=[TWO], leases=[lease("b", ["h100-1"], 7, slice="a")]),
            ["Its slice runs b/r until 1970-01-01T00:00:07Z, and a slice runs one request at a time."],
            id="its own slice",
        ),
        pytest.param(
            world(request("a", filed_at=1), request("b", slice="a"), pools=[TWO]),
            ["Its slice runs b/r, of higher rank, from 1970-01-01T00:00:00Z to 1970-01-01T00:00:10Z."],
            id="a request of its own slice",
        ),
        pytest.param(
            world(request("a", not_before=9), pools=[TWO]),
            ["It must not start before 1970-01-01T00:00:09Z, as requested."],
            id="its own wish",
        ),
        pytest.param(
            world(request("a", promise=Promise(EAST, 9), movable=False), pools=[TWO]),
            ["Its start mode holds it until its promised start, 1970-01-01T00:00:09Z."],
            id="its start mode",
        ),
        pytest.param(
            world(request("a", 2), pools=[replace(TWO, windows={"h100-1": (Window(2, 8),)})]),
            ["1 node of east/h100 is out of service until 1970-01-01T00:00:08Z."],
            id="maintenance",
        ),
        pytest.param(
            world(
                request("a", 2),
                pools=[replace(pool(3), windows={"h100-1": OUT})],
                leases=[lease("b", ["h100-2"], 7)],
            ),
            [
                "b/r holds 1 node of east/h100 until 1970-01-01T00:00:07Z.",
                "1 node of east/h100 is out of service until an admin frees it.",
            ],
            id="a node that is out beside one that is busy",
        ),
        pytest.param(
            world(request("a", 3), pools=[TWO]),
            [
                "it asks for 3 nodes but no pool that it may use has so many.",
                "What would fit: 2 nodes or fewer, in east/h100.",
            ],
            id="it fits nowhere",
        ),
        pytest.param(
            world(
                request("a", 7),
                pools=[pool(7)],
                leases=[lease(f"b{i}", [f"h100-{i}"], i) for i in range(1, 8)],
            ),
            [
                *(f"b{i}/r holds 1 node of east/h100 until 1970-01-01T00:00:0{i}Z." for i in range(1, 6)),
                "2 more hold nodes of east/h100 until 1970-01-01T00:00:07Z.",
            ],
            id="many of a kind are counted",
        ),
    ],
)
def test_why(snapshot: Snapshot, want: list[str]) -> None:
    assert why(snapshot, plan(snapshot), "a/r") == want
