"""What searches remember changes how long planning takes, and nothing else (E10)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.calendars.bounds import Bounds, Scale
from scheduler.plan import plan
from scheduler.snapshot import Request, Snapshot
from tests.scheduler.crowds import history
from tests.scheduler.plain import plainly
from tests.scheduler.play import BENIGN, HARMFUL, commit, happen
from tests.scheduler.worlds import EAST, WEST, promised_worlds, request
from tests.support.profile import law

NOW = 100


@law(600)
@given(promised_worlds(windows=True), st.data())
def test_the_plan_is_the_one_made_without_bounds(snapshot: Snapshot, data: st.DataObject) -> None:
    for what in data.draw(st.lists(st.sampled_from((*BENIGN, *HARMFUL)), min_size=1, max_size=3)):
        with plainly():
            plain = plan(snapshot)
        snapshot, planned = commit(snapshot)
        assert planned == plain
        snapshot = happen(data.draw, snapshot, what)


@pytest.mark.parametrize("seed", range(18))
def test_the_plan_of_a_crowd_is_the_one_made_without_bounds(seed: int) -> None:
    for snapshot, planned in history(seed):
        with plainly():
            assert plan(snapshot) == planned


def bounds(*others: Request) -> Bounds:
    known = [
        request("a", 2, 10),
        request("b", 4, 10),
        request("c", 4, 30),
        request("d", 2, 10, not_before=150),
    ]
    return Bounds(NOW, (*known, *others))


def shown(found: Bounds, begin: int) -> Bounds:
    found.show(EAST, found.sizes.above(request("a", 2, 10)), begin)
    return found


@pytest.mark.parametrize(
    ("asked", "want"),
    [
        pytest.param(request("a", 2, 10), 500, id="the same again"),
        pytest.param(request("a", 4, 10), 500, id="more nodes"),
        pytest.param(request("a", 2, 99), 500, id="longer than any known"),
        pytest.param(request("a", 2, 10, not_before=150), 500, id="wanted later"),
        pytest.param(request("a", 1, 10), NOW, id="fewer nodes may find room sooner"),
        pytest.param(request("a", 4, 9), NOW, id="a shorter one may find room sooner"),
    ],
)
def test_what_is_shown_for_one_holds_for_all_that_ask_for_more(asked: Request, want: int) -> None:
    found = shown(bounds(), 500)
    assert found.of(EAST, found.sizes.below(asked)) == want
    assert found.of(WEST, found.sizes.below(asked)) == NOW


def test_what_is_shown_for_one_wanted_later_says_nothing_of_one_wanted_now() -> None:
    found = bounds()
    found.show(EAST, found.sizes.above(request("d", 2, 10, not_before=150)), 500)
    assert found.of(EAST, found.sizes.below(request("a", 2, 10))) == NOW


def test_room_that_is_given_back_lowers_bounds_as_far_as_a_hold_may_reach_before_it() -> None:
    found = shown(bounds(), 500)
    found.give(EAST, 400, 5)
    asked = [request("a", 2, 10), request("a", 4, 30), request("a", 2, 31)]
    # Marks at 10 and 30: what asks for 10 to 29 reaches at most 29 and the margin; beyond all marks nothing holds.
    assert [max(NOW, found.of(EAST, found.sizes.below(r))) for r in asked] == [367, 366, NOW]


def test_an_equal_copy_changes_alone() -> None:
    found = shown(bounds(), 500)
    twin = found.copy()
    twin.give(EAST, 400, 0)
    size = found.sizes.below(request("a", 2, 10))
    assert (found.of(EAST, size), twin.of(EAST, size)) == (500, 372)


@given(st.lists(st.integers(1, 60), max_size=50), st.integers(1, 9), st.integers(0, 70))
def test_marks_enclose_every_value(values: list[int], most: int, value: int) -> None:
    scale = Scale(0, values, most)
    marks = [mark for mark in range(100) if scale.at_least(mark) == scale.at_most(mark)]
    assert len(marks) == len(scale)
    assert marks[scale.at_most(value)] == max(mark for mark in marks if mark <= value)
    assert [mark for mark in marks if mark >= value] == marks[scale.at_least(value) :]
    assert scale.reaches()[scale.at_most(value)] >= value
