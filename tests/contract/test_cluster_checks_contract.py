"""What every cluster driver must do when nodes are checked; a driver joins in `tests.reconciler.clusters.rig`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.cluster_port import Busy
from tests.contract.test_cluster_contract import MINUTE, SPEECH, VISION, A, check
from tests.reconciler.clusters.rig import FIRST, NOW


@pytest.mark.parametrize(
    ("node", "also"),
    [
        pytest.param(A, ["RdmaSubnet", "NcclLatency"], id="several GPUs and RDMA"),
        pytest.param("small", [], id="one GPU and no RDMA"),
    ],
)
def test_the_checks_before_a_start_have_values_and_logs(rig, node, also):
    """F4, F5."""
    results, _ = check(rig, node, "pre", VISION, NOW)
    assert [r.name for r in results] == ["NodeHealth", "PersistentVolume", "Connectivity", *also]
    assert all(r.passed and r.value and r.log for r in results)


def test_finished_checks_are_not_run_again_for_the_same_lease(rig):
    """Also when its end moved meanwhile: a start that waits for its checks would never come."""
    results, at = check(rig, A, "pre", VISION, NOW)
    rig.kill(A, at + MINUTE)
    later = replace(VISION, end=VISION.end + MINUTE)
    assert rig.driver.check(A, "pre", later, FIRST, at + 10 * MINUTE) == results


def test_another_lease_is_checked_anew(rig):
    _, at = check(rig, A, "pre", VISION, NOW)
    assert isinstance(rig.driver.check(A, "pre", SPEECH, FIRST, at), Busy)


def test_a_silent_node_fails_its_checks(rig):
    rig.kill(A, NOW)
    results, _ = check(rig, A, "pre", VISION, NOW)
    assert not any(r.passed for r in results)
    assert results[0].log == "node h100-1 is not Ready"


def test_a_node_that_is_gone_fails_at_once(rig):
    results = rig.driver.check("nowhere", "pre", VISION, FIRST, NOW)
    assert not isinstance(results, Busy)
    assert not any(r.passed for r in results)


def test_a_node_given_back_is_clean(rig):
    """F10."""
    rig.driver.add(A, VISION, FIRST, NOW)
    rig.driver.remove(A, VISION.uid, FIRST, NOW)
    results, _ = check(rig, A, "post", VISION, NOW)
    assert [r.name for r in results] == ["Drained", "Network", "NcclLatency", "PersistentVolume", "Labels"]
    assert all(r.passed for r in results)


def test_a_node_still_in_use_is_not_clean(rig):
    """F10: only a clean node returns to its pool."""
    rig.submit("vision-train", "train", 8, NOW)
    rig.driver.add(A, VISION, FIRST, NOW)
    results, _ = check(rig, A, "post", VISION, NOW)
    assert [r.name for r in results if not r.passed] == ["Drained", "Labels"]
