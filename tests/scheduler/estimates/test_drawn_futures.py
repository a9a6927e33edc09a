"""Who starts when in a future whose ends nobody knows before they come (E1, E9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.estimates.drawn_futures import Going, dispatched
from scheduler.fairness.rank import in_rank_order
from scheduler.plan import plan
from scheduler.snapshot import FOREVER, Request, Snapshot, Window, Withheld
from tests.scheduler.worlds import EAST, lease, pool, request, world, worlds
from tests.support.profile import law

TWO = pool(2)


def going(nodes: int, strict: int, used: int = 0, *, since: int = 0, slice_: str = "") -> Going:
    return Going(nodes, strict, used or strict, since, slice_, ((EAST, 0),))


def starts(snapshot: Snapshot, asked: Sequence[Going], ends: dict[str, int] | None = None) -> list[int]:
    return dispatched(snapshot, ends or {}, asked, set(range(len(asked))))


@pytest.mark.parametrize(
    ("asked", "want"),
    [
        pytest.param([going(2, 10, 4), going(1, 10)], [0, 4], id="an end that nobody knew of lets the next one in"),
        pytest.param(
            [going(1, 10), going(2, 10), going(1, 10), going(1, 11)],
            [0, 10, 0, 20],
            id="who would be in the way of the first that waits, as far as anybody knows, waits too",
        ),
        pytest.param([going(1, 5, slice_="a"), going(1, 5, slice_="a")], [0, 5], id="a slice holds one at a time"),
        pytest.param([going(2, 10, since=3), going(2, 6)], [6, 0], id="nothing is kept for who is yet to arrive"),
        pytest.param([going(3, 5), going(1, 5)], [FOREVER, 0], id="what never fits holds up nobody"),
    ],
)  # fmt: skip
def test_who_starts_when(asked: list[Going], want: list[int]) -> None:
    assert starts(world(pools=[TWO]), asked) == want


def test_a_lease_gives_its_nodes_back_when_it_was_drawn_to() -> None:
    held = lease("b", ["h100-1", "h100-2"], 20)
    assert starts(world(pools=[TWO], leases=[held]), [going(2, 5)], {"b/r": 7}) == [7]


def test_nodes_are_prepared_before_a_start_and_cleaned_after_an_end() -> None:
    slow = replace(TWO, prepare=2, drain=3)
    assert starts(world(pools=[slow]), [going(2, 5), going(2, 5)]) == [2, 12]


@pytest.mark.parametrize(
    "where",
    [
        pytest.param(replace(TWO, windows={"h100-1": (Window(4, 8),)}), id="maintenance of a node"),
        pytest.param(replace(TWO, withheld=(Withheld(4, 8, 1),)), id="a reserve that comes"),
    ],
)
def test_nobody_starts_who_would_be_in_the_way_of_what_is_known_to_come(where: object) -> None:
    assert starts(world(pools=[where]), [going(2, 5), going(2, 4)]) == [8, 0]  # type: ignore[list-item]


@given(worlds(), st.lists(st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9)), max_size=9))
@law(150)
def test_a_pool_and_slices_never_serve_more_than_they_can(
    snapshot: Snapshot, asked: list[tuple[int, int, int]]
) -> None:
    """Counted at every start: nodes of the one pool that leases and those who started hold, till they are clean."""
    key, pool = next(iter(snapshot.pools.items()))
    there = replace(pool, windows={}, withheld=())
    held = {name: lease for name, lease in snapshot.leases.items() if lease.pool == key}
    some = [
        Going(nodes, strict, min(used, strict), since, f"s{nodes}", ((key, 0),))
        for since, (nodes, strict, used) in enumerate(asked)
    ]
    found = starts(replace(snapshot, pools={key: there}, leases=held), some)
    going = [(one, start) for one, start in zip(some, found, strict=True) if start < FOREVER]
    assert all(start >= max(snapshot.now, one.since) for one, start in going)
    for _, at in going:
        running = [one for one, start in going if start <= at < start + one.used]
        assert len({one.slice for one in running}) == len(running)
        taken = [
            each for each, start in going if start - there.prepare <= at < start + each.used + there.drain
        ]
        leased = [each for each in held.values() if at < each.held_until]
        nodes = sum(each.nodes for each in taken) + sum(len(each.nodes) for each in leased)
        assert nodes <= len(there.nodes)


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 20), st.integers(0, 9)), max_size=12))
@law(150)
def test_where_everybody_takes_one_node_for_all_of_their_time_starts_are_those_of_the_plan(
    many: list[tuple[int, int, int]],
) -> None:
    asked = [
        replace(request(f"s{i}", 1), slice="", duration=length, priority=priority, filed_at=-filed)
        for i, (priority, length, filed) in enumerate(many)
    ]
    snapshot = world(*asked, pools=[TWO])
    ranked: list[Request] = in_rank_order(snapshot.requests.values())
    found = starts(snapshot, [going(1, one.duration) for one in ranked])
    placed = plan(snapshot).placements
    assert found == [placed[one.key].start for one in ranked]
