"""The kernel agrees with a list of seconds (E10)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler.calendars.calendar import PoolCalendar, Steps, share_out
from scheduler.snapshot import FOREVER, Window
from tests.support.profile import law

SPAN = 40

stretches = st.tuples(st.integers(0, SPAN), st.integers(1, SPAN)).map(lambda t: (t[0], t[0] + t[1]))


@law(300)
@given(st.lists(st.tuples(stretches, st.integers(-2, 2)), max_size=12), st.data())
def test_steps_are_a_list_of_seconds(adds: list[tuple[tuple[int, int], int]], data: st.DataObject) -> None:
    steps, seconds = Steps(0, 3), [3] * (4 * SPAN)
    for (begin, end), amount in adds:
        steps.add(begin, end, amount)
        for second in range(begin, end):
            seconds[second] += amount
    begin, end = data.draw(stretches)
    assert steps.lowest(begin, end) == min(seconds[begin:end])
    need, length = data.draw(st.integers(0, 5)), data.draw(st.integers(1, 12))
    before = data.draw(st.sampled_from([FOREVER, begin + 7]))
    fitting = [b for b in range(begin, min(before, 3 * SPAN)) if min(seconds[b : b + length]) >= need]
    assert steps.first_gap(need, length, begin, before) == (fitting[0] if fitting else None)


def test_a_search_goes_on_past_its_first_look() -> None:
    steps = Steps(0, 1)
    for second in range(0, 20_000, 2):
        steps.add(second, second + 1, -1)
    assert steps.first_gap(1, 2, 0) == 19_999
    assert steps.first_gap(1, 2, 0, before=19_999) is None


def test_what_begins_before_the_origin_is_cut_off() -> None:
    steps = Steps(10, 2)
    steps.add(0, 12, -1)
    assert (steps.lowest(10, 12), steps.lowest(12, 13)) == (1, 2)


def test_an_equal_copy_changes_alone() -> None:
    calendar = PoolCalendar([(Window(0, 5),), (Window(0, FOREVER),)], 0)
    twin = calendar.copy()
    twin.take(2, 0, 5)
    assert (calendar.room(0, 5), twin.room(0, 5)) == (2, 0)


def test_what_was_taken_can_be_given_back() -> None:
    calendar = PoolCalendar([(Window(0, 5),), (Window(0, FOREVER),)], 0)
    shares = calendar.take(2, 1, 5)
    assert shares == ((5, 1), (FOREVER, 1))
    calendar.give(shares, 1, 5)
    assert calendar.room(0, 5) == 2


def test_time_that_ends_soon_is_used_first() -> None:
    assert share_out(2, {5: 1, 9: 1, FOREVER: 9}) == ((5, 1), (9, 1))


def test_what_is_wanted_comes_first_as_far_as_it_is_free() -> None:
    assert share_out(3, {5: 1, FOREVER: 9}, [(FOREVER, 1), (7, 2)]) == ((5, 1), (FOREVER, 2))


@law(300)
@given(
    st.lists(st.lists(stretches, max_size=2), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(1, 12),
    st.integers(0, 20),
)
def test_the_earliest_start_is_found_over_all_mixes(
    nodes: list[list[tuple[int, int]]], count: int, length: int, after: int
) -> None:
    windows = [[Window(begin, end) for begin, end in node] for node in nodes]
    calendar = PoolCalendar(windows, 0)

    def room(begin: int) -> int:
        return sum(w.begin <= begin and begin + length <= w.end for node in windows for w in node)

    fitting = [begin for begin in range(after, 4 * SPAN) if room(begin) >= count]
    assert calendar.earliest(count, length, after) == (fitting[0] if fitting else None)
