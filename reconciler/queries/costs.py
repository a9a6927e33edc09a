"""What requests and slices have cost so far: what ended stands in status and ledger, what runs counts until now. Pure.

Held by tests/contract/test_command_contract.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from reconciler.model.facts import Wanted
from reconciler.model.status_edits import cost_until
from reconciler.model.statuses import holders
from schemas.status.gpr_status import Cost, GPRStatus, Phase

LEASED = frozenset({Phase.PROVISIONED, Phase.RELEASING})
"""Phases of a lease that began and that its status does not count yet."""


def cost_so_far(wanted: Wanted, status: GPRStatus, now: datetime) -> Cost | None:
    """What it has cost by `now`: of one that has its nodes, the time since it got them counts too, up to its end.

    The status has the cost of a lease only when its nodes are clean again, so one that gives them back counts here.
    """
    held = status.assignment
    if status.phase not in LEASED or held is None:
        return status.cost
    until = now if status.end_time is None else min(now, status.end_time)
    return cost_until(status, wanted.clusters.get(held.cluster), wanted.project.currency, until)


def running(wanted: Wanted, requests: Mapping[str, GPRStatus], slice_: str, now: datetime) -> Cost:
    """What the leases of a slice that go on have cost, which its ledger does not have yet."""
    found = [
        (cost, status.cost_before)
        for key, status in holders(requests).items()
        if key.partition("/")[0] == slice_
        and status.phase in LEASED
        and (cost := cost_so_far(wanted, status, now)) is not None
    ]
    # Earlier leases of a request that was queued again stand in the ledger already.
    hours = sum(cost.gpu_hours - (before.gpu_hours if before else 0.0) for cost, before in found)
    amount = sum(cost.amount - (before.amount if before else 0.0) for cost, before in found)
    return Cost(amount=round(amount, 4), currency=wanted.project.currency, gpu_hours=round(hours, 4))


def money(cost: Cost | None, currency: str) -> str:
    """`12.34 USD`."""
    return f"{0.0 if cost is None else cost.amount:.2f} {currency if cost is None else cost.currency}"
