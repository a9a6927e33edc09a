"""Lines of the compiled engine agree with a list of seconds, and with the plain engine's steps (E10)."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.calendars.calendar import Steps
from scheduler.kernel import library
from scheduler.kernel.native import draw_lines, packed
from scheduler.kernel.world import NEVER, Drawn, Lines, lines
from scheduler.snapshot import FOREVER
from tests.support.profile import law

COMPILER = next(filter(None, map(shutil.which, library.COMPILERS)), None)
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
PARTS = Path(__file__).with_name("timeline_parts.c")
SPAN = 40
spans = st.tuples(st.integers(0, SPAN), st.integers(1, SPAN)).map(lambda t: (t[0], t[0] + t[1]))


def line(value: int, steps: int = 1_000) -> Lines:
    """One line, number 0, from instant 0 on."""
    drawn = lines(1, steps)
    draw_lines(drawn, 0, Drawn(np.array([0, 1]), np.array([0]), np.array([value])))
    return drawn


@cache
def parts() -> ctypes.CDLL:
    """Single functions of timeline.h and searches.h, which the library has only as parts of others."""
    with TemporaryDirectory() as folder:
        target = Path(folder) / "parts.so"
        command = library.command(str(COMPILER), target)
        subprocess.run(
            [*command[:-1], "-fvisibility=default", f"-I{library.SOURCES}", str(PARTS)], check=True
        )
        return ctypes.CDLL(str(target))


def asked(part: str, drawn: Lines, *numbers: int) -> int:
    """The answer of a part about line 0."""
    call = parts()[part]
    call.restype = ctypes.c_int64
    return int(call(packed(drawn), *(ctypes.c_int64(number) for number in (0, *numbers))))


@law(300)
@given(st.lists(st.tuples(spans, st.integers(-2, 2)), max_size=12), st.data())
def test_a_line_is_a_list_of_seconds(adds: list[tuple[tuple[int, int], int]], data: st.DataObject) -> None:
    drawn, seconds = line(3), [3] * (4 * SPAN)
    for (begin, end), amount in adds:
        asked("part_add", drawn, begin, end, amount)
        for second in range(begin, end):
            seconds[second] += amount
    begin, end = data.draw(spans)
    assert asked("part_lowest", drawn, begin, end) == min(seconds[begin:end])
    need, length = data.draw(st.integers(0, 5)), data.draw(st.integers(1, 12))
    before = data.draw(st.sampled_from([FOREVER, begin + 7]))
    fitting = [b for b in range(begin, min(before, 3 * SPAN)) if min(seconds[b : b + length]) >= need]
    assert asked("part_first_gap", drawn, need, length, begin, before) == (fitting[0] if fitting else NEVER)
    short = [second for second in range(begin, end) if seconds[second] < need]
    assert asked("part_first_below", drawn, need, begin, end) == (short[0] if short else NEVER)
    if short:
        assert asked("part_last_below", drawn, need, end) == short[-1] + 1
    runs = [run for run in runs_of(seconds, need) if run[0] < end and run[1] > begin]
    since, longest = (asked(f"part_{name}", drawn, need, begin, end) for name in ("since", "longest"))
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
        asked("part_add", drawn, begin, begin + length, -amount)
        steps.add(begin, begin + length, -amount)
    for need, length, after in chance.integers((0, 1, 0), (50, 3_000, 100_000), (500, 3)).tolist():
        found = steps.first_gap(need, length, after)
        assert asked("part_first_gap", drawn, need, length, after, FOREVER) == (
            NEVER if found is None else found
        )
        assert asked("part_lowest", drawn, after, after + length) == steps.lowest(after, after + length)
