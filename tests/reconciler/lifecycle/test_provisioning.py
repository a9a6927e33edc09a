"""What is kept of the checks of a large request, and when a late start may move."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.lifecycle.free_nodes import FreeNodes
from reconciler.lifecycle.provisioning import handover_outcome, with_check_results
from reconciler.model.cluster_port import CheckResult, ClusterView, LeaseRef, NodeView
from reconciler.model.facts import Context, Outcomes, Seen
from reconciler.settings import Settings
from reconciler.status.yaml_rows import document as rendered
from scheduler.snapshot import Lease
from schemas.documents.base import Metadata
from schemas.documents.gpr import RequestSpec
from schemas.reading.units import seconds
from schemas.status.gpr_status import Assignment, GPRRecord, GPRStatus, Phase
from tests.reconciler.acting.test_actions import wanted
from tests.support.world import at

MEGABYTE = 1_000_000
CHECKS = tuple(CheckResult(f"Check{i}", True, "42 us", "a line of its log\n" * 3) for i in range(8))


def lease(key: str, start: int, end: int) -> Lease:
    return Lease(
        key, "a", ("east", "h100"), (), 0, seconds(at(start)), seconds(at(end)), seconds(at(end + 5))
    )


def test_the_checks_of_a_thousand_nodes_stay_a_small_file_and_the_failed_one_tells_all() -> None:
    nodes = tuple(f"h100-{i}" for i in range(1000))
    status = GPRStatus(
        phase=Phase.PROVISIONING, uid="u", filed_at=at(0), estimated_start_time=at(2), held_from=at(0),
        assignment=Assignment(cluster="east", pool="h100", nodes=nodes),
        accepted_spec=RequestSpec(slice="a", nodes=1000, duration=timedelta(hours=1)), spec_digest="sha256:0",
    )  # fmt: skip
    bad = (*CHECKS[1:], CheckResult("NcclLatency", False, "900 us", "too slow"))
    found = {("u", node, "pre"): bad if node == "h100-7" else CHECKS for node in nodes}
    seen = Seen({}, outcomes=Outcomes(found))  # type: ignore[arg-type]
    checked, told = with_check_results(
        "a/x", status, Context(at(1), Settings("", Path()), wanted(), seen, {})
    )
    assert [(c.node, c.name, c.value, c.log) for c in checked.checks if not c.passed] == [
        ("h100-7", "NcclLatency", "900 us", "too slow")
    ]
    assert [event.node for event in told] == ["h100-7"]
    assert {c.node for c in checked.checks} == set(nodes)
    document = GPRRecord(metadata=Metadata(name="x"), status=checked)
    assert len(rendered(document)) < MEGABYTE / 2, "there are as many rows again after the end"


def test_of_two_late_starts_of_a_slice_the_second_sees_where_the_first_went() -> None:
    free_nodes = FreeNodes({}, {"a/x": lease("a/x", 0, 10), "a/y": lease("a/y", 20, 30)}, at(12))
    assert free_nodes.move("a/x", at(12), at(20)), "they may touch"
    assert not free_nodes.move("a/y", at(19), at(29))
    assert free_nodes.move("a/y", at(25), at(35))
    other = {"a/x": lease("a/x", 0, 10), "b/y": replace(lease("b/y", 5, 30), slice="b")}
    assert FreeNodes({}, other, at(12)).move("a/x", at(12), at(22)), "other slices do not matter"


@pytest.mark.parametrize(
    ("minute", "phase"),
    [
        pytest.param(9, Phase.PROVISIONING, id="a node that it has before its start is no start"),
        pytest.param(10, Phase.PROVISIONED, id="at its start it has begun"),
    ],
)
def test_a_hand_over_of_an_earlier_decision_does_not_begin_a_start_that_was_put_off(
    minute: int, phase: Phase
) -> None:
    status = GPRStatus(
        phase=Phase.PROVISIONING, uid="u", filed_at=at(0), estimated_start_time=at(10), held_from=at(0),
        assignment=Assignment(cluster="east", pool="h100", nodes=("h100-1",)),
        accepted_spec=RequestSpec(slice="a", nodes=1, duration=timedelta(hours=1)), spec_digest="sha256:0",
    )  # fmt: skip
    early = LeaseRef("u", "a/x", "a", at(62), start=at(2))
    seen = Seen(
        {"east": ClusterView(at(minute), {"h100-1": NodeView("h100-1", "h100", True, lease=early)}, {})}
    )
    context = Context(at(minute), Settings("", Path()), wanted(), seen, {})
    outcome = handover_outcome("a/x", status, context, FreeNodes({}, {}, at(minute)))
    assert outcome.status is not None
    assert outcome.status.phase is phase
