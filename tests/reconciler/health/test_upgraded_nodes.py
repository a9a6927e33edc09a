"""Upgrades of the GPU driver: maintenance, not a fault, until they fail (H14)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from reconciler.health.node_faults import with_faults
from reconciler.health.node_health import health_events, judge_nodes
from reconciler.health.upgraded_nodes import SETTLE, spared_nodes
from reconciler.model.cluster_port import ClusterView, LeaseRef, NodeView
from reconciler.model.facts import NodeKey, Seen
from schemas.status.node_status import NodeRecord, NodeState
from tests.reconciler.health.test_node_health import NOW, report, spec

LEASE = LeaseRef("gpr-1", "a/x", "a", NOW + timedelta(hours=1))
MINUTE = timedelta(minutes=1)
KEY = ("east", "h100-1")
RUNS = (
    "cordon-required",
    "wait-for-jobs-required",
    "pod-deletion-required",
    "drain-required",
    "node-maintenance-required",
    "pod-restart-required",
    "validation-required",
    "uncordon-required",
)
Records = Mapping[NodeKey, NodeRecord]


def seen(*nodes: NodeView, bad: tuple[str, ...] = ()) -> Seen:
    reports = {("east", name): report(name) for name in bad}
    return Seen({"east": ClusterView(NOW, {node.name: node for node in nodes}, {})}, reports)


def node(name: str = "h100-1", **more: object) -> NodeView:
    return NodeView(**{"name": name, "pool": "h100", "ready": True, **more})  # type: ignore[arg-type]


def judged(looked: Seen, before: Records | None = None, at=NOW, nodes: int = 1) -> dict[NodeKey, NodeRecord]:
    return judge_nodes({"east": spec(nodes)}, looked, before or {}, frozenset(), at)


def told(records: Records) -> str:
    record = records.get(KEY)
    return "Ready" if record is None else f"{record.state} {record.reason}"


@pytest.mark.parametrize("state", RUNS)
@pytest.mark.parametrize("lease", [None, LEASE], ids=["free", "leased"])
def test_what_an_agent_finds_during_an_upgrade_takes_nobody_out(state: str, lease: LeaseRef | None) -> None:
    """No fault is recorded, the node is not isolated, and its card is not remembered."""
    looked = seen(node(upgrade=state, cordoned=True, lease=lease), bad=("h100-1",))
    records = judged(looked)
    assert told(records) == "Cordoned DriverUpgrade"
    assert "its GPU driver is being upgraded" in (records[KEY].message or "")
    assert with_faults({}, ({}, records), {"east": spec(1)}, NOW) == {}
    assert spared_nodes(looked, {}, NOW) == {KEY}


@pytest.mark.parametrize(
    ("view", "want"),
    [
        pytest.param({"upgrade": "pod-restart-required", "ready": False}, "Cordoned DriverUpgrade",
                     id="a node that is silent meanwhile"),
        pytest.param({"upgrade": "pod-restart-required", "ready": False, "lease": LEASE}, "Lost NodeNotReady",
                     id="unless somebody has it"),
        pytest.param({"upgrade": "upgrade-required"}, "Cordoned DriverUpgradeWaits", id="free: it waits its turn"),
        pytest.param({"upgrade": "upgrade-required", "lease": LEASE, "keeps_driver": True}, "Ready DriverUpgradeWaits",
                     id="leased: only shown"),
        pytest.param({"upgrade": "upgrade-required", "keeps_driver": True}, "Ready DriverUpgradeWaits",
                     id="prepared for a lease: only shown"),
        pytest.param({"upgrade": "upgrade-required", "cordoned": True}, "Cordoned Cordoned",
                     id="a person's cordon is named first"),
        pytest.param({"upgrade": "upgrade-failed", "cordoned": True}, "Quarantined DriverUpgradeFailed", id="failed"),
        pytest.param({}, "Ready", id="done"),
    ],
)  # fmt: skip
def test_what_an_upgrade_is_to_the_planner(view: dict[str, object], want: str) -> None:
    assert told(judged(seen(node(**view)))) == want


def test_upgrades_do_not_count_towards_the_isolation_limit() -> None:
    """The pool may lose one node, and that is the one whose agent finds something."""
    views = [node(f"h100-{i}", upgrade="drain-required") for i in (1, 2, 3)]
    views += [node("h100-4", upgrade="upgrade-failed"), node("h100-5")]
    records = judged(seen(*views, bad=tuple(f"h100-{i}" for i in range(1, 6))), nodes=5)
    states = [str(records["east", f"h100-{i}"].state) for i in range(1, 6)]
    assert states == ["Cordoned", "Cordoned", "Cordoned", "Quarantined", "Unhealthy"]


def test_only_a_part_of_a_pool_waits_for_upgrades_at_once() -> None:
    """The operator takes one node after the other; the others serve until then, and who waits goes on waiting."""
    views = [node(f"h100-{i}", upgrade="upgrade-required") for i in range(1, 21)]
    first = judged(seen(*views[10:]), nodes=20)
    waiting = {name for (_, name), record in first.items() if record.reason == "DriverUpgradeWaits"}
    assert waiting == {"h100-11", "h100-12"}
    later = judged(seen(*views), first, NOW + MINUTE, nodes=20)
    assert {name for (_, name), record in later.items() if record.state is NodeState.CORDONED} == waiting


def test_what_was_found_before_goes_on_until_the_agent_takes_it_back() -> None:
    before = judged(seen(node(), bad=("h100-1",)))
    assert told(before) == "Unhealthy TooHot"
    upgraded = node(upgrade="drain-required", isolated=True)
    during = judged(seen(upgraded, bad=("h100-1",)), before, NOW + MINUTE)
    assert told(during) == "Unhealthy TooHot"
    assert with_faults({}, (before, during), {"east": spec(1)}, NOW + MINUTE) == {}
    assert told(judged(seen(upgraded), during, NOW + 2 * MINUTE)) == "Cordoned DriverUpgrade"


@pytest.mark.parametrize("state", ["drain-required", "upgrade-failed"])
def test_findings_count_again_a_while_after_the_upgrade(state: str) -> None:
    """The agent needs a few readings of the new driver; what is still wrong then is a fault."""
    bad = ("h100-1",)
    during = judged(seen(node(upgrade=state), bad=bad))
    done = judged(seen(node(), bad=bad), during, NOW + MINUTE)
    assert told(done) == "Cordoned DriverUpgrade"
    assert done[KEY].until == NOW + MINUTE + SETTLE
    still = judged(seen(node(), bad=bad), done, NOW + SETTLE)
    assert told(still) == "Cordoned DriverUpgrade"
    assert told(judged(seen(node(), bad=bad), still, NOW + MINUTE + SETTLE)) == "Unhealthy TooHot"
    assert told(judged(seen(node()), done, NOW + 2 * MINUTE)) == "Ready"


def test_a_quarantine_outlasts_an_upgrade() -> None:
    trend = Seen(seen(node()).views, {KEY: report("h100-1", 10, 20, 30)})
    before = judged(trend)
    assert told(before) == "Quarantined FaultTrend"
    assert (
        told(judged(seen(node(upgrade="drain-required")), before, NOW + MINUTE)) == "Quarantined FaultTrend"
    )


def test_people_hear_of_upgrades_and_not_of_those_that_wait_for_a_lease() -> None:
    shown = judged(seen(node(upgrade="upgrade-required", keeps_driver=True)))
    assert health_events({}, shown, NOW) == ()
    during = judged(seen(node(upgrade="drain-required")), shown)
    (event,) = health_events(shown, during, NOW)
    assert (str(event.reason), "being upgraded" in event.message) == ("NodeOut", True)
    (back,) = health_events(during, shown, NOW)
    assert str(back.reason) == "NodeBack"
