"""The total order of those who wait, and who lets whom past when an admin moves somebody (E3, E4)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.rank import Rank, in_rank_order, overtaking, rank
from tests.scheduler.worlds import request

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
    return {key: rank(*place, key) for key, place in found.items()}


@given(ranks, ranks)
def test_whoever_was_behind_somebody_and_is_ahead_of_them_has_overtaken(before, after):
    old, new = _ranks(before), _ranks(after)
    common = old.keys() & new.keys()
    slowly = {one for one in common for other in common if old[one] > old[other] and new[one] < new[other]}
    assert overtaking(old, new) == slowly
