"""Names for nodes, once a start is decided (design, sections 4 and 6; F4, F11, E10).

That there are always enough of them is held by test_plan_properties.py, which plays plans forward.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.choices.node_choice import Need, choose_nodes, in_order_of_begin, need
from scheduler.plan import plan
from scheduler.snapshot import Lease, Pool, Promise, Window
from tests.scheduler.worlds import EAST, OUT, WEST, lease, pool, request, world

THREE = pool(3)
NOW = Window(0, 10)


@pytest.mark.parametrize(
    ("there", "leases", "wanted", "avoid", "want"),
    [
        pytest.param(THREE, [], Need(2, NOW), [], (1, 2), id="in the pool's order"),
        pytest.param(
            THREE, [lease("b", ["h100-1"], 5)], Need(2, NOW), [], (2, 3), id="not those that are held"
        ),
        pytest.param(
            replace(THREE, windows={"h100-1": (Window(20, 30),)}),
            [],
            Need(2, NOW),
            [],
            (2, 3),
            id="nodes that stay before nodes that go",
        ),
        pytest.param(
            replace(THREE, windows={"h100-1": (Window(20, 30),)}),
            [],
            Need(2, NOW, ("h100-1",)),
            [],
            (1, 2),
            id="what the plan has bound comes first",
        ),
        pytest.param(
            replace(THREE, windows={"h100-1": (Window(20, 30),)}),
            [],
            Need(3, NOW),
            [],
            (1, 2, 3),
            id="nodes that go when no others are left",
        ),
        pytest.param(THREE, [], Need(2, NOW), ["h100-1"], (2, 3), id="not those whose checks failed"),
        pytest.param(THREE, [], Need(3, NOW), ["h100-1"], None, id="too few"),
        pytest.param(replace(THREE, windows={"h100-2": OUT}), [], Need(3, NOW), [], None, id="one is out"),
        pytest.param(
            THREE,
            [lease("b", ["h100-1"], 25, held_from=15, start=15)],
            Need(1, Window(5, 15)),
            [],
            (2,),
            id="a node that another lease gets later stays for short holds",
        ),
    ],
)
def test_choice(
    there: Pool, leases: list[Lease], wanted: Need, avoid: list[str], want: tuple[int, ...] | None
) -> None:
    expected = None if want is None else tuple(f"h100-{i}" for i in want)
    assert choose_nodes(there, leases, wanted, avoid) == expected


def test_a_hold_begins_with_preparation_and_ends_with_draining() -> None:
    slow = pool(2, prepare=3, drain=4)
    snapshot = world(request("a"), pools=[slow])
    placement = plan(snapshot).placements["a/r"]
    assert need(slow, snapshot.requests["a/r"], placement, 0) == Need(1, Window(0, 17))


def test_a_promise_nearer_than_preparation_is_held_from_now() -> None:
    slow = pool(2, prepare=3)
    snapshot = world(request("a", promise=Promise(EAST, 7)), pools=[slow], now=6)
    placement = plan(snapshot).placements["a/r"]
    assert need(slow, snapshot.requests["a/r"], placement, 6).hold == Window(6, 17)


def test_nodes_are_chosen_in_order_of_the_holds_begin() -> None:
    slow, quick = pool(2, prepare=9), pool(2, WEST)
    snapshot = world(
        request("a", not_before=20), request("b", pools=(WEST,), not_before=15), pools=[slow, quick]
    )
    assert [p.key for p in in_order_of_begin(snapshot, plan(snapshot))] == ["a/r", "b/r"]
