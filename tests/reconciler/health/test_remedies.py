"""Resets and reboots between leases: when they are due, each step, and their limits (H14)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.health.remedies import RELEASED_WITHIN, advanced, begun, held_out, quarantined, with_results
from reconciler.model.cluster_port import CheckResult, ClusterView, LeaseRef, NodeView
from reconciler.model.facts import Facts, Outcomes, Seen
from schemas.documents.cluster import Cleared, Cluster
from schemas.documents.maintenance import Maintenance
from schemas.documents.remediation import Remediation
from schemas.status.cards import Card, CardFault
from schemas.status.gpu_faults import GpuAction
from schemas.status.node_status import AgentReport, GpuReport, NodeMetadata, NodeRecord, NodeState
from schemas.status.remedies import Remedy
from tests.support.world import cluster, parsed

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NODE = "h100-1"
KEY = ("east", NODE)
EAST = parsed("clusters/east.yaml", cluster("east"))
assert isinstance(EAST, Cluster)
BOTH = Remediation(reset=True, reboot=True)
FREE = NodeView(NODE, "h100", ready=True, isolated=True)
LEASE = LeaseRef("u", "a/x", "a", NOW + HOUR)
WINDOW = Maintenance(begin=NOW - HOUR, end=NOW + HOUR, nodes=(NODE,))
PASSED, BROKEN = CheckResult("Reset", True), CheckResult("Reset", False, "", "in use by another client")


def spec(policy: Remediation = BOTH, **more: object):
    return EAST.spec.edited(remediation=policy, **more)


def report(action: GpuAction | None = GpuAction.RESET, released_at: datetime | None = None) -> AgentReport:
    """What the agent says; without an action, that all is well."""
    gpu = GpuReport(
        uuid="GPU-a", index=0, product="H100", memory_mib=1, healthy=action is None, serial="1652",
        reasons=() if action is None else ("Xid95",), action=action,
    )  # fmt: skip
    return AgentReport(
        metadata=NodeMetadata(name=NODE), cluster="east", node=NODE, at=NOW, healthy=action is None,
        reason=None if action is None else "Xid95", action=action, gpus=(gpu,), released_at=released_at,
    )  # fmt: skip


def record(state: NodeState = NodeState.UNHEALTHY, reason: str = "Xid95") -> NodeRecord:
    return NodeRecord(
        metadata=NodeMetadata(name=NODE), cluster="east", pool="h100", state=state, reason=reason, since=NOW
    )


def seen(
    view: NodeView | None = FREE, said: AgentReport | None = None, **checks: tuple[CheckResult, ...]
) -> Seen:
    """One node, its report, and results by stage."""
    nodes = {} if view is None else {NODE: view}
    found = {("remedy-1", NODE, stage): results for stage, results in checks.items()}
    reports = {} if said is None else {KEY: said}
    return Seen({"east": ClusterView(NOW, nodes, {})}, reports, Outcomes(found))  # type: ignore[arg-type]


def remedy(**more: object) -> Remedy:
    base = Remedy(
        uid="remedy-1", cluster="east", node=NODE, action=GpuAction.RESET, reason="Xid95", began=NOW
    )
    return base.edited(**more)


def past(count: int = 1, action: GpuAction = GpuAction.RESET, helped: bool = False, ago: timedelta = HOUR):
    return tuple(
        remedy(uid=f"remedy-0{i}", action=action, began=NOW - ago, ended=NOW - ago + MINUTE, helped=helped)
        for i in range(count)
    )


@pytest.mark.parametrize(
    ("said", "view", "terms", "known", "want"),
    [
        pytest.param(report(), FREE, spec(), (), "reset", id="a free node whose agent asks for a reset"),
        pytest.param(report(GpuAction.REBOOT), FREE, spec(), (), "reboot", id="or for a reboot"),
        pytest.param(report(GpuAction.REPLACE), FREE, spec(), (), None, id="a card to be replaced is people's"),
        pytest.param(report(), FREE, spec(Remediation()), (), None, id="off by default"),
        pytest.param(report(), FREE, spec(Remediation(reboot=True)), (), None, id="a reboot is no reset"),
        pytest.param(report(GpuAction.REBOOT), FREE, spec(Remediation(reset=True)), (), None, id="nor the reverse"),
        pytest.param(report(), FREE, spec(mode="observe"), (), None, id="an observed cluster is left alone"),
        pytest.param(report(), replace(FREE, lease=LEASE), spec(), (), None, id="a lease has it"),
        pytest.param(report(), replace(FREE, draining=True), spec(), (), None, id="it is being emptied"),
        pytest.param(report(), replace(FREE, isolated=False), spec(), (), None, id="it is not closed yet"),
        pytest.param(report(), replace(FREE, ready=False), spec(), (), None, id="it is silent"),
        pytest.param(report(), replace(FREE, cordoned=True), spec(), (), None, id="others cordoned it"),
        pytest.param(report(), replace(FREE, foreign=("x/y",)), spec(), (), None, id="foreign pods use it"),
        pytest.param(report(), None, spec(), (), None, id="the cluster does not know it"),
        pytest.param(report(), FREE, spec(maintenance=(WINDOW,)), (), None, id="it is in announced maintenance"),
        pytest.param(report(released_at=NOW), FREE, spec(), (), None, id="somebody has the agent let go already"),
        pytest.param(report(), FREE, spec(), past(), None, id="one that failed is the last by default"),
        pytest.param(
            report(), FREE, spec(BOTH.edited(attempts=2)), past(), "reboot", id="a reboot follows a reset"
        ),
        pytest.param(
            report(), FREE, spec(Remediation(reset=True, attempts=2)), past(), "reset", id="or another reset"
        ),
        pytest.param(report(), FREE, spec(), past(1, helped=True), "reset", id="again after one that helped"),
        pytest.param(report(), FREE, spec(), past(2, helped=True), None, id="at most two a day"),
        pytest.param(
            report(), FREE, spec(), past(2, helped=True, ago=25 * HOUR), "reset", id="and two more the next day"
        ),
        pytest.param(
            report(), FREE, spec(cleared=(Cleared(node=NODE, at=NOW - MINUTE),)), past(2), "reset",
            id="what was before a clear counts no more",
        ),
        pytest.param(report(), FREE, spec(), (remedy(),), None, id="one goes on"),
    ],
)  # fmt: skip
def test_what_is_due(said, view, terms, known, want):
    """H14: only what the document allows, and only while nobody uses the node."""
    facts = Facts(NOW, nodes={KEY: record()})
    found = begun({KEY: known} if known else {}, facts, {"east": terms}, seen(view, said), NOW)
    new = [r for r in found.remedies.get(KEY, ()) if r not in known]
    assert [str(r.action) for r in new] == ([] if want is None else [want])
    assert len(found.events) == len(new)


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(record(NodeState.SUSPECT), id="it stays in service, for too many are out"),
        pytest.param(record(NodeState.QUARANTINED, "LemonCard"), id="an admin must clear it"),
        pytest.param(record(reason="PreCheckFailed"), id="it is out for another reason"),
    ],
)
def test_a_node_that_is_not_out_by_its_report_is_left_alone(node):
    facts = Facts(NOW, nodes={KEY: node})
    assert begun({}, facts, {"east": spec()}, seen(FREE, report()), NOW).remedies == {}


WELL = report(None)
GONE_ON = {"released_at": NOW, "done_at": NOW, "well_at": NOW}


@pytest.mark.parametrize(
    ("before", "world", "after", "want"),
    [
        pytest.param({}, seen(said=report()), MINUTE, {}, id="it waits for the agent"),
        pytest.param(
            {}, seen(said=report(released_at=NOW)), MINUTE, {"released_at": NOW + MINUTE}, id="the agent let go"
        ),
        pytest.param(
            {}, seen(said=report(released_at=NOW - MINUTE)), MINUTE, {}, id="an earlier release is another's"
        ),
        pytest.param(
            {}, seen(), RELEASED_WITHIN, {"released_at": NOW + RELEASED_WITHIN}, id="an agent that says nothing"
        ),
        pytest.param(
            {"released_at": NOW}, seen(remedy=(PASSED,)), MINUTE, {"done_at": NOW + MINUTE}, id="it was carried out"
        ),
        pytest.param(
            {"released_at": NOW}, seen(remedy=(BROKEN,)), MINUTE,
            {"ended": NOW + MINUTE, "message": "Reset failed: in use by another client"}, id="it failed",
        ),
        pytest.param(
            {"released_at": NOW, "done_at": NOW}, seen(said=report(None, released_at=NOW)), MINUTE, {},
            id="an agent that reads nothing says nothing",
        ),
        pytest.param(
            {"released_at": NOW, "done_at": NOW}, seen(said=WELL), MINUTE, {"well_at": NOW + MINUTE},
            id="the agent finds it well",
        ),
        pytest.param(GONE_ON, seen(said=WELL), MINUTE, {}, id="its checks run"),
        pytest.param(
            GONE_ON, seen(said=WELL, pre=(PASSED,)), MINUTE, {"ended": NOW + MINUTE, "helped": True},
            id="its checks passed",
        ),
        pytest.param(
            GONE_ON, seen(said=WELL, pre=(PASSED, BROKEN)), MINUTE,
            {"ended": NOW + MINUTE, "message": "Reset failed: in use by another client"}, id="one failed",
        ),
        pytest.param(
            {"released_at": NOW}, seen(), 20 * MINUTE,
            {"ended": NOW + 20 * MINUTE, "message": "the reset was not carried out in time"}, id="it takes too long",
        ),
        pytest.param(
            {"released_at": NOW, "done_at": NOW}, seen(said=report()), 20 * MINUTE,
            {"ended": NOW + 20 * MINUTE, "message": "its agent still reports Xid95"}, id="the fault stays",
        ),
        pytest.param(
            {"released_at": NOW, "done_at": NOW}, seen(), 20 * MINUTE,
            {"ended": NOW + 20 * MINUTE, "message": "its agent did not report in time"}, id="the agent is gone",
        ),
        pytest.param(
            GONE_ON, seen(said=WELL), 20 * MINUTE,
            {"ended": NOW + 20 * MINUTE, "message": "its checks did not end in time"}, id="its checks hang",
        ),
        pytest.param({}, Seen({}), HOUR, {}, id="a cluster that does not answer says nothing"),
    ],
)  # fmt: skip
def test_each_step(before, world, after, want):
    """H14: every remedy that goes on gets a result."""
    found = advanced({KEY: (remedy(**before),)}, {"east": spec()}, world, NOW + after)
    assert found.remedies[KEY] == (remedy(**(before | want)),)
    assert bool(found.ended) is bool(found.events) is ("ended" in want)


@pytest.mark.parametrize(
    ("terms", "view"),
    [
        pytest.param({}, FREE, id="the cluster is no longer ours"),
        pytest.param({"east": spec(Remediation())}, FREE, id="it is switched off before it was carried out"),
        pytest.param({"east": spec()}, None, id="the node is gone"),
    ],
)
def test_what_is_called_off_leaves_nothing(terms, view):
    found = advanced({KEY: (remedy(),)}, terms, seen(view), NOW + MINUTE)
    assert (found.remedies, found.events) == ({}, ())


def test_a_node_stays_out_until_its_checks_passed():
    """Its agent finds nothing any more; what others did to it counts more."""
    going = {KEY: (remedy(),)}
    facts = Facts(NOW, nodes={KEY: record()})
    held = held_out({}, going, facts, {"east": spec()})
    assert (held[KEY].state, held[KEY].reason, held[KEY].since) == (NodeState.UNHEALTHY, "Xid95", NOW)
    lost = {KEY: record(NodeState.LOST, "NodeNotReady")}
    assert held_out(lost, going, facts, {"east": spec()}) == lost
    over = {KEY: (remedy(ended=NOW, helped=True),)}
    assert held_out({}, over, facts, {"east": spec()}) == {}


@pytest.mark.parametrize(("attempts", "out"), [(1, True), (2, False)])
def test_the_last_failure_is_left_to_people(attempts, out):
    """A second attempt comes first where the document allows it."""
    terms = {"east": spec(BOTH.edited(attempts=attempts))}
    found = advanced({KEY: (remedy(released_at=NOW),)}, terms, seen(remedy=(BROKEN,)), NOW + MINUTE)
    records = quarantined(found, terms, NOW)
    assert [(r.state, r.reason) for r in records.values()] == (
        [(NodeState.QUARANTINED, "RemediationFailed")] if out else []
    )


def test_the_result_is_part_of_the_cards_history():
    fault = CardFault(reason="Xid95", at=NOW, cluster="east", node=NODE)
    cards = {"1652": Card(serial="1652", product="H100", cluster="east", node=NODE, faults=(fault, fault))}
    going = {KEY: (remedy(**GONE_ON, cards=("1652", "unknown")),)}
    found = advanced(going, {"east": spec()}, seen(said=WELL, pre=(PASSED,)), NOW + MINUTE)
    earlier, last = with_results(cards, found)["1652"].faults
    assert (earlier, last.remedy, last.helped) == (fault, GpuAction.RESET, True)


def test_old_ones_are_forgotten():
    """A day is as long as they count."""
    old = past(1, ago=25 * HOUR)
    assert advanced({KEY: old}, {"east": spec()}, seen(), NOW).remedies == {}
