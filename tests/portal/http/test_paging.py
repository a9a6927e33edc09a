"""Lists in portions: nothing twice, nothing missed, whatever comes and goes meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.http.errors import ApiError
from portal.http.paging import Portion, cursor_of, portion, read_cursor
from tests.support.profile import law

NAMES = st.lists(st.text(min_size=1, max_size=5), unique=True, max_size=30)


@law(100)
@given(NAMES, st.integers(1, 10))
def test_portions_are_the_list(items: list[str], limit: int) -> None:
    found, cursor = list[str](), ""
    while True:
        part, more = portion(items, Portion(limit, cursor), str)
        assert len(part) <= limit
        found += part
        if more is None:
            break
        cursor = more
    assert found == items


@law(100)
@given(NAMES, st.integers(1, 10), NAMES)
def test_what_comes_meanwhile_makes_nothing_come_twice(items: list[str], limit: int, new: list[str]) -> None:
    """What stays in order is given out once, wherever others come in."""
    part, more = portion(sorted(items), Portion(limit), str)
    later = sorted({*items, *new})
    rest, _ = portion(later, Portion(1000, more), str) if more else ([], None)
    assert not set(part) & set(rest)
    assert {*part, *rest} >= set(items)


def test_an_item_that_is_gone() -> None:
    """The list goes on at its place."""
    assert portion(["a", "c", "d"], Portion(10, cursor_of(1, "b")), str) == (["c", "d"], None)
    assert portion(["a"], Portion(10, cursor_of(7, "z")), str) == ([], None)


@law(200)
@given(st.text(max_size=40))
def test_no_cursor_breaks_it(text: str) -> None:
    try:
        at, _ = read_cursor(text)
    except ApiError:
        return
    assert at >= 0


@pytest.mark.parametrize(
    "cursor", ["x", "W10", "WzEsMl0", "WyJhIiwiYiJd", "WzEsImEiLDNd", "Wy0xLCJhIl0", "\ud800"]
)
def test_what_is_no_cursor(cursor: str) -> None:
    with pytest.raises(ApiError):
        read_cursor(cursor)
