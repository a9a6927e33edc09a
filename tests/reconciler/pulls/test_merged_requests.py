"""What is said of requests after the merge, until they start (D8)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.pulls.merged_requests import is_followed, told
from schemas.documents.gpr import RequestSpec
from schemas.status.gpr_status import Cause, GPRStatus, Phase, Slip

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
LATER = NOW + timedelta(hours=6)


def status(phase: Phase, **more: object) -> GPRStatus:
    spec = RequestSpec(slice="a", nodes=1, duration=timedelta(hours=1))
    base = {"phase": phase, "uid": "gpr-1", "filed_at": NOW, "accepted_spec": spec, "spec_digest": "sha256:x"}
    return GPRStatus(**{**base, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "state", "line"),
    [
        pytest.param(
            status(Phase.PENDING_APPROVAL), "pending", "a/x: waits for an admin's approval", id="an approval"
        ),
        pytest.param(
            status(Phase.QUEUED, estimated_start_time=LATER, estimated_cluster="east"),
            "pending",
            "a/x: starts 21 Nov 14:00 UTC on east",
            id="its turn",
        ),
        pytest.param(
            status(Phase.QUEUED),
            "pending",
            "a/x: has no start: it currently fits nowhere",
            id="nothing that fits",
        ),
        pytest.param(
            status(Phase.PROVISIONING, start_time=LATER),
            "pending",
            "a/x: starts 21 Nov 14:00 UTC; nodes are being prepared",
            id="its checks",
        ),
        pytest.param(
            status(Phase.PROVISIONED, start_time=NOW, end_time=LATER),
            "success",
            "a/x: started 21 Nov 08:00 UTC, ends 21 Nov 14:00 UTC",
            id="nothing more",
        ),
        pytest.param(status(Phase.COMPLETED), "success", "a/x: ended", id="nothing, it was short"),
        pytest.param(status(Phase.CANCELLED), "success", "a/x: cancelled", id="nothing, it was taken back"),
        pytest.param(status(Phase.REJECTED), "failure", "a/x: rejected", id="nothing, an admin said no"),
        pytest.param(status(Phase.FAILED), "failure", "a/x: failed", id="nothing, it failed"),
    ],
)
def test_a_request_waits_for(found: GPRStatus, state: str, line: str) -> None:
    said = told({"a/x": found})
    assert (said.state, said.description) == (state, line)
    assert said.is_last == (state != "pending")
    assert is_followed(found) == (state == "pending")


def test_several_requests_are_counted_and_the_next_start_is_told() -> None:
    said = told(
        {
            "a/x": status(Phase.PROVISIONED, start_time=NOW),
            "a/y": status(Phase.QUEUED, estimated_start_time=LATER),
            "b/z": status(Phase.PENDING_APPROVAL),
        }
    )
    assert said.state == "pending"
    assert said.description == "3 requests: 2 not started yet, the next at 21 Nov 14:00 UTC"
    assert said.comment.count("\n| `") == 3


def test_several_requests_end_together() -> None:
    said = told(
        {"a/x": status(Phase.PROVISIONED), "a/y": status(Phase.REJECTED), "a/z": status(Phase.CANCELLED)}
    )
    assert (said.state, said.is_last) == ("failure", True)
    assert said.description == "3 requests: 1 started, 1 cancelled, 1 rejected"


def test_a_promise_that_moved_says_how_often_and_why() -> None:
    slip = Slip(was=NOW, now=LATER, cause=Cause.HIGHER_RANK_ARRIVED, by="b/`urgent`|@all", at=NOW)
    said = told({"a/x": status(Phase.QUEUED, estimated_start_time=LATER, slips=(slip,))})
    assert "1 time; last: HigherRankArrived by `b/" in said.comment
    assert "|@all" not in said.comment


def test_a_comment_lists_some_and_counts_the_rest() -> None:
    said = told({f"a/r{n:02}": status(Phase.QUEUED) for n in range(40)})
    assert "and 10 more" in said.comment
    assert said.comment.startswith("<!-- egs-check -->\n")


def test_the_order_of_requests_does_not_matter() -> None:
    found = {f"a/{name}": status(Phase.QUEUED) for name in "cab"}
    assert told(found) == told(dict(sorted(found.items())))
