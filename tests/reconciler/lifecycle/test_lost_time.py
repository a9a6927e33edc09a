"""What a request does not pay for when its nodes fail (H14, H17)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.lifecycle.lost_time import with_lost_time, with_replaced
from reconciler.model.status_edits import credited_seconds
from schemas.documents.scheduling import Credit
from schemas.status.gpr_status import Assignment, Phase
from schemas.status.node_status import NodeMetadata, NodeRecord, NodeState
from tests.support.asked import status
from tests.support.world import at

BEGAN = at(0)
RUNNING = status(
    Phase.PROVISIONED,
    start_time=BEGAN,
    end_time=at(120),
    assignment=Assignment(cluster="east", pool="h100", nodes=("a", "b")),
)
CREDIT = Credit(each=timedelta(minutes=30))


def record(since) -> NodeRecord:
    return NodeRecord(
        metadata=NodeMetadata(name="a"), cluster="east", pool="h100", state=NodeState.UNHEALTHY, since=since
    )


def failing(minute: int, since=None):
    return with_lost_time(RUNNING, ["a"], {("east", "a"): record(since or at(minute))}, at(minute))


def test_nothing_is_lost_while_no_node_fails():
    assert with_lost_time(RUNNING, [], {}, at(10)) is RUNNING


def test_a_failure_counts_from_the_fault_to_the_recovery():
    later = with_lost_time(failing(10), [], {}, at(25))
    assert later.lost is not None
    assert (later.lost.seconds, later.lost.failing) == (15 * 60, ())


def test_a_failure_that_goes_on_counts_until_now():
    assert credited_seconds(failing(10).lost, CREDIT, at(40)) == 30 * 60
    assert failing(10) == with_lost_time(failing(10), ["a"], {("east", "a"): record(at(10))}, at(30))


def test_a_fault_from_before_the_lease_counts_from_its_start():
    assert credited_seconds(failing(5, since=at(-60)).lost, CREDIT, at(5)) == 5 * 60


def test_a_node_without_a_record_counts_from_when_it_was_missed():
    gone = with_lost_time(RUNNING, ["b"], {}, at(7))
    assert credited_seconds(gone.lost, CREDIT, at(17)) == 10 * 60


@pytest.mark.parametrize(
    ("credit", "want"),
    [
        pytest.param(None, 0, id="without a policy it pays for everything"),
        pytest.param(Credit(), 20 * 60, id="the time of the failure"),
        pytest.param(CREDIT, 50 * 60, id="and half an hour for each replacement"),
        pytest.param(
            Credit(lost_time=False, each=timedelta(minutes=30)), 30 * 60, id="only for replacements"
        ),
    ],
)
def test_what_is_credited_is_a_policy(credit, want):
    replaced = with_replaced(with_lost_time(failing(10), [], {}, at(30)), 1)
    assert credited_seconds(replaced.lost, credit, at(60)) == want
