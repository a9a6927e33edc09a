"""What every cluster driver must do to reset or reboot a node (H14); one joins in `tests.reconciler.clusters.rig`."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.cluster_port import Busy, Refused, RemedyOrder
from tests.contract.test_cluster_contract import MINUTE, SECOND_TERM, VISION, A, finish
from tests.reconciler.clusters.rig import FIRST, NOW

REBOOT = RemedyOrder("remedy-0000000000000001", "reboot", released=True)


def test_a_free_node_is_rebooted_once(rig):
    """A repeat returns the result, also after a restart of the controller."""
    results, at = finish(lambda t: rig.driver.remediate(A, REBOOT, FIRST, t), NOW)
    assert [(r.name, r.passed) for r in results] == [("Reboot", True)]
    rig.restart()
    assert rig.driver.remediate(A, REBOOT, FIRST, at + MINUTE) == results


def test_a_node_that_a_lease_has_is_never_reset_or_rebooted(rig):
    rig.driver.add(A, VISION, FIRST, NOW)
    for order in (REBOOT, replace(REBOOT, action="reset")):
        answer = rig.driver.remediate(A, order, FIRST, NOW)
        assert isinstance(answer, Refused)
        assert answer.reason == "NodeHeld"


def test_an_outdated_controller_resets_nothing(rig):
    rig.driver.isolate(A, "Xid95", SECOND_TERM, NOW)
    answer = rig.driver.remediate(A, REBOOT, FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "StaleStamp"


def test_a_node_that_is_gone_cannot_be_rebooted(rig):
    results = rig.driver.remediate("nowhere", REBOOT, FIRST, NOW)
    assert not isinstance(results, Busy | Refused)
    assert not any(r.passed for r in results)
