"""What is left of a reserve, and when (D10, H15)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.planning.reserve import Draw, left_over
from scheduler.snapshot import FOREVER, Withheld
from tests.support.profile import law


def kept(begin: int, end: int, nodes: int) -> Withheld:
    return Withheld(begin, end, nodes, reserve=True)


@pytest.mark.parametrize(
    ("nodes", "draws", "want"),
    [
        pytest.param(2, [], [kept(0, FOREVER, 2)], id="nothing draws on it"),
        pytest.param(0, [], [], id="nothing is kept"),
        pytest.param(-1, [], [], id="more is out than is kept"),
        pytest.param(
            2,
            [(10, 20, 1)],
            [kept(0, 10, 2), kept(10, 20, 1), kept(20, FOREVER, 2)],
            id="an extension makes it smaller while it lasts",
        ),
        pytest.param(
            2, [(10, 20, 5)], [kept(0, 10, 2), kept(20, FOREVER, 2)], id="a draw takes what there is at most"
        ),
        pytest.param(
            3,
            [(0, 20, 1), (10, 30, 1)],
            [kept(0, 10, 2), kept(10, 20, 1), kept(20, 30, 2), kept(30, FOREVER, 3)],
            id="two that overlap",
        ),
        pytest.param(
            2,
            [(0, 20, 1), (20, 30, 1)],
            [kept(0, 30, 1), kept(30, FOREVER, 2)],
            id="two that follow each other",
        ),
    ],
)
def test_what_is_left(nodes: int, draws: list[Draw], want: list[Withheld]) -> None:
    assert list(left_over(nodes, draws)) == want


@law(100)
@given(
    st.integers(-1, 5),
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(1, 8), st.integers(1, 3)).map(
            lambda d: (d[0], d[0] + d[1], d[2])
        )
    ),
)
def test_at_every_instant_it_is_what_was_kept_less_what_is_drawn(nodes: int, draws: list[Draw]) -> None:
    found = list(left_over(nodes, draws))
    for instant in range(25):
        drawn = sum(n for begin, end, n in draws if begin <= instant < end)
        held = [w.nodes for w in found if w.begin <= instant < w.end]
        assert sum(held) == max(0, nodes - drawn)
        assert len(held) <= 1
