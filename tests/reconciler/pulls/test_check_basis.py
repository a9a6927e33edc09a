"""A check is stale when what a plan begins with is another, and only then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.pulls.check_basis import queue_digest
from schemas.documents.gpr import RequestSpec
from schemas.status.gpr_status import GPRStatus, Phase

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
SPEC = RequestSpec(slice="a", nodes=1, duration=timedelta(hours=1))
WAITS = GPRStatus(
    phase=Phase.QUEUED, uid="gpr-00000000-0000", filed_at=NOW, accepted_spec=SPEC, spec_digest="sha256:0"
)


def changed(**update: object) -> GPRStatus:
    return WAITS.model_copy(update=update)


def asks(**update: object) -> GPRStatus:
    return changed(accepted_spec=SPEC.model_copy(update=update))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(changed(phase=Phase.PENDING_APPROVAL), id="it waits for an admin"),
        pytest.param(changed(estimated_start_time=NOW), id="it has a start"),
        pytest.param(changed(filed_at=NOW + timedelta(seconds=1)), id="it took another place"),
        pytest.param(changed(spec_digest="sha256:1"), id="it asks for something else"),
        pytest.param(changed(remaining=timedelta(minutes=5)), id="less of its time is left"),
        pytest.param(asks(priority=102), id="its priority is another"),
        pytest.param(asks(move=1), id="an admin moved it"),
        pytest.param(asks(not_before=NOW), id="it wants to start later"),
        pytest.param(asks(start="promised"), id="it starts in another mode"),
    ],
)
def test_what_a_plan_begins_with_changes_the_digest(other: GPRStatus) -> None:
    assert queue_digest({"a/x": other}) != queue_digest({"a/x": WAITS})


def test_what_no_plan_looks_at_does_not() -> None:
    named, over = asks(display_name="Third try"), changed(phase=Phase.COMPLETED)
    assert queue_digest({"a/x": named}) == queue_digest({"a/x": WAITS})
    assert queue_digest({"a/x": WAITS, "a/y": over}) == queue_digest({"a/x": WAITS})
    assert queue_digest({"a/y": WAITS, "a/x": WAITS}) == queue_digest({"a/x": WAITS, "a/y": WAITS})
