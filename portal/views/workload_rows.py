"""What runs, and what it costs: by request and by workspace. Pure.

Held by tests/portal/test_queue.py.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from portal.http.context import Wire
from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.vendor.gpr_models import Model
from portal.views.view import View
from reconciler.queries.costs import running
from reconciler.queries.workload_rows import Row, rows_at


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
    rows = rows_at(view.wanted, view.facts, now, slice_ or None)
    return [workload(row, Redactor(caller, view)) for row in rows if caller.may_see(row["sliceName"])]


def workload(row: Row, redactor: Redactor) -> Workload:
    """One of them, as the caller may read of its nodes."""
    nodes = [{**node, "message": redactor.text(node["message"])} for node in row["nodes"]]
    return Workload.model_validate({**row, "nodes": nodes})


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
    now_running = running(view.wanted, view.facts.requests, slice_, now)
    hours, amount = now_running.gpu_hours, now_running.amount
    return Usage(
        slice_name=slice_,
        currency=view.wanted.project.currency,
        gpu_hours=round(sum(m.gpu_hours for m in months) + hours, 4),
        cost=round(sum(m.amount for m in months) + amount, 4),
        running_gpu_hours=hours,
        running_cost=amount,
        months=[Month(month=m.month, gpu_hours=m.gpu_hours, cost=m.amount, leases=m.leases) for m in months],
    )
