"""Small changes of a status that several decisions share."""

from __future__ import annotations

from datetime import datetime, timedelta

from schemas.documents.cluster import ClusterSpec
from schemas.documents.project import ProjectSpec
from schemas.documents.scheduling import Credit
from schemas.status.gpr_status import Cause, Condition, Cost, Eviction, GPRStatus, LostTime, Phase, Slip

ENDED_LATE = "EndedLate"
"""The condition of a lease whose end passed while no controller was running."""
KEPT_SLIPS = 50
"""Slips kept in a status, newest last; `delayedCount` counts all."""


def first_wait(status: GPRStatus, start: datetime) -> int:
    """Seconds that it waited before its first start, or before this one if it is the first."""
    if status.waited_s is not None:
        return status.waited_s
    return max(0, int((start - waits_since(status)).total_seconds()))


def has_condition(status: GPRStatus, type_: str, message: str) -> bool:
    """True if it has that condition with exactly this message."""
    return any(c.type == type_ and c.message == message for c in status.conditions)


def with_condition(status: GPRStatus, condition: Condition) -> GPRStatus:
    """The status with this condition instead of an older one of its type; an equal one keeps its time."""
    if has_condition(status, condition.type, condition.message):
        return status
    others = tuple(c for c in status.conditions if c.type != condition.type)
    return status.edited(conditions=(*others, condition))


def without_condition(status: GPRStatus, *types: str) -> GPRStatus:
    left = tuple(c for c in status.conditions if c.type not in types)
    return status if len(left) == len(status.conditions) else status.edited(conditions=left)


def promised_start(status: GPRStatus) -> datetime | None:
    """The start that it waits for: for an evicted request, its next one."""
    if status.phase not in {Phase.PROVISIONED, Phase.RELEASING}:
        return status.estimated_start_time
    back = None if status.eviction is None else status.eviction.back
    return None if back is None else back.start


def with_slip(
    status: GPRStatus,
    to: datetime | None,
    cause: Cause,
    by: str,
    at: datetime,
    *,
    lost: datetime | None = None,
) -> GPRStatus:
    """The status with its promise moved later for a named cause; `lost`: a promise that it no longer shows."""
    was = promised_start(status) or lost
    if was is None:
        return status
    slip = Slip(was=was, now=to, cause=cause, by=by, at=at)
    return status.edited(slips=(*status.slips, slip)[-KEPT_SLIPS:], delayed_count=status.delayed_count + 1)


def without_promise(status: GPRStatus) -> GPRStatus:
    """The status with no start, no nodes and no lease: back in the queue."""
    return status.edited(
        estimated_start_time=None,
        estimated_end_time=None,
        estimated_cluster=None,
        estimated_pool=None,
        bound_nodes=(),
        forecast=None,
        assignment=None,
        replaced_nodes=(),
        lost=None,
        held_from=None,
        start_time=None,
        end_time=None,
        warned=None,
    )


def with_its_return(queued: GPRStatus, eviction: Eviction) -> GPRStatus:
    """An evicted request that is queued again, with the start promised at its eviction."""
    back = eviction.back
    if back is None:
        return queued
    return queued.edited(
        estimated_start_time=back.start,
        estimated_end_time=back.end,
        estimated_cluster=back.cluster,
        estimated_pool=back.pool,
        bound_nodes=back.bound_nodes,
    )


def clean_by(status: GPRStatus, drain: timedelta) -> datetime | None:
    """When the nodes should be clean: a drain after the end, or after the time at which it could be carried out."""
    if status.end_time is None:
        return None
    late = max((c.at for c in status.conditions if c.type == ENDED_LATE), default=status.end_time)
    return max(status.end_time, late) + drain


def leaves_at(status: GPRStatus) -> datetime | None:
    """When its nodes are released: at the strict end, or at a decided earlier time; None: not known yet."""
    if status.eviction is None or status.end_time is None:
        return status.end_time
    return min(status.end_time, status.eviction.at)


def counted_end(status: GPRStatus) -> datetime | None:
    """When planning counts its nodes as free: preempted ones when they leave; idle ones may be used again."""
    made_room = status.eviction is not None and status.eviction.reason != "Idle"
    return leaves_at(status) if made_room else status.end_time


def lease_duration(status: GPRStatus) -> timedelta:
    """How long the request may hold its nodes from its next start on."""
    return status.accepted_spec.duration if status.remaining is None else status.remaining


def waits_since(status: GPRStatus) -> datetime:
    """The start of its wait: its filing time, plus the time during which its `notBefore` was in the future."""
    asked, changed = status.accepted_spec.not_before, status.waits_from
    return max(at for at in (status.filed_at, asked, changed) if at is not None)


def cost_until(
    status: GPRStatus, cluster: ClusterSpec | None, project: ProjectSpec, until: datetime
) -> Cost | None:
    """The cost by `until`: every GPU of its nodes since the start, and earlier leases; None before a start.

    Time that the project credits for failed nodes is left out.
    """
    if status.start_time is None or status.assignment is None or cluster is None:
        return status.cost
    nodes = status.assignment.nodes
    named = [p for p in cluster.pools if p.name == status.assignment.pool]
    moved = [p for p in cluster.pools if not named and not set(nodes).isdisjoint(p.node_names())]
    pool = next(iter([*named, *moved]), None)
    if pool is None:
        return status.cost
    price = cluster.price_per_gpu_hour if pool.price_per_gpu_hour is None else pool.price_per_gpu_hour
    held_s = max(0.0, (until - status.start_time).total_seconds()) * status.accepted_spec.nodes
    credited_s = min(held_s, credited_seconds(status.lost, project.scheduling.credit, until))
    gpu_hours = (held_s - credited_s) / 3600 * pool.gpus_per_node
    before = status.cost_before or Cost(amount=0.0, currency=project.currency, gpu_hours=0.0)
    credited = (before.credited_gpu_hours or 0.0) + credited_s / 3600 * pool.gpus_per_node
    return Cost(
        amount=round(before.amount + gpu_hours * price, 4),
        currency=project.currency,
        gpu_hours=round(before.gpu_hours + gpu_hours, 4),
        credited_gpu_hours=round(credited, 4) or None,
    )


def credited_seconds(lost: LostTime | None, credit: Credit | None, until: datetime) -> float:
    """Node-seconds that a request does not pay for."""
    if lost is None or credit is None:
        return 0.0
    each = lost.replaced * credit.each.total_seconds()
    if not credit.lost_time:
        return each
    return each + lost.seconds + sum(max(0.0, (until - n.since).total_seconds()) for n in lost.failing)
