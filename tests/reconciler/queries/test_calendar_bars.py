"""Bars of the calendar: a table of small worlds, and laws on random ones (G3)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given

from reconciler.queries.calendars.calendar_bars import (
    Bar,
    bars_in,
    by_node,
    is_free,
    waits_in,
    when_unreserved,
)
from reconciler.queries.tables import tentative_leases
from scheduler.plan import plan
from scheduler.snapshot import FOREVER, Snapshot, Window
from tests.scheduler.worlds import lease, pool, promised_worlds, request, world
from tests.support.profile import law

DAY = (Window(20, 30),)


def bars(snapshot: Snapshot, *promised: str) -> dict[str, tuple[Bar, ...]]:
    """By node of the pool in the east."""
    found = by_node(bars_in(snapshot, tentative_leases(snapshot, plan(snapshot)), promised))
    return {node: of for (_, node), of in found.items()}


@pytest.mark.parametrize(("snapshot", "want"), [
    pytest.param(world(pools=[pool(2)]), {}, id="an empty pool has no bars"),
    pytest.param(
        world(pools=[pool(2)], leases=[lease("a", ["h100-1", "h100-2"], 10)]),
        {"h100-1": [("lease", 0, 10, "a/r")], "h100-2": [("lease", 0, 10, "a/r")]},
        id="a lease has a bar on each of its nodes",
    ),
    pytest.param(
        world(request("b"), pools=[pool(1)], leases=[lease("a", ["h100-1"], 10)]),
        {"h100-1": [("lease", 0, 10, "a/r"), ("planned", 10, 20, "b/r")]},
        id="a planned request follows the lease that it waits for",
    ),
    pytest.param(
        world(request("b"), pools=[pool(1, prepare=2, drain=3)]),
        {"h100-1": [("planned", 0, 15, "b/r")]},
        id="a bar includes preparing and cleaning",
    ),
    pytest.param(
        world(pools=[pool(2, windows={"h100-2": DAY})]), {"h100-2": [("maintenance", 20, 30, "")]},
        id="a window of maintenance is a bar without a request",
    ),
    pytest.param(
        world(pools=[pool(1, windows={"h100-1": (Window(0, FOREVER),)})]), {},
        id="a node that is out for good is told by its state, not by a window",
    ),
])  # fmt: skip
def test_bars(snapshot: Snapshot, want: dict[str, Any]) -> None:
    got = {
        node: [(bar.kind, bar.begin, bar.until, bar.key) for bar in of] for node, of in bars(snapshot).items()
    }
    assert got == want


def test_a_committed_start_is_told_from_one_that_may_move() -> None:
    snapshot = world(request("a"), request("b"), pools=[pool(2)])
    kinds = {bar.key: bar.kind for of in bars(snapshot, "a/r").values() for bar in of}
    assert kinds == {"a/r": "promise", "b/r": "planned"}


def test_who_waits_for_what() -> None:
    """Only what has the very node until the very instant: what ends earlier left it free."""
    snapshot = world(
        request("b", nodes=2), pools=[pool(2)],
        leases=[lease("long", ["h100-1"], 10), lease("short", ["h100-2"], 4)],
    )  # fmt: skip
    found = by_node(bars_in(snapshot, tentative_leases(snapshot), ()))
    assert {key: [bar.key for bar in waits] for key, waits in waits_in(found).items()} == {"b/r": ["long/r"]}


@pytest.mark.parametrize(("now", "want"), [(0, True), (4, False), (9, False), (10, True)])
def test_a_node_is_free_when_nothing_has_it(now: int, want: bool) -> None:
    assert is_free((Bar("lease", 4, 5, 8, 10, "a/r"),), now) is want


@law(200)
@given(promised_worlds(windows=True))
def test_no_node_serves_two_at_once_in_the_calendar(snapshot: Snapshot) -> None:
    """As the plan itself: what is drawn could be carried out."""
    for of in by_node(bars_in(snapshot, tentative_leases(snapshot), ())).values():
        served = [bar for bar in of if bar.key]
        assert all(one.until <= other.begin for one, other in pairwise(served))
        assert all(bar.begin <= bar.start <= bar.end <= bar.until for bar in of)


@law(200)
@given(promised_worlds(windows=True))
def test_everything_is_drawn_with_all_its_nodes(snapshot: Snapshot) -> None:
    planned = tentative_leases(snapshot)
    found = by_node(bars_in(snapshot, planned, ()))
    for one in (*snapshot.leases.values(), *planned):
        drawn = {node for node, of in found.items() if any(bar.key == one.key for bar in of)}
        assert drawn == {(one.pool[0], node) for node in one.nodes}


def test_a_node_is_not_free_while_it_is_not_reserved() -> None:
    """F13, F14: the time before and after too, which no maintenance has; a maintenance in it has no bar of its own."""
    gaps = (Window(0, 20), Window(50, 90), Window(95, FOREVER))
    snapshot = world(
        pools=[pool(1, windows={"h100-1": (Window(0, 20), Window(30, 35), Window(45, 90), gaps[2])})]
    )
    away = {("east", "h100-1"): gaps}
    (bars_,) = by_node(bars_in(snapshot, (), (), away), when_unreserved(away)).values()
    assert [(bar.kind, bar.begin, bar.until) for bar in bars_] == [
        ("unreserved", 0, 20),
        ("maintenance", 30, 35),
        ("unreserved", 50, 90),
        ("unreserved", 95, FOREVER),
    ]
    assert [is_free(bars_, at) for at in (10, 25, 60, 92)] == [False, True, False, True]
