"""The planner's rules as a table (design, section 6; features E1, E3, E10, F11, D6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.plan import plan
from scheduler.snapshot import FOREVER, Displaced, Promise, Request, Snapshot, Window
from tests.scheduler.worlds import EAST, OUT, WEST, lease, pool, request, starts, world

BOTH = (EAST, WEST)
TWO = pool(2)
SLOW = pool(2, prepare=3, drain=4)


def at(start: int, key: tuple[str, str] = EAST) -> Promise:
    return Promise(key, start)


@pytest.mark.parametrize(
    ("snapshot", "want"),
    [
        pytest.param(world(request("a"), pools=[TWO]), {"a": 0}, id="a free node is used at once"),
        pytest.param(
            world(request("a", 2), pools=[TWO], leases=[lease("run", ["h100-1"], 7)]),
            {"a": 7},
            id="waits for the busy node",
        ),
        pytest.param(
            world(request("a", filed_at=2), request("b", 2, filed_at=1), pools=[TWO]),
            {"b": 0, "a": 10},
            id="first filed is first served",
        ),
        pytest.param(
            world(request("a", 2, filed_at=1), request("b", 2, filed_at=2, priority=201), pools=[TWO]),
            {"b": 0, "a": 10},
            id="a higher priority comes before an earlier one",
        ),
        pytest.param(
            world(request("b", 2), request("a", 2), pools=[TWO]),
            {"a": 0, "b": 10},
            id="the name breaks the last tie",
        ),
        pytest.param(
            world(
                request("a", 2, filed_at=1),
                request("b", duration=5, filed_at=2),
                pools=[TWO],
                leases=[lease("run", ["h100-1"], 5)],
            ),
            {"a": 5, "b": 0},
            id="a lower rank fills a gap that it leaves in time",
        ),
        pytest.param(
            world(
                request("a", 2, filed_at=1),
                request("b", duration=6, filed_at=2),
                pools=[TWO],
                leases=[lease("run", ["h100-1"], 5)],
            ),
            {"a": 5, "b": 15},
            id="a lower rank never delays a higher one",
        ),
        pytest.param(
            world(request("a", not_before=42), pools=[TWO]), {"a": 42}, id="not before the wanted instant"
        ),
        pytest.param(
            world(request("a"), pools=[SLOW], now=100), {"a": 103}, id="preparation comes before the start"
        ),
        pytest.param(
            world(request("a", 2, filed_at=1), request("b", 2, filed_at=2), pools=[SLOW]),
            {"a": 3, "b": 20},
            id="between two holds lie draining and preparation",
        ),
        pytest.param(
            world(
                request("a", slice="team", filed_at=1),
                request("b", slice="team", filed_at=2),
                pools=[SLOW],
            ),
            {"a": 3, "b": 13},
            id="a slice goes on at the end: its nodes drain while others run",
        ),
        pytest.param(
            world(request("a", slice="run"), pools=[TWO], leases=[lease("run", ["h100-1"], 8, slice="run")]),
            {"a": 8},
            id="a slice waits for its own running request",
        ),
        pytest.param(
            world(request("a", 2), pools=[replace(TWO, windows={"h100-1": OUT})]),
            {},
            id="a node that is out serves nobody",
        ),
        pytest.param(
            world(
                request("a", duration=20),
                pools=[replace(TWO, windows={"h100-1": (Window(0, 10),), "h100-2": (Window(10, 20),)})],
            ),
            {"a": 10},
            id="one node for the whole hold, not two in turn",
        ),
        pytest.param(
            world(
                request("a", 2, duration=10),
                pools=[replace(pool(3), windows={"h100-2": (Window(10, 99),), "h100-3": (Window(4, 99),)})],
            ),
            {"a": 0},
            id="nodes with and without windows serve one request together",
        ),
        pytest.param(
            world(
                request("short", duration=10, filed_at=1),
                request("long", duration=30, filed_at=2),
                pools=[replace(TWO, windows={"h100-1": (Window(12, 99),)})],
            ),
            {"short": 0, "long": 0},
            id="a short request takes the node that goes down soon",
        ),
        pytest.param(
            world(request("a"), pools=[replace(TWO, observed=True)]),
            {"a": 0},
            id="an observed pool is planned as any other",
        ),
        pytest.param(
            world(request("a", pools=BOTH), pools=[replace(TWO, open=False), pool(1, WEST)]),
            {"a": 0},
            id="a closed pool gets nothing new",
        ),
    ],
)
def test_from_nothing(snapshot: Snapshot, want: dict[str, int]) -> None:
    assert starts(plan(snapshot)) == want


def test_requests_without_a_slice_run_side_by_side() -> None:
    planned = plan(world(request("a", slice=""), request("b", slice=""), pools=[TWO]))
    assert [placement.start for placement in planned.placements.values()] == [0, 0]


def test_of_equally_early_pools_the_first_of_the_request_is_taken() -> None:
    snapshot = world(request("a", pools=(WEST, EAST)), pools=[TWO, pool(2, WEST)])
    assert plan(snapshot).placements["a/r"].pool == WEST


def test_a_request_that_is_bound_names_the_nodes_with_windows() -> None:
    snapshot = world(request("a"), pools=[replace(TWO, windows={"h100-2": (Window(10, 20),)})])
    assert plan(snapshot).placements["a/r"].bound == ("h100-2",)


@pytest.mark.parametrize(
    ("snapshot", "want", "displaced"),
    [
        pytest.param(
            world(request("a", promise=at(30), movable=False), pools=[TWO]),
            {"a": 30},
            [],
            id="what may not be moved stays at its promise",
        ),
        pytest.param(
            world(request("a", promise=at(30)), pools=[TWO]),
            {"a": 0},
            [],
            id="room that came free moves a promise earlier",
        ),
        pytest.param(
            world(
                request("low", 2, priority=1, promise=at(0)), request("high", 1, priority=300), pools=[TWO]
            ),
            {"high": 0, "low": 10},
            [("low", "high")],
            id="a higher rank takes the room it needs",
        ),
        pytest.param(
            world(
                request("low", 1, priority=1, promise=at(0)),
                request("mid", 1, priority=2, promise=at(0)),
                request("high", 1, priority=300),
                pools=[TWO],
            ),
            {"high": 0, "mid": 0, "low": 10},
            [("low", "high")],
            id="the lowest rank gives way, and nobody else",
        ),
        pytest.param(
            world(
                request("low", 1, priority=1, promise=at(0)),
                request("mid", 3, priority=2, promise=at(0)),
                request("high", 3, priority=300),
                pools=[pool(4)],
            ),
            {"high": 0, "low": 0, "mid": 10},
            [("mid", "high")],
            id="who gave way in vain returns",
        ),
        pytest.param(
            world(
                request("low", 2, priority=1, promise=at(0)),
                request("high", 2, priority=300, pools=(EAST, WEST)),
                pools=[TWO, pool(2, WEST)],
            ),
            {"high": 0, "low": 0},
            [],
            id="nobody gives way while another pool is free as early",
        ),
        pytest.param(
            world(
                request("low", 2, priority=1, promise=at(0)),
                request("mid", 2, priority=2, promise=at(10)),
                request("high", 2, priority=300),
                pools=[TWO],
            ),
            {"high": 0, "low": 20, "mid": 10},
            [("low", "high")],
            id="who gave way goes behind the promises of higher rank",
        ),
        pytest.param(
            world(
                request("low", slice="team", priority=1, promise=at(0)),
                request("high", slice="team", priority=300),
                pools=[TWO],
            ),
            None,
            [("low", "high")],
            id="a slice runs its higher request first",
        ),
        pytest.param(
            world(request("a", promise=at(4)), pools=[TWO], now=5),
            {"a": 5},
            [("a", "")],
            id="a start that has passed cannot hold",
        ),
        pytest.param(
            world(request("a", promise=at(6)), pools=[SLOW], now=5),
            {"a": 6},
            [],
            id="a promise may be nearer than preparation takes",
        ),
        pytest.param(
            world(request("a", promise=at(30), not_before=40), pools=[TWO]),
            {"a": 40},
            [("a", "")],
            id="a later wish ends the promise",
        ),
        pytest.param(
            world(request("a", promise=at(3, WEST)), pools=[TWO, pool(1, WEST)]),
            {"a": 0},
            [("a", "")],
            id="a pool that is no longer among its pools",
        ),
        pytest.param(
            world(request("a", promise=at(3), pools=BOTH), pools=[replace(TWO, open=False), pool(1, WEST)]),
            {"a": 0},
            [("a", "")],
            id="a pool that has closed",
        ),
        pytest.param(
            world(
                request("a", promise=at(0)),
                request("b", promise=at(0)),
                pools=[replace(TWO, windows={"h100-1": OUT})],
            ),
            {"a": 0, "b": 10},
            [("b", "")],
            id="of two promises on one node the higher rank holds",
        ),
    ],
)
def test_with_promises(
    snapshot: Snapshot, want: dict[str, int] | None, displaced: list[tuple[str, str]]
) -> None:
    planned = plan(snapshot)
    assert want is None or starts(planned) == want
    assert planned.displaced == tuple(Displaced(f"{key}/r", by and f"{by}/r") for key, by in displaced)


def test_promises_keep_their_starts_when_a_window_makes_nodes_unlike() -> None:
    """Reservations may change nodes, where nodes have come to differ, but not times."""
    long, short = request("long", duration=30, promise=at(0)), request("short", promise=at(0), filed_at=-1)
    windows = {"h100-2": (Window(12, FOREVER),)}
    planned = plan(world(long, short, pools=[replace(TWO, windows=windows)]))
    assert starts(planned) == {"long": 0, "short": 0}


def test_an_equally_early_pool_is_no_reason_to_move() -> None:
    held: Request = request("a", pools=BOTH, promise=Promise(WEST, 0))
    assert plan(world(held, pools=[TWO, pool(2, WEST)])).placements["a/r"].pool == WEST


@pytest.mark.parametrize(
    ("snapshot", "reason", "says"),
    [
        pytest.param(
            world(request("a", pools=()), pools=[TWO]),
            "FitsNowhere",
            "no pool that it may use",
            id="no such nodes",
        ),
        pytest.param(
            world(request("a", 3), pools=[TWO]), "FitsNowhere", "asks for 3 nodes", id="too many nodes"
        ),
        pytest.param(
            world(request("a", 2), pools=[replace(TWO, windows={"h100-1": OUT})]),
            "NodesOut",
            "at most 1 in service",
            id="too many nodes are out",
        ),
        pytest.param(
            world(request("a"), pools=[replace(TWO, open=False)]),
            "ClusterUnreachable",
            "cannot be reached",
            id="the only pool is closed",
        ),
    ],
)
def test_a_refusal_says_why(snapshot: Snapshot, reason: str, says: str) -> None:
    refusal = plan(snapshot).refusals["a/r"]
    assert refusal.reason == reason
    assert says in refusal.message


def test_a_refusal_says_what_would_fit() -> None:
    assert (
        plan(world(request("a", 3), pools=[TWO])).refusals["a/r"].would_fit
        == "2 nodes or fewer, in east/h100"
    )
