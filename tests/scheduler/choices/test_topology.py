"""Nodes that stand together, and those that failed before last (D17, B8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.choices.node_choice import Need, choose_nodes
from scheduler.choices.topology import PLAIN, Traits, together
from scheduler.snapshot import Window
from tests.scheduler.worlds import lease, pool

RACKS = {
    "h100-1": Traits(("b1", "r1")),
    "h100-2": Traits(("b1", "r1")),
    "h100-3": Traits(("b1", "r2")),
    "h100-4": Traits(("b1", "r2")),
    "h100-5": Traits(("b1", "r2")),
    "h100-6": Traits(("b2", "r3")),
    "h100-7": Traits(("b2", "r3")),
}


def chosen(traits: Mapping[str, Traits], count: int, beside: Sequence[str] = ()) -> list[int]:
    found = together([*traits], count, lambda name: traits.get(name, PLAIN), beside)
    return sorted(int(name.removeprefix("h100-")) for name in found)


@pytest.mark.parametrize(
    ("count", "beside", "want"),
    [
        pytest.param(1, [], [6], id="one node leaves the large block whole"),
        pytest.param(2, [], [6, 7], id="two in the smallest block that holds them"),
        pytest.param(3, [], [3, 4, 5], id="three in one rack"),
        pytest.param(4, [], [1, 3, 4, 5], id="four in two racks of one block"),
        pytest.param(
            6, [], [1, 2, 3, 4, 5, 6], id="six need both blocks: one whole, as little as can be of the other"
        ),
        pytest.param(7, [], [1, 2, 3, 4, 5, 6, 7], id="all"),
        pytest.param(1, ["h100-1"], [2], id="a node beside others stands in their rack"),
        pytest.param(2, ["h100-2"], [3, 4], id="and in their block where the rack is full"),
    ],
)
def test_together(count: int, beside: list[str], want: list[int]) -> None:
    there = {name: found for name, found in RACKS.items() if name not in beside}
    found = together([*there], count, lambda name: RACKS[name], beside)
    assert sorted(int(name.removeprefix("h100-")) for name in found) == want


@pytest.mark.parametrize(
    ("faults", "count", "want"),
    [
        pytest.param({"h100-6": 1}, 1, [7], id="who failed before comes last in its rack"),
        pytest.param({"h100-6": 1, "h100-7": 1}, 1, [1], id="and gives way to another rack"),
        pytest.param({"h100-6": 1}, 2, [1, 2], id="also for several, where as few racks are enough"),
        pytest.param({"h100-4": 9}, 3, [3, 4, 5], id="but no request is torn apart for it"),
        pytest.param({"h100-6": 1, "h100-7": 2, "h100-1": 3, "h100-2": 3}, 2, [3, 4], id="fewest faults"),
    ],
)
def test_nodes_that_failed_before_come_last(faults: dict[str, int], count: int, want: list[int]) -> None:
    traits = {name: Traits(found.domains, faults.get(name, 0)) for name, found in RACKS.items()}
    assert chosen(traits, count) == want


def test_without_domains_the_pools_order_counts() -> None:
    traits = {f"h100-{i}": Traits((), int(i == 1)) for i in range(1, 5)}
    assert chosen(traits, 2) == [2, 3]


def test_nodes_that_go_are_not_taken_for_the_sake_of_a_rack() -> None:
    """What another request may be planned on comes last, wherever it stands."""
    there = pool(4)
    held = [lease("b", ["h100-2"], 90, held_from=50, start=50)]
    traits = {"h100-1": ("r1",), "h100-2": ("r1",), "h100-3": ("r2",), "h100-4": ("r3",)}
    got = choose_nodes(there, held, Need(2, Window(0, 10)), (), lambda name: Traits(traits[name]))
    assert got is not None
    assert "h100-2" not in got


some_traits = st.builds(
    lambda block, rack, faults, known: Traits((f"b{block}", f"b{block}r{rack}")[:known], faults),
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(0, 2),
    st.sampled_from([0, 1, 2, 2, 2, 2]),
)
fleets = st.lists(some_traits, min_size=1, max_size=8).map(
    lambda found: {f"h100-{i}": traits for i, traits in enumerate(found, 1)}
)


def counts(names: Sequence[str], traits: Mapping[str, Traits]) -> tuple[int, int, int]:
    """Blocks, racks, faults."""
    paths = [(*traits[n].domains, *(n, n)[len(traits[n].domains) :]) for n in names]
    blocks = {path[0] for path in paths}
    return len(blocks), len(set(paths)), sum(traits[name].faults for name in names)


@given(fleets, st.data())
def test_no_choice_is_closer(traits: Mapping[str, Traits], data: st.DataObject) -> None:
    """Against every other choice there is."""
    count = data.draw(st.integers(1, len(traits)))
    got = together([*traits], count, lambda name: traits[name])
    assert len(set(got)) == count
    assert set(got) <= traits.keys()
    blocks, racks, faults = counts(got, traits)
    every = [counts(names, traits) for names in combinations(traits, count)]
    assert blocks == min(every)[0]
    if blocks == 1:
        assert racks == min(every)[1]
    if racks == 1:
        assert faults == min(every)[2]


@given(fleets, st.data())
def test_nobody_finds_fewer_nodes_than_before(traits: Mapping[str, Traits], data: st.DataObject) -> None:
    """Where nodes stand never decides whether there are enough."""
    there = pool(len(traits))
    held = data.draw(st.sets(st.sampled_from([*traits])))
    leases = [lease(f"s{i}", [name], 90) for i, name in enumerate(sorted(held))]
    need = Need(data.draw(st.integers(1, len(traits))), Window(0, 10))
    bare = choose_nodes(there, leases, need)
    got = choose_nodes(there, leases, need, (), lambda name: traits[name])
    assert (got is None) == (bare is None)
    assert got is None or (len(set(got)) == need.nodes and not held.intersection(got))
