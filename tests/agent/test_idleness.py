"""When a node counts as idle (E8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.idleness import HYSTERESIS, IDLE_AFTER, LONGEST_GAP, Lull, lull_after
from agent.port import GpuReading

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
TICK = timedelta(seconds=10)
BELOW = 3
ROW = int(IDLE_AFTER / TICK) + 1
"""Readings that make a node idle."""


def gpu(use: int | None, index: int = 0, **said: object) -> GpuReading:
    return replace(GpuReading(f"GPU-{index}", index, "H100-80GB", 81920, utilisation_percent=use), **said)


def after(*uses: int | tuple[GpuReading, ...] | None, quiet: Lull | None = None) -> Lull | None:
    """One reading after the other, ten seconds apart."""
    for i, use in enumerate(uses):
        readings = use if isinstance(use, tuple) else (gpu(use),)
        quiet = lull_after(quiet, readings, BELOW, NOW + i * TICK)
    return quiet


@pytest.mark.parametrize(
    ("uses", "since"),
    [
        pytest.param([0] * ROW, 0, id="five minutes at rest"),
        pytest.param([0] * (ROW - 1), None, id="less than five minutes"),
        pytest.param([BELOW] * ROW, 0, id="the threshold itself is rest"),
        pytest.param([BELOW + 1] * ROW, None, id="a little more is not"),
        pytest.param([0] * ROW + [50], None, id="one reading of use ends it"),
        pytest.param([0] * ROW + [50] + [0] * (ROW - 1), None, id="and it begins anew"),
        pytest.param([50] + [0] * ROW, 1, id="since the first reading at rest"),
        pytest.param(
            [0] * ROW + [BELOW + HYSTERESIS] * 5, 0, id="a flutter above the threshold does not end it"
        ),
        pytest.param([0] * ROW + [BELOW + HYSTERESIS + 1], None, id="more than a flutter does"),
        pytest.param([0] * ROW + [None], None, id="a GPU that does not tell is not idle"),
        pytest.param([None] * ROW, None, id="nor is one that never tells, as with MIG"),
        pytest.param([()] * ROW, None, id="nor is a node without GPUs"),
        pytest.param([(gpu(0), gpu(90, 1))] * ROW, None, id="all GPUs have to rest"),
        pytest.param([(gpu(0), gpu(0, 1))] * ROW, 0, id="and then they do"),
        pytest.param([(gpu(0, lost=True),)] * ROW, None, id="a GPU that is lost is not idle"),
    ],
)
def test_idle(uses: list[int | tuple[GpuReading, ...] | None], since: int | None) -> None:
    quiet = after(*uses)
    found = quiet.since if quiet is not None and quiet.idle else None
    assert found == (None if since is None else NOW + since * TICK)


def test_who_looked_away_does_not_know() -> None:
    quiet = after(*[0] * ROW)
    assert quiet is not None
    late = quiet.until + LONGEST_GAP
    assert lull_after(quiet, (gpu(0),), BELOW, late) == Lull(NOW, late)
    later = late + TICK
    assert lull_after(quiet, (gpu(0),), BELOW, later) == Lull(later, later)


@given(st.lists(st.sampled_from([0, 2, 3, 4, 5, 6, 100, None]), max_size=120))
def test_a_node_is_never_idle_within_five_minutes_of_a_reading_of_use(uses: list[int | None]) -> None:
    quiet: Lull | None = None
    last = -1
    for i, use in enumerate(uses):
        quiet = lull_after(quiet, (gpu(use),), BELOW, NOW + i * TICK)
        last = i if use is None or use > BELOW + HYSTERESIS else last
        if quiet is not None and quiet.idle:
            assert quiet.since > NOW + last * TICK
            assert (i - last) * TICK >= IDLE_AFTER
