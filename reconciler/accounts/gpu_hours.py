"""GPU-hours per calendar month (UTC): what leases used where, in the ledger and running. Pure.

A lease counts in the month in which it begins, with the requested duration: extensions are free, and time
saved by an early end is returned, because the ledger gets the actual usage. If others cut a lease short, its
remaining time is no new lease: it stays in the month of the first start, with its hours reserved.

Held by tests/reconciler/accounts/test_monthly_limits.py and tests/cases/reconciler/limits.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.facts import Facts, Wanted
from reconciler.model.pools import home_of
from reconciler.model.statuses import changed
from schemas.status.gpr_status import Assignment, Charge, GPRStatus, Phase
from schemas.status.usage import MonthSpent, UsageRecord

HOUR = timedelta(hours=1)
HOUR_S = 3600
SLACK = 1e-6
"""GPU-hours: tolerance for rounding."""
MINUTE = timedelta(minutes=1)
KEPT_MONTHS = 13
BEYOND_QUOTA = "MonthlyQuotaExceeded"
"""The reason of an approval whose hours do not count against the quota."""
HOLDS = frozenset({Phase.PROVISIONING, Phase.PROVISIONED, Phase.RELEASING})


@dataclass(frozen=True, slots=True)
class Taken:
    """GPU-hours in one place; `approved` were approved beyond the quota."""

    cluster: str
    gpu_shape: str
    gpu_hours: float
    approved: float = 0.0


def month_of(at: datetime) -> str:
    return f"{at:%Y-%m}"


def hours(nodes: int, gpus_per_node: int, duration: timedelta) -> float:
    return nodes * gpus_per_node * (duration / HOUR)


def whole(gpu_hours: float) -> float:
    """Without rounding errors: leases last whole seconds, and four decimals distinguish GPU-seconds."""
    return round(gpu_hours * HOUR_S) / HOUR_S


def is_beyond_quota(status: GPRStatus) -> bool:
    """True if an admin let it in although the month's quota was used up."""
    return status.approval is not None and BEYOND_QUOTA in status.approval.reasons


def owed(status: GPRStatus) -> timedelta:
    """The part of its duration not used by ended leases: the most that monthly limits may still count."""
    return max(timedelta(), status.accepted_spec.duration - status.served)


def served_until(status: GPRStatus, until: datetime) -> timedelta:
    """`served` if the present lease ends at that time, in whole minutes like `remaining`."""
    assert status.start_time is not None
    begun_minutes = -(max(timedelta(), until - status.start_time) // -MINUTE)
    return min(status.accepted_spec.duration, status.served + begun_minutes * MINUTE)


def returning(status: GPRStatus) -> Charge | None:
    """The charge of a request whose lease was cut short by others: it counts where that lease counts."""
    if status.charge is None or status.start_time is None:
        return status.charge
    return status.charge.edited(month=month_in(status, status.start_time))


def month_in(status: GPRStatus, start: datetime) -> str:
    """The month in which a lease of it with that start counts."""
    past = None if status.charge is None else status.charge.month
    return past or month_of(start)


def under_way(status: GPRStatus, month: str, wanted: Wanted) -> Taken | None:
    """What a request that holds nodes uses of that month; None if its lease began earlier, or it holds none."""
    held, start = status.assignment, status.start_time or status.estimated_start_time
    end = status.end_time or status.estimated_end_time
    if status.phase not in HOLDS or held is None or start is None or end is None:
        return None
    if month_in(status, start) < month:
        return None
    span = max(timedelta(), min(end - start + _kept(status), owed(status)))
    return _taken(status, held, span, wanted)


def rest_under_way(status: GPRStatus, rest: timedelta, month: str, wanted: Wanted) -> Taken | None:
    """The part of a running lease that an evicted request returns for."""
    found = under_way(status, month, wanted)
    if found is None or status.assignment is None:
        return None
    again = _taken(status, status.assignment, rest, wanted)
    return again if again.gpu_hours < found.gpu_hours else found


def _kept(status: GPRStatus) -> timedelta:
    """The remaining time of an evicted request whose nodes are being cleaned: it returns for it."""
    is_sent = status.eviction is not None and status.eviction.reason == "Preempted"
    left = status.remaining if status.phase is Phase.RELEASING and is_sent else None
    return left or timedelta()


def spent_in(record: UsageRecord | None, month: str) -> Iterator[Taken]:
    for row in () if record is None else record.spent:
        if row.month == month:
            yield Taken(row.cluster, row.gpu_shape, whole(row.gpu_hours), whole(row.approved))


def with_spent(
    before: Facts, requests: Mapping[str, GPRStatus], usage: Mapping[str, UsageRecord], wanted: Wanted
) -> dict[str, UsageRecord]:
    """The ledger with the hours of every lease that ended since `before`; `usage` has those leases' costs already."""
    counted = {name for name, record in usage.items() if before.usage.get(name) is not record}
    found = dict(usage)
    for key in sorted(changed(before.requests, requests)) if counted else ():
        status, old = requests.get(key), before.requests.get(key)
        name = key.partition("/")[0]
        if status is None or old is None or name not in counted or status.cost == old.cost:
            continue
        left = _left(status, old, wanted)
        if left is not None:
            found[name] = _added(found[name], *left)
    return found


def _left(status: GPRStatus, old: GPRStatus, wanted: Wanted) -> tuple[str, Taken] | None:
    """Month, place and hours of a lease in `old` that has ended in `status`."""
    held, start = old.assignment, old.start_time or old.estimated_start_time
    if held is None or start is None or status.cost is None:
        return None
    most = _taken(old, held, owed(old), wanted)
    used = status.cost.gpu_hours - (0.0 if old.cost is None else old.cost.gpu_hours)
    gpu_hours = whole(max(0.0, min(used, most.gpu_hours)))
    approved = gpu_hours if is_beyond_quota(old) else 0.0
    return month_in(old, start), Taken(most.cluster, most.gpu_shape, gpu_hours, approved)


def _taken(status: GPRStatus, held: Assignment, span: timedelta, wanted: Wanted) -> Taken:
    pool, spec = wanted.pools.get(home_of(held, wanted.pools)), status.accepted_spec
    gpus = spec.gpus_per_node if pool is None else pool.gpus_per_node
    found = hours(spec.nodes, gpus, span)
    approved = found if is_beyond_quota(status) else 0.0
    return Taken(held.cluster, "" if pool is None else pool.gpu_shape, found, approved)


def _added(record: UsageRecord, month: str, taken: Taken) -> UsageRecord:
    rows = {(row.month, row.cluster, row.gpu_shape): row for row in record.spent}
    at = (month, taken.cluster, taken.gpu_shape)
    old = rows.get(at)
    rows[at] = MonthSpent(
        month=month,
        cluster=taken.cluster,
        gpu_shape=taken.gpu_shape,
        gpu_hours=round((0.0 if old is None else whole(old.gpu_hours)) + taken.gpu_hours, 4),
        approved=round((0.0 if old is None else whole(old.approved)) + taken.approved, 4),
    )
    months = sorted({row.month for row in rows.values()})[-KEPT_MONTHS:]
    kept = tuple(rows[at] for at in sorted(rows) if at[0] in months)
    return record.edited(spent=kept)
