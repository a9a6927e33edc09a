"""Crossings of thresholds: once when they begin, once when they are over, and damped in between (H6)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.crossings import REST_FOR, Crossings, crossed, recalled, with_crossings
from agent.judge import Memory, judge
from agent.port import GpuReading, XidEvent
from agent.report import Identity, report_of
from schemas.documents.cluster import Health
from schemas.documents.thresholds import Alerts, ShapeThresholds, Thresholds

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
TICK, MINUTE = timedelta(seconds=10), timedelta(minutes=1)
DEFAULTS = Thresholds()


def gpu(index: int = 0, product: str = "NVIDIA H100 80GB HBM3", **values: Any) -> GpuReading:
    return GpuReading(f"GPU-{index}", index, product, 81559, **{"utilisation_percent": 90, **values})


def xid(number: int) -> GpuReading:
    return gpu(xids=(XidEvent(number, NOW),))


class Node:
    """Readings every ten seconds; what is noticed of GPU 0, and when it changed."""

    def __init__(self, own: Thresholds = DEFAULTS) -> None:
        self.own, self.now, self.state = own, NOW, Crossings()
        self.changes: list[tuple[float, tuple[str, ...]]] = []

    def read(self, minutes: float, *gpus: GpuReading, calm: bool = False) -> tuple[str, ...]:
        for _ in range(max(1, round(minutes * MINUTE / TICK))):
            before = self.reasons
            self.state = crossed(self.state, gpus, self.own, self.now, calm=calm)
            if self.reasons != before:
                self.changes.append(((self.now - NOW) / MINUTE, self.reasons))
            self.now += TICK
        return self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        known = self.state.gpus.get("GPU-0")
        return () if known is None else known.reasons


A10, A100, V100 = "NVIDIA A10", "NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-16GB"
SHAPED = Alerts(temperature=70, shapes=(ShapeThresholds(gpu_shape="A100-80GB", temperature=75),))


@pytest.mark.parametrize(
    ("reading", "own", "want"),
    [
        pytest.param(gpu(temp_c=87), DEFAULTS, "GpuHot", id="hot by default"),
        pytest.param(gpu(temp_c=86), DEFAULTS, "", id="warm"),
        pytest.param(gpu(temp_c=82, product=V100), DEFAULTS, "GpuHot", id="hot for its product"),
        pytest.param(
            gpu(temp_c=80, slowdown_temp_c=85), DEFAULTS, "GpuHot", id="five degrees before it slows down"
        ),
        pytest.param(gpu(temp_c=80), Thresholds(temperature=80), "GpuHot", id="the cluster's own threshold"),
        pytest.param(
            gpu(temp_c=88, slowdown_temp_c=85), Thresholds(temperature=90), "", id="which goes first"
        ),
        pytest.param(gpu(temp_c=72), SHAPED.of_shape("H100-80GB"), "GpuHot", id="of all shapes"),
        pytest.param(gpu(temp_c=72), SHAPED.of_shape("A100-80GB"), "", id="of its shape"),
        pytest.param(gpu(memory_temp_c=95), DEFAULTS, "MemoryHot", id="hot memory"),
        pytest.param(
            gpu(memory_temp_c=90, max_memory_temp_c=90), DEFAULTS, "MemoryHot", id="by its card's word"
        ),
        pytest.param(gpu(power_w=609.0), DEFAULTS, "PowerHigh", id="an H100's power"),
        pytest.param(gpu(power_w=608.0), DEFAULTS, "", id="an H100 at work"),
        pytest.param(gpu(power_w=348.0, product=A100), DEFAULTS, "PowerHigh", id="an A100's power"),
        pytest.param(gpu(power_w=139.0, product=A10), DEFAULTS, "", id="an A10 at its maximum"),
        pytest.param(
            gpu(power_w=90.0, max_power_w=100.0, product="New"), DEFAULTS, "PowerHigh", id="a new board"
        ),
        pytest.param(gpu(power_w=690.0), Thresholds(power_percent=99), "", id="a share of the cluster's own"),
        pytest.param(gpu(throttle=0x40), DEFAULTS, "Throttled", id="slowed down by heat"),
        pytest.param(gpu(throttle=0x80), DEFAULTS, "Throttled", id="slowed down by the power brake"),
        pytest.param(gpu(throttle=0x04), DEFAULTS, "", id="the power cap is usual"),
        pytest.param(gpu(throttle=0x40), Thresholds(throttled=False), "", id="not asked for"),
        pytest.param(gpu(), DEFAULTS, "", id="what is unknown is not crossed"),
        pytest.param(gpu(temp_c=99, power_w=0.0, throttle=0), DEFAULTS, "GpuHot", id="one of several"),
    ],
)
def test_a_value_beyond_its_threshold_is_noticed(reading: GpuReading, own: Thresholds, want: str) -> None:
    assert Node(own).read(15, reading) == tuple(filter(None, (want,)))


@pytest.mark.parametrize(
    ("number", "own", "want"),
    [
        pytest.param(31, DEFAULTS, ("Xid31",), id="an application's"),
        pytest.param(176, DEFAULTS, ("Xid176",), id="an unknown one"),
        pytest.param(43, DEFAULTS, (), id="an informational one"),
        pytest.param(31, Thresholds(xids=()), (), id="of a class that does not count"),
        pytest.param(79, DEFAULTS, (), id="a fault is the judge's"),
        pytest.param(74, DEFAULTS, (), id="one that the judge watches"),
    ],
)
def test_an_error_is_noticed_at_once_and_for_an_hour(
    number: int, own: Thresholds, want: tuple[str, ...]
) -> None:
    node = Node(own)
    assert node.read(0, xid(number)) == want
    assert node.read(59, gpu()) == want
    assert node.read(2, gpu()) == ()


def test_a_peak_is_nothing_and_an_hour_of_heat_is_one_crossing() -> None:
    node = Node()
    node.read(0.5, gpu(temp_c=95))
    node.read(5, gpu(temp_c=70))
    assert node.changes == []
    node.read(60, gpu(temp_c=90))
    node.read(60, gpu(temp_c=70))
    assert node.changes == [(6.5, ("GpuHot",)), (75.5, ())]


def test_a_value_around_its_threshold_is_one_crossing() -> None:
    """Five degrees of hysteresis: 83 °C is neither hot nor cool."""
    node = Node()
    node.read(2, gpu(temp_c=88))
    node.read(120, gpu(temp_c=83))
    assert [reasons for _, reasons in node.changes] == [("GpuHot",)]


def test_a_silent_gpu_keeps_what_is_known() -> None:
    node = Node()
    node.read(2, gpu(temp_c=88))
    assert node.read(30, gpu(utilisation_percent=None)) == ("GpuHot",)


def test_readings_on_both_sides_of_a_gap_are_no_run() -> None:
    node = Node()
    node.read(0.5, gpu(temp_c=88))
    node.now += 5 * MINUTE
    assert node.read(0.5, gpu(temp_c=88)) == ()


def test_in_maintenance_no_crossing_begins_and_one_may_end() -> None:
    node = Node()
    assert node.read(15, gpu(temp_c=99, xids=(XidEvent(31, NOW),)), calm=True) == ()
    node.read(2, gpu(temp_c=99))
    assert node.read(15, gpu(temp_c=60), calm=True) == ()


def test_a_gpu_is_idle_while_others_of_its_node_work() -> None:
    idle, busy = gpu(utilisation_percent=0), gpu(1)
    node = Node()
    assert node.read(29, idle, busy) == ()
    assert node.read(2, idle, busy) == ("GpuIdle",)
    assert node.read(9, gpu(), busy) == ("GpuIdle",)
    assert node.read(2, gpu(), busy) == ()


def test_pauses_of_the_others_do_not_end_idleness() -> None:
    idle, busy, rests = gpu(utilisation_percent=0), gpu(1), gpu(1, utilisation_percent=0)
    node = Node()
    for _ in range(4):
        node.read(8, idle, busy)
        node.read(2, idle, rests)
    assert node.read(1, idle, busy) == ("GpuIdle",)


def test_a_node_that_is_idle_as_a_whole_has_no_idle_gpu() -> None:
    idle = (gpu(utilisation_percent=0), gpu(1, utilisation_percent=0))
    node = Node()
    assert node.read(90, *idle) == ()
    node.read(40, idle[0], gpu(1))
    assert node.reasons == ("GpuIdle",)
    assert node.read(25, *idle) == ()


def test_how_long_and_how_little_are_the_clusters() -> None:
    own = Thresholds(idle_below=20, idle_for=timedelta(hours=1))
    node = Node(own)
    assert node.read(59, gpu(utilisation_percent=19), gpu(1)) == ()
    assert node.read(2, gpu(utilisation_percent=19), gpu(1)) == ("GpuIdle",)


def test_use_that_a_gpu_does_not_tell_is_not_idle() -> None:
    assert Node().read(60, gpu(utilisation_percent=None), gpu(1)) == ()


@given(st.lists(st.tuples(st.integers(60, 95), st.integers(1, 90)), max_size=40))
def test_whatever_a_value_does_it_changes_the_report_once_in_ten_minutes(
    steps: list[tuple[int, int]],
) -> None:
    node = Node()
    for temp_c, readings in steps:
        node.read(readings / 6, gpu(temp_c=temp_c))
    times = [at for at, _ in node.changes]
    assert all(later - earlier >= REST_FOR / MINUTE for earlier, later in pairwise(times))


def test_a_restart_neither_ends_nor_repeats_a_crossing() -> None:
    """What held is in the report; errors are forgotten, for their time is not."""
    node = Node()
    reading = gpu(temp_c=88)
    node.read(2, reading)
    node.read(0, replace(reading, xids=(XidEvent(31, NOW),)))
    _, verdict = judge(Memory(), (reading,), Health(), node.now)
    report = report_of(with_crossings(verdict, node.state), Identity("east", "n", "n", "w"), node.now)
    assert (report.healthy, report.gpus[0].watched, report.gpus[0].action) == (
        True,
        ("GpuHot", "Xid31"),
        "watch",
    )
    node.state, node.changes = recalled(report), []
    assert node.reasons == ("GpuHot",)
    node.read(5, reading)
    assert node.changes == []
    assert node.read(30, replace(reading, temp_c=60)) == ()
