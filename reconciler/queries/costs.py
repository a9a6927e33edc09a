"""What requests and slices have cost so far: ended leases, and running ones until now. Pure.

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
"""Phases of a lease that has begun and is not in `status.cost` yet."""


def cost_so_far(wanted: Wanted, status: GPRStatus, now: datetime) -> Cost | None:
    """The cost by `now`; until its nodes are clean the status lacks the cost of the present lease."""
    held = status.assignment
    if status.phase not in LEASED or held is None:
        return status.cost
    until = now if status.end_time is None else min(now, status.end_time)
    return cost_until(status, wanted.clusters.get(held.cluster), wanted.project, until)


def running(wanted: Wanted, requests: Mapping[str, GPRStatus], slice_: str, now: datetime) -> Cost:
    """The cost of a slice's running leases, which its ledger does not contain yet."""
    found = [
        (cost, status.cost_before)
        for key, status in holders(requests).items()
        if key.partition("/")[0] == slice_
        and status.phase in LEASED
        and (cost := cost_so_far(wanted, status, now)) is not None
    ]
    # Earlier leases of a requeued request are in the ledger already.
    hours = sum(cost.gpu_hours - (before.gpu_hours if before else 0.0) for cost, before in found)
    amount = sum(cost.amount - (before.amount if before else 0.0) for cost, before in found)
    return Cost(amount=round(amount, 4), currency=wanted.project.currency, gpu_hours=round(hours, 4))


def money(cost: Cost | None, currency: str) -> str:
    return f"{0.0 if cost is None else cost.amount:.2f} {currency if cost is None else cost.currency}"
