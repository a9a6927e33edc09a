"""What runs, and what it costs: by request and by workspace. Pure.

Held by tests/portal/test_queue.py.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from portal.callers import Caller
from portal.gprs import LEASED, cost_at, money
from portal.gprwire import Model
from portal.hiding import Veil
from portal.serving import Wire
from portal.view import View
from reconciler.records import holders
from schemas.status import GPRStatus, NodeRecord, NodeState
from schemas.units import format_instant


class Gpu(Wire):
    """A GPU as its agent judges it."""

    index: int
    product: str
    memory_mib: int
    healthy: bool
    reasons: list[str]


class WorkloadNode(Wire):
    """A node of a workload."""

    name: str
    state: str = Field(description="Ready, or what is wrong.")
    reason: str
    message: str
    gpus: list[Gpu] = Field(description="As last reported; empty: nothing is wrong with them.")


class Workload(Wire):
    """A request that has its nodes."""

    gpr_id: str
    name: str = Field(description="slice/file.")
    gpr_name: str
    slice_name: str
    namespaces: list[str] = Field(description="Of its workspace: where its pods are.")
    phase: str
    model: Model
    cluster_name: str
    pool: str
    gpu_shape: str
    num_gpus: int = Field(alias="numGPUs", description="All GPUs of its nodes.")
    nodes: list[WorkloadNode]
    healthy: bool = Field(description="Whether every node is Ready and no running check failed.")
    failed_checks: list[str] = Field(description="Of checks while it runs, in sentences.")
    idle_since: str = Field(
        description="Since when none of its GPUs is used; empty: one is, or nobody knows."
    )
    idle_seconds: int
    start_time: str
    end_time: str = Field(description="Its strict end.")
    elapsed_seconds: int
    cost: str = Field(examples=["12.34 USD"])
    gpu_hours: float


def workloads(view: View, caller: Caller, now: datetime, slice_: str = "") -> list[Workload]:
    """Requests that have their nodes, by name, as far as the caller may see them."""
    found = sorted(holders(view.facts.requests).items())
    return [
        workload(view, key, status, (caller, now))
        for key, status in found
        if caller.may_see(key.partition("/")[0]) and slice_ in ("", key.partition("/")[0])
    ]


def workload(view: View, key: str, status: GPRStatus, asks: tuple[Caller, datetime]) -> Workload:
    """One of them, which holds nodes."""
    (caller, now), held, spec = asks, status.assignment, status.accepted_spec
    slice_, _, name = key.partition("/")
    cluster, pool_name = ("", "") if held is None else (held.cluster, held.pool)
    pool = view.wanted.pools.get((cluster, pool_name))
    nodes = [_node(view, cluster, node, Veil(caller, view)) for node in (() if held is None else held.nodes)]
    failed = [
        f"{c.node}: {c.name} {c.value}".rstrip() for c in status.checks if c.stage == "run" and not c.passed
    ]
    cost = cost_at(view, status, now)
    return Workload(
        gpr_id=status.uid,
        name=key,
        gpr_name=spec.display_name or name,
        slice_name=slice_,
        namespaces=list(view.wanted.slices[slice_].namespaces) if slice_ in view.wanted.slices else [],
        phase=str(status.phase),
        model=Model(**spec.model.model_dump()),
        cluster_name=cluster,
        pool=pool_name,
        gpu_shape="" if pool is None else pool.gpu_shape,
        num_gpus=0 if pool is None else len(nodes) * pool.gpus_per_node,
        nodes=nodes,
        healthy=not failed and all(node.state == NodeState.READY for node in nodes),
        failed_checks=failed,
        idle_since="" if status.idle_since is None else format_instant(status.idle_since),
        idle_seconds=_since(status.idle_since, now),
        start_time="" if status.start_time is None else format_instant(status.start_time),
        end_time="" if status.end_time is None else format_instant(status.end_time),
        elapsed_seconds=_since(status.start_time, now),
        cost=money(cost, view.wanted.project.currency),
        gpu_hours=0.0 if cost is None else cost.gpu_hours,
    )


def _node(view: View, cluster: str, name: str, veil: Veil) -> WorkloadNode:
    record: NodeRecord | None = view.facts.nodes.get((cluster, name))
    if record is None:
        return WorkloadNode(name=name, state=str(NodeState.READY), reason="", message="", gpus=[])
    return WorkloadNode(
        name=name,
        state=str(record.state),
        reason=record.reason or "",
        message=veil.text(record.message or ""),
        gpus=[
            Gpu(
                index=gpu.index,
                product=gpu.product,
                memory_mib=gpu.memory_mib,
                healthy=gpu.healthy,
                reasons=list(gpu.reasons),
            )
            for gpu in record.gpus
        ],
    )


def _since(at: datetime | None, now: datetime) -> int:
    return 0 if at is None else max(0, int((now - at).total_seconds()))


# -- by workspace ------------------------------------------------------------------------------------------------------


class Month(Wire):
    """Leases that ended in a calendar month (UTC)."""

    month: str = Field(examples=["2026-11"])
    gpu_hours: float
    cost: float
    leases: int


class Usage(Wire):
    """What a workspace used and what that cost."""

    slice_name: str
    currency: str
    gpu_hours: float = Field(description="Of leases that ended, and of those that run until now.")
    cost: float = Field(description="The same, in the project's currency.")
    running_gpu_hours: float = Field(description="Of those that run, until now.")
    running_cost: float
    months: list[Month] = Field(description="Of leases that ended, oldest first.")


def usage(view: View, caller: Caller, now: datetime) -> list[Usage]:
    """By workspace, as far as the caller may see it."""
    names = {*view.wanted.slices, *view.facts.usage}
    return [_usage(view, name, now) for name in sorted(names) if caller.may_see(name)]


def _usage(view: View, slice_: str, now: datetime) -> Usage:
    record = view.facts.usage.get(slice_)
    months = [] if record is None else list(record.months)
    running = [
        (cost, status.cost_before)
        for key, status in holders(view.facts.requests).items()
        if key.partition("/")[0] == slice_
        and status.phase in LEASED
        and (cost := cost_at(view, status, now)) is not None
    ]
    # Earlier leases of a request that was queued again stand in the ledger already.
    hours = sum(cost.gpu_hours - (before.gpu_hours if before else 0.0) for cost, before in running)
    amount = sum(cost.amount - (before.amount if before else 0.0) for cost, before in running)
    return Usage(
        slice_name=slice_,
        currency=view.wanted.project.currency,
        gpu_hours=round(sum(m.gpu_hours for m in months) + hours, 4),
        cost=round(sum(m.amount for m in months) + amount, 4),
        running_gpu_hours=round(hours, 4),
        running_cost=round(amount, 4),
        months=[Month(month=m.month, gpu_hours=m.gpu_hours, cost=m.amount, leases=m.leases) for m in months],
    )
