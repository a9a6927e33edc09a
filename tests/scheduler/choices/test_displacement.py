"""Who gives way is enough, and nobody gives way in vain (design, section 6, step 2; D6)."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from scheduler.calendars.calendar import PoolCalendar, Share
from scheduler.choices.displacement import Overlapping, who_gives_way
from scheduler.snapshot import FOREVER, Window
from tests.support.profile import law

Held = tuple[int, int, tuple[Share, ...]]
spans = st.tuples(st.integers(0, 20), st.integers(1, 10)).map(lambda t: (t[0], t[0] + t[1]))
free_times = st.sampled_from([FOREVER, FOREVER, 12, 18]).map(lambda end: [Window(0, end)])


def held_by(calendar: PoolCalendar, wanted: list[tuple[tuple[int, int], int]]) -> list[Held]:
    """Those of the wanted holds that found room, the lowest rank first."""
    held: list[Held] = []
    for (begin, end), nodes in wanted:
        if calendar.room(begin, end) >= nodes:
            held.append((begin, end, calendar.take(nodes, begin, end)))
    return held[::-1]


@law(500)
@given(
    st.lists(free_times, min_size=1, max_size=4),
    st.lists(st.tuples(spans, st.integers(1, 3)), max_size=8),
    spans,
    st.integers(1, 4),
)
def test_those_who_give_way_are_enough_and_none_too_many(
    stretches: list[list[Window]],
    wanted: list[tuple[tuple[int, int], int]],
    hold: tuple[int, int],
    nodes: int,
) -> None:
    calendar = PoolCalendar(stretches, 0)
    assume(calendar.room(*hold) >= nodes)
    held = held_by(calendar, wanted)
    there = [j for j, (begin, end, _) in enumerate(held) if begin < hold[1] and end > hold[0]]
    begins, ends = (np.array([held[j][row] for j in there], dtype=np.int64) for row in (0, 1))
    others = Overlapping(np.array(there, dtype=np.int64), begins, ends)
    out = who_gives_way(calendar.section(*hold), nodes, others, lambda j: held[j][2])
    for j in out:
        calendar.give(held[j][2], held[j][0], held[j][1])
    assert calendar.room(*hold) >= nodes
    for j in out:
        calendar.take_exactly(held[j][2], held[j][0], held[j][1])
        assert calendar.room(*hold) < nodes
        calendar.give(held[j][2], held[j][0], held[j][1])


def test_of_those_who_may_return_the_highest_rank_does() -> None:
    """Three nodes are wanted of four: the lowest two are too few, and beside the third one of them may stay."""
    calendar = PoolCalendar([[Window(0, FOREVER)]] * 4, 0)
    shares = {j: calendar.take(nodes, 0, 10) for j, nodes in ((1, 2), (2, 1), (3, 1))}
    times = np.zeros(3, dtype=np.int64)
    others = Overlapping(np.array([3, 2, 1], dtype=np.int64), times, times + 10)
    assert sorted(who_gives_way(calendar.section(0, 10), 3, others, lambda j: shares[j])) == [1, 3]
