"""GPUs in the order of their own thresholds, hot ones marked, found by text (G1, H4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.telemetry.telemetry_port import Metric, PodRef
from reconciler.workloads.gpu_rows import gpus_of, matches, row
from reconciler.workloads.thresholds import Limits, closeness, limits_of, slowdowns
from reconciler.workloads.workload import Workload, workloads_in
from tests.reconciler.workloads.gpus import CLUSTER, NOW, device, fleet, sample
from tests.reconciler.workloads.test_owners import FOLDER, HOMES, seen_in


def workload(name: str = "jobset") -> Workload:
    (found,) = workloads_in(
        {"east": seen_in(yaml.safe_load(Path(FOLDER / f"{name}.yaml").read_text()))}, HOMES
    )
    return found


def test_the_nearest_to_its_own_limit_comes_first() -> None:
    """An A10 at 139 W is nearer to its limit than an H100 at 560 W."""
    found = gpus_of(
        fleet(
            sample("h100-1", 0, temp=60, power=560),
            sample("h100-2", 1, temp=88, power=500),
            sample("a10-1", 2, temp=60, power=139),
            sample("h100-1", 5),
        )
    )
    assert [(gpu.node, gpu.index, gpu.is_hot) for gpu in found] == [
        ("h100-2", 1, True),
        ("a10-1", 2, False),
        ("h100-1", 0, False),
        ("h100-1", 5, False),
    ]
    assert [gpu.closeness for gpu in found] == [1.011, 0.993, 0.92, None]


def test_heat_that_slows_a_gpu_down_marks_it_below_its_limit_too() -> None:
    (found,) = gpus_of(fleet(sample("h100-1", 0, temp=80, throttle=0x20)))
    assert found.is_hot
    assert row(found, NOW)["slowedBy"] == ["DriverHeat"]


def test_what_is_unknown_is_null_and_never_zero() -> None:
    (found,) = gpus_of(fleet(devices={("east", "h100-1"): (device("h100-1", 3),)}))
    shown = row(found, NOW)
    assert (
        shown["utilisationPercent"]
        is shown["tempC"]
        is shown["closeness"]
        is shown["idle"]
        is shown["at"]
        is None
    )
    assert (shown["index"], shown["memoryMib"], shown["healthy"]) == (3, 81559, True)
    assert shown["hot"] is False


def test_a_gpu_of_agent_and_telemetry_is_one_row() -> None:
    both = fleet(sample("h100-1", 0, use=97), devices={("east", "h100-1"): (device("h100-1", 0, "TooHot"),)})
    (found,) = gpus_of(both)
    shown = row(found, NOW)
    assert (shown["utilisationPercent"], shown["healthy"], shown["reasons"]) == (97, False, ["TooHot"])
    assert (shown["request"], shown["slice"]) == ("vision/train", "vision")


def test_only_nodes_that_are_asked_for_are_shown() -> None:
    asked = fleet(sample("h100-1", 0), sample("h100-2", 0), nodes={("east", "h100-2"): "h100"})
    assert [gpu.node for gpu in gpus_of(asked)] == ["h100-2"]


def test_an_old_value_is_stale() -> None:
    (found,) = gpus_of(fleet(sample("h100-1", 0, at=NOW - timedelta(seconds=61), use=50)))
    assert row(found, NOW)["stale"] is True


def test_the_pods_of_a_gpu_are_those_that_the_source_names_else_those_of_its_node() -> None:
    here = (workload("leaderworkerset"), workload("helm_pods"))
    named = PodRef("vision-train", "chat-a", "main")
    certain, free = gpus_of(fleet(sample("h100-1", 0, pods=(named,)), sample("h100-1", 1), workloads=here))
    (guessed,) = gpus_of(fleet(sample("h100-1", 1), workloads=here))
    assert ([pod.name for pod in certain.pods], certain.is_pod_certain) == (["chat-a"], True)
    assert [one.key.name for one in certain.workloads] == ["chat"]
    assert (free.pods, free.is_pod_certain) == ((), True), "the source would have named them"
    assert (len(guessed.pods), guessed.is_pod_certain) == (3, False)
    (whole,) = gpus_of(fleet(sample("h100-1", 0), workloads=(workload(),)))
    assert whole.is_pod_certain, "one pod has all GPUs of the node"


def test_a_row_is_found_by_any_of_its_names() -> None:
    one = fleet(sample("h100-1", 0, throttle=0x40), workloads=(workload(),))
    shown = row(gpus_of(one)[0], NOW)
    assert all(
        matches(shown, text)
        for text in ("H100-1", "network-jobset", "hardwareheat", "vision/train", "gpu-h100")
    )
    assert not matches(shown, "a10")


def test_limits_are_those_of_the_board() -> None:
    none: dict[Metric, float] = {}
    assert [
        limits_of(shape, CLUSTER, none).power_w
        for shape in ("A100-80GB", "H100-80GB", "A10-24GB", "H100-PCIE-80GB")
    ] == [*(348, 609, 140, 304.5)]
    assert limits_of("Unheard-1", CLUSTER, none).power_w is None
    assert limits_of("Unheard-1", CLUSTER, {Metric.POWER_LIMIT: 500.0}).power_w == 435
    assert limits_of("Tesla V100-SXM2-16GB", None, none) == Limits(82, 95, 261)


def test_an_idle_gpus_low_clock_is_no_slowdown() -> None:
    assert slowdowns(0x1) == ()
    assert slowdowns(0x1 | 0x04 | 0x40) == ("HardwareHeat", "PowerCap")
    assert slowdowns(None) == ()


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(20, 100)), max_size=8, unique_by=lambda pair: pair[0])
)
def test_the_order_is_total_and_by_closeness(cards: list[tuple[int, int]]) -> None:
    samples = [sample("h100-1", index, temp=temp) for index, temp in cards]
    found = gpus_of(fleet(*samples))
    assert found == gpus_of(fleet(*reversed(samples)))
    near = [gpu.closeness for gpu in found]
    assert near == sorted(near, key=lambda one: -(one or 0))


def test_closeness_is_the_worst_share() -> None:
    limits = Limits(temp_c=87, power_w=609)
    assert closeness({Metric.TEMPERATURE: 87.0, Metric.POWER: 1.0}, limits) == 1
    assert closeness({}, limits) is None
    assert closeness({Metric.MEMORY_TEMPERATURE: 99.0}, replace(limits, memory_temp_c=None)) is None
