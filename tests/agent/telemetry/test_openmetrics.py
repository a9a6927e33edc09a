"""`/metrics` looks like dcgm-exporter's, so that dashboards made for it work (H5, H7)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from agent.port import GpuReading, XidEvent
from agent.telemetry.exporter import Exporter
from agent.telemetry.gpu_values import SAME_NAMES
from reconciler.telemetry.dcgm_names import NAMES
from reconciler.telemetry.telemetry_port import Metric, PodRef

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
NODE = ("east", "h100-1")
GPU = GpuReading(
    "GPU-a",
    0,
    "NVIDIA H100 80GB HBM3",
    81_559,
    temp_c=64,
    memory_temp_c=71,
    power_w=612.5,
    power_limit_w=700.0,
    energy_j=1_234_567.25,
    throttle=4,
    sm_clock_mhz=1755,
    memory_clock_mhz=2619,
    utilisation_percent=97,
    memory_activity_percent=55,
    memory_used_mib=70_000,
    ecc_corrected=0,
    ecc_uncorrectable=0,
    remapped_correctable=0,
    remapped_uncorrectable=0,
    remap_failure=False,
    pcie_replays=3,
)
BARE = GpuReading("GPU-b", 1, "NVIDIA H100 80GB HBM3", 81_559, temp_c=30)


def text(*readings: GpuReading, pods=None, later_s: float = 0) -> str:
    exporter = Exporter(NODE, lambda _: pods or {})
    exporter.observe(readings, NOW)
    return exporter.metrics(NOW + timedelta(seconds=later_s))


def rows(page: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """By name, as a strict parser of OpenMetrics reads it."""
    return {
        family.name: [(sample.labels, sample.value) for sample in family.samples]
        for family in text_string_to_metric_families(page)
    }


def test_names_labels_and_units_are_those_of_dcgm_exporter() -> None:
    found = rows(text(GPU))
    labels = {
        "gpu": "0",
        "UUID": "GPU-a",
        "device": "nvidia0",
        "modelName": "NVIDIA H100 80GB HBM3",
        "Hostname": "h100-1",
        "container": "",
        "namespace": "",
        "pod": "",
    }
    assert {name: value for name, ((_, value),) in found.items()} == {
        "DCGM_FI_DEV_SM_CLOCK": 1755,
        "DCGM_FI_DEV_MEM_CLOCK": 2619,
        "DCGM_FI_DEV_MEMORY_TEMP": 71,
        "DCGM_FI_DEV_GPU_TEMP": 64,
        "DCGM_FI_DEV_POWER_USAGE": 612.5,
        "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": 700,
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 1_234_567_250,  # mJ
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 3,
        "DCGM_FI_DEV_GPU_UTIL": 97,
        "DCGM_FI_DEV_MEM_COPY_UTIL": 55,
        "DCGM_FI_DEV_XID_ERRORS": 0,
        "DCGM_FI_DEV_FB_FREE": 11_559,
        "DCGM_FI_DEV_FB_USED": 70_000,
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": 0,
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": 0,
        "DCGM_FI_DEV_ROW_REMAP_FAILURE": 0,
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": 0,
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 0,
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 4,
    }
    assert all(given == labels for ((given, _),) in found.values())


def test_every_metric_has_a_name() -> None:
    assert set(NAMES) == set(Metric)
    assert {*SAME_NAMES, Metric.XID, Metric.MEMORY_FREE} == set(Metric)


def test_what_a_gpu_does_not_have_has_no_line() -> None:
    assert set(rows(text(BARE))) == {"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_XID_ERRORS"}


@pytest.mark.parametrize("silent", [{"lost": True}, {"wedged": True}, {"lost": None, "wedged": None}])
def test_a_gpu_that_does_not_answer_has_no_line(silent) -> None:
    assert rows(text(replace(GPU, **silent))) == {}


@pytest.mark.parametrize(("later_s", "shown"), [(60, True), (61, False)])
def test_an_old_reading_is_not_shown_as_new(later_s, shown) -> None:
    assert bool(rows(text(GPU, later_s=later_s))) is shown


def test_the_last_xid_stays_until_another_comes() -> None:
    exporter = Exporter(NODE)
    for second, xids in ((0, (31, 94)), (10, ()), (20, ())):
        at = NOW + timedelta(seconds=second)
        exporter.observe((replace(GPU, xids=tuple(XidEvent(xid, at) for xid in xids)),), at)
    ((_, value),) = rows(exporter.metrics(at))["DCGM_FI_DEV_XID_ERRORS"]
    assert value == 94


def test_a_shared_gpu_has_a_line_for_each_container() -> None:
    pods = {"GPU-a": (PodRef("nlp", "chat-0", "server"), PodRef("nlp", "chat-1", "server"))}
    found = rows(text(GPU, BARE, pods=pods))["DCGM_FI_DEV_GPU_TEMP"]
    assert [(row["UUID"], row["namespace"], row["pod"], row["container"]) for row, _ in found] == [
        ("GPU-a", "nlp", "chat-0", "server"),
        ("GPU-a", "nlp", "chat-1", "server"),
        ("GPU-b", "", "", ""),
    ]


def test_strange_names_stay_one_label() -> None:
    found = rows(text(replace(GPU, product='a "b" \\ c\nd')))
    ((labels, _),) = found["DCGM_FI_DEV_GPU_TEMP"]
    assert labels["modelName"] == 'a "b" \\ c\nd'


def test_before_the_first_reading_there_is_a_valid_empty_page() -> None:
    assert text() == "# EOF\n"
