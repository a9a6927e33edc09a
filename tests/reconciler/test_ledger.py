"""H17: what a slice used is counted once for each lease, also of requests that queue again or vanish."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.facts import Facts
from reconciler.ledger import with_finished
from schemas.gpr import RequestSpec
from schemas.status import Cost, GPRStatus, Phase
from tests.support.world import START, at


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
        usage = with_finished(facts, after, "USD", at(5))
        facts = Facts(START, requests=after, usage=usage)
    months = [m for record in facts.usage.values() for m in record.months]
    assert sum(m.leases for m in months) == leases
    assert sum(m.gpu_hours for m in months) == gpu_hours
    assert sum(m.amount for m in months) == gpu_hours * 2
