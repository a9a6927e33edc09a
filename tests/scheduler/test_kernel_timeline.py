"""Lines of the compiled engine agree with a list of seconds, and with the plain engine's steps (E10)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.calendars.calendar import Steps
from scheduler.kernel import timeline
from scheduler.kernel.compilation import entry
from scheduler.kernel.timeline import FOREVER, NEVER, Lines, lines
from tests.support.profile import law

pytestmark = pytest.mark.xdist_group("kernel")  # compiled by one process


def from_python(part: Any) -> Any:
    """Parts are called from compiled code alone."""
    return entry(part.py_func)


add, draw, lowest = map(from_python, (timeline.add, timeline.draw, timeline.lowest))
first_gap, gaps_around = from_python(timeline.first_gap), from_python(timeline.gaps_around)
first_below, last_below = from_python(timeline.first_below), from_python(timeline.last_below)
SPAN = 40
spans = st.tuples(st.integers(0, SPAN), st.integers(1, SPAN)).map(lambda t: (t[0], t[0] + t[1]))


def line(value: int, steps: int = 1_000) -> Lines:
    """One line, number 0, from instant 0 on."""
    drawn = lines(1, steps)
    draw(drawn, 0, np.array([0]), np.array([value]))
    return drawn


@law(300)
@given(st.lists(st.tuples(spans, st.integers(-2, 2)), max_size=12), st.data())
def test_a_line_is_a_list_of_seconds(adds: list[tuple[tuple[int, int], int]], data: st.DataObject) -> None:
    drawn, seconds = line(3), [3] * (4 * SPAN)
    for (begin, end), amount in adds:
        add(drawn, 0, begin, end, amount)
        for second in range(begin, end):
            seconds[second] += amount
    begin, end = data.draw(spans)
    assert lowest(drawn, 0, begin, end) == min(seconds[begin:end])
    need, length = data.draw(st.integers(0, 5)), data.draw(st.integers(1, 12))
    before = data.draw(st.sampled_from([FOREVER, begin + 7]))
    fitting = [b for b in range(begin, min(before, 3 * SPAN)) if min(seconds[b : b + length]) >= need]
    assert first_gap(drawn, 0, need, length, begin, before) == (fitting[0] if fitting else NEVER)
    short = [second for second in range(begin, end) if seconds[second] < need]
    assert first_below(drawn, 0, need, begin, end) == (short[0] if short else NEVER)
    if short:
        assert last_below(drawn, 0, need, end) == short[-1] + 1
    runs = [run for run in runs_of(seconds, need) if run[0] < end and run[1] > begin]
    since, longest = gaps_around(drawn, 0, need, begin, end)
    assert longest == max(
        (NEVER if last == len(seconds) else last - first for first, last in runs), default=0
    )
    assert not runs or since == runs[0][0]


def runs_of(seconds: list[int], need: int) -> list[tuple[int, int]]:
    """The stretches with at least `need`."""
    runs: list[tuple[int, int]] = []
    for second, value in enumerate(seconds):
        if value >= need:
            begin = runs.pop()[0] if runs and runs[-1][1] == second else second
            runs.append((begin, second + 1))
    return runs


def test_lines_of_many_blocks_agree_with_plain_steps() -> None:
    chance = np.random.default_rng(7)
    drawn, steps = line(50, 20_000), Steps(0, 50)
    for begin, length, amount in chance.integers((0, 1, 1), (100_000, 900, 9), (4_000, 3)).tolist():
        add(drawn, 0, begin, begin + length, -amount)
        steps.add(begin, begin + length, -amount)
    for need, length, after in chance.integers((0, 1, 0), (50, 3_000, 100_000), (500, 3)).tolist():
        found = steps.first_gap(need, length, after)
        assert first_gap(drawn, 0, need, length, after, FOREVER) == (NEVER if found is None else found)
        assert lowest(drawn, 0, after, after + length) == steps.lowest(after, after + length)
