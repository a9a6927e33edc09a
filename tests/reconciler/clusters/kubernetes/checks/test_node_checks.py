"""Checks of real nodes by what the cluster knows of them, and what is kept (F4, F10)."""

from __future__ import annotations

import pytest

from reconciler.clusters.kubernetes.names import SLICE
from reconciler.model.cluster_port import Busy, Refused
from tests.reconciler.clusters.kubernetes.checking import (
    FIRST,
    HOUR,
    LATER,
    MINUTE,
    NOW,
    SECOND,
    SPEECH,
    VISION,
    Bench,
)
from tests.support.kube import gpu_node

PRE = ["NodeHealth", "PersistentVolume", "Connectivity", "RdmaSubnet", "NcclLatency"]
POST = ["Drained", "Network", "NcclLatency", "PersistentVolume", "Labels"]


# --- without an image ---


def test_without_an_image_the_objects_are_judged_and_the_rest_is_said_not_to_be_measured(bench):
    """F4: an honest answer, with a value and a log for each."""
    results, _ = bench.answer()
    assert [r.name for r in results] == PRE
    assert all(r.passed and r.value and r.log for r in results)
    assert [r.value for r in results if "image" in r.log] == ["not measured"] * 4
    assert bench.names(bench.jobs) == []


@pytest.mark.parametrize(
    ("status", "log"),
    [
        pytest.param(
            {"conditions": [{"type": "GpuMemWatch", "status": "True"}]},
            "conditions report GpuMemWatch",
            id="a condition that reports a fault when True",
        ),
        pytest.param(
            {"conditions": [{"type": "AcceleratedHardwareReady", "status": "False"}]},
            "conditions report AcceleratedHardwareReady",
            id="a condition that reports a fault when False",
        ),
        pytest.param(
            {"allocatable": {"nvidia.com/gpu": "7"}},
            "7 of 8 GPUs are allocatable",
            id="a GPU that the device plugin took out",
        ),
    ],
)
def test_a_node_with_a_fault_is_not_healthy(bench, status, log):
    """F4: and for nothing else, since that is what people have to look at."""
    bench.status("h100-1", status)
    results, _ = bench.answer()
    assert [r.name for r in results if not r.passed] == ["NodeHealth"]
    assert log in results[0].log


def test_a_network_that_the_node_reports_broken_fails(bench):
    bench.status("h100-1", {"conditions": [{"type": "NetworkUnavailable", "status": "True"}]})
    results, _ = bench.answer()
    assert [r.name for r in results if not r.passed] == ["Connectivity"]


@pytest.mark.parametrize("bench", [{"storageClass": "fast"}], indirect=True)
def test_a_storage_class_that_is_not_there_fails(bench):
    results, _ = bench.answer()
    assert [(r.name, r.log) for r in results if not r.passed] == [
        ("PersistentVolume", "the cluster has no storage class fast")
    ]


def test_one_gpu_without_rdma_needs_neither_nccl_nor_rdma(bench):
    bench.add(gpu_node("small", 1, "NVIDIA-L4"))
    results, _ = bench.answer(node="small")
    assert [r.name for r in results] == ["NodeHealth", "PersistentVolume", "Connectivity"]
    assert all(r.passed for r in results)


def test_a_silent_node_fails_them_all(bench):
    bench.status("h100-1", {"conditions": [{"type": "Ready", "status": "Unknown"}]})
    results, _ = bench.answer()
    assert {(r.passed, r.log) for r in results} == {(False, "node h100-1 is not Ready")}


def test_an_unknown_node_fails_at_once(bench):
    results = bench.checks.run(None, "pre", FIRST, NOW)
    assert [(r.name, r.passed) for r in results] == [("NodeHealth", False)]


def test_a_node_given_back_is_clean(bench):
    """F10."""
    results, _ = bench.answer(stage="post")
    assert [r.name for r in results] == POST
    assert all(r.passed for r in results)


def test_a_node_that_still_bears_a_slice_is_not_clean(bench):
    """F10."""
    bench.label("h100-1", **{SLICE: "vision"})
    results, _ = bench.answer(stage="post")
    assert [r.name for r in results if not r.passed] == ["Labels"]


# --- what is kept ---


def test_results_come_again_after_a_restart_and_are_found_anew_when_they_are_old(bench):
    results, at = bench.answer()
    bench.status("h100-1", {"conditions": [{"type": "Ready", "status": "Unknown"}]})
    bench.restart()
    assert bench.ask(at + 10 * MINUTE) == results
    assert isinstance(bench.ask(at + 30 * MINUTE), Busy)


def test_another_lease_is_checked_anew(bench):
    bench.answer()
    assert isinstance(bench.ask(NOW + SECOND, lease=SPEECH), Busy)


def test_an_older_controller_checks_nothing(bench):
    """The record is a fence of its own: whoever checks for a newer controller is not disturbed."""
    bench.answer(stamp=LATER)
    for lease in (VISION, SPEECH):
        refused = bench.ask(NOW + MINUTE, stamp=FIRST, lease=lease)
        assert isinstance(refused, Refused)
        assert refused.reason == "StaleStamp"


def test_a_record_that_somebody_broke_is_written_anew(bench):
    bench.answer()
    bench.plane.api.merge(f"{bench.records}/checks-h100-1", {"data": {"pre": "{"}})
    bench.restart()
    assert isinstance(bench.ask(), Busy)
    assert all(r.passed for r in bench.answer()[0])


def test_a_record_that_another_controller_changed_is_read_again(bench):
    """A conflict is settled by looking, within the same call: its own watch has not told it yet."""
    bench.answer()
    bench.checks.stop()
    other = Bench(bench.plane, bench.spec, namespace=bench.namespace)
    other.answer(stage="post")
    other.stop()
    assert all(r.passed for r in bench.answer(NOW + HOUR)[0])
    data = bench.plane.api.get(f"{bench.records}/checks-h100-1")["data"]
    assert sorted(data) == ["post", "pre"]
