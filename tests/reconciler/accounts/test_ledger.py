"""H17: what a slice used is counted once for each lease, also of requests that queue again or vanish."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.accounts.ledger import with_finished
from reconciler.model.facts import Facts
from schemas.documents.base import Person
from schemas.documents.gpr import RequestSpec
from schemas.documents.project import ProjectSpec
from schemas.status.gpr_status import Cost, GPRStatus, Phase
from tests.support.world import START, at

PROJECT = ProjectSpec(admins=(Person(email="ada@example.com"),))


def status(gpu_hours: float | None, **update: object) -> GPRStatus:
    """A request of slice `a` with so much on its bill."""
    spec = RequestSpec(slice="a", nodes=1, duration=timedelta(hours=1))
    cost = None if gpu_hours is None else Cost(amount=gpu_hours * 2, currency="USD", gpu_hours=gpu_hours)
    base = GPRStatus(
        phase=Phase.PROVISIONED, uid="gpr-1", filed_at=START, accepted_spec=spec, spec_digest="x"
    )
    return base.model_copy(update={"cost": cost, **update})


@pytest.mark.parametrize(
    ("history", "leases", "gpu_hours"),
    [
        pytest.param([status(None), status(8.0, phase=Phase.COMPLETED)], 1, 8.0, id="a lease that ended"),
        pytest.param([status(None), status(None)], 0, 0.0, id="a lease that goes on is not counted yet"),
        pytest.param(
            [status(None), status(3.0, phase=Phase.QUEUED), status(3.0), status(8.0)],
            2,
            8.0,
            id="a request that lost its nodes and ran again",
        ),
        pytest.param(
            [status(None), status(3.0, phase=Phase.QUEUED), None], 1, 3.0, id="and was deleted then"
        ),
        pytest.param(
            [status(8.0), None, status(2.0, uid="gpr-2")], 2, 10.0, id="another request under the same name"
        ),
    ],
)
def test_every_lease_is_counted_once(history: list[GPRStatus | None], leases: int, gpu_hours: float) -> None:
    """The sum of all leases, whatever became of the request."""
    facts = Facts(START)
    for moment in history:
        after = {} if moment is None else {"a/x": moment}
        usage = with_finished(facts, after, PROJECT, at(5))
        facts = Facts(START, requests=after, usage=usage)
    months = [m for record in facts.usage.values() for m in record.months]
    assert sum(m.leases for m in months) == leases
    assert sum(m.gpu_hours for m in months) == gpu_hours
    assert sum(m.amount for m in months) == gpu_hours * 2


def test_what_fairness_reads_decays_from_the_lease_on() -> None:
    """E4: eight GPUs for an hour that ended just now are a little less than eight GPU-hours, a half-life later half.

    The ledger is written when a lease ends and never because time passed.
    """
    run = {"start_time": at(0), "end_time": at(60)}
    running = status(None, **run)
    over = status(8.0, phase=Phase.RELEASING, **run)
    facts = Facts(at(59), requests={"a/x": running})
    usage = with_finished(facts, {"a/x": over}, PROJECT, at(60))
    assert usage["a"].used == pytest.approx(8.0, rel=0.01)
    assert usage["a"].at == at(60)
    later = replace(facts, requests={"a/x": over}, usage=usage)
    assert with_finished(later, {"a/x": over}, PROJECT, at(9999))["a"] is usage["a"]
    week = at(60 + 7 * 24 * 60)
    again = {"a/y": status(2.0, uid="gpr-2", phase=Phase.COMPLETED, start_time=week, end_time=week)}
    found = with_finished(replace(later, at=week), {"a/x": over, **again}, PROJECT, week)
    assert found["a"].used == pytest.approx(usage["a"].used / 2 + 2.0, abs=0.001)
