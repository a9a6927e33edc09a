"""The total order of those who wait, and who lets whom past when an admin moves somebody (E3, E4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.fairness.rank import (
    BAND,
    Rank,
    RankInputs,
    band,
    in_rank_order,
    mover,
    overtaking,
    rank_key,
    rank_order,
    room_in_band,
)
from tests.scheduler.worlds import request
from tests.support.profile import law

A = request("a", filed_at=1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(replace(A, priority=102, move=-9, filed_at=9), A, id="a higher priority, whatever else"),
        pytest.param(
            request("b", move=1, filed_at=9), A, id="then whom an admin moved up, though filed later"
        ),
        pytest.param(
            A, request("b", move=-1), id="and whom an admin moved down, though filed earlier, behind"
        ),
        pytest.param(
            request("b", boost=1, filed_at=9), A, id="what waiting adds counts as priority, before moves too"
        ),
        pytest.param(request("b", move=1, share=9), A, id="an admin's move comes before what slices used"),
        pytest.param(
            request("b", service=9, filed_at=9),
            replace(A, share=1),
            id="then whose slice used less of its share",
        ),
        pytest.param(
            request("b", service=8, filed_at=9), replace(A, service=9), id="then the shorter service"
        ),
        pytest.param(A, request("b", filed_at=2), id="then who filed first"),
        pytest.param(A, request("b", filed_at=1), id="then the name, so that the order is total"),
    ],
)
def test_who_comes_first(first, second):
    assert in_rank_order([second, first]) == [first, second]


ranks = st.dictionaries(
    st.sampled_from("abcdefg"),
    st.tuples(st.integers(1, 2), st.integers(-1, 1), st.integers(0, 2)),
    max_size=7,
)


def _ranks(found: dict[str, tuple[int, int, int]]) -> dict[str, Rank]:
    return {
        key: rank_key(RankInputs(key, priority, move=move, filed_at=filed_at))
        for key, (priority, move, filed_at) in found.items()
    }


@given(ranks, ranks)
def test_whoever_was_behind_somebody_and_is_ahead_of_them_has_overtaken(before, after):
    old, new = _ranks(before), _ranks(after)
    common = old.keys() & new.keys()
    slowly = {one for one in common for other in common if old[one] > old[other] and new[one] < new[other]}
    assert overtaking(old, new) == slowly


@pytest.mark.parametrize(
    ("priority", "room"),
    [
        pytest.param(1, 99, id="the lowest of the low band"),
        pytest.param(100, 0, id="the highest of the low band"),
        pytest.param(101, 99, id="the lowest of the medium band"),
        pytest.param(250, 50, id="the middle of the high band"),
        pytest.param(300, 0, id="nothing is above 300"),
    ],
)
def test_a_band_ends_where_the_next_begins(priority, room):
    assert room_in_band(priority) == room


few = st.integers(-1, 1)
ranked = st.builds(
    RankInputs,
    key=st.text("ab/", max_size=3),
    priority=st.integers(100, 102),
    boost=st.integers(0, 2),
    move=few,
    share=few,
    service=few,
    filed_at=few,
)


@law(500)
@given(st.lists(ranked, max_size=12, unique_by=lambda one: one.key))
def test_many_at_once_come_in_the_same_order(waiting: list[RankInputs]) -> None:
    numbers = [(r.priority, r.boost, r.move, r.share, r.service, r.filed_at) for r in waiting]
    table = np.array(numbers, dtype=np.int64).reshape(len(waiting), 6)
    order = rank_order(table, [one.key for one in waiting]).tolist()
    assert [waiting[place] for place in order] == sorted(waiting, key=rank_key)


def test_bands_are_the_hundreds() -> None:
    assert [band(p) for p in (1, BAND, BAND + 1, 2 * BAND, 2 * BAND + 1, 3 * BAND)] == [0, 0, 1, 1, 2, 2]


def test_who_was_let_past_names_the_request_that_was_moved_behind_it() -> None:
    """`b` and `d` are moved back: `c` has overtaken `b`, and `e` has overtaken both."""
    before = {name: (i, 0, 0, 0, 0, name) for i, name in enumerate("bcde")}
    after = {name: (i, 0, 0, 0, 0, name) for i, name in enumerate("cebd")}
    moved = {"d", "b"}
    assert {key: mover(key, moved, before, after) for key in "bcde"} == {
        "b": "b",
        "c": "b",
        "d": "d",
        "e": "b",
    }
    assert mover("e", {"d"}, before, after) == "d"
