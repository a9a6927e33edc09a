"""Running workloads and their cost, by request and by workspace. Pure.

Held by tests/portal/test_queue.py.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from portal.http.context import Wire
from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.vendor.gpr_models import Model
from portal.views.view import View
from reconciler.queries.costs import cost_so_far, running
from reconciler.queries.running.sight import Sight
from reconciler.queries.running.workload_details import request_rows
from reconciler.queries.workload_rows import Row
from schemas.reading.units import format_instant
from schemas.status.gpr_status import HOLDING, GPRStatus


class Gpu(Wire):
    """A GPU as judged by its agent."""

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
    gpus: list[Gpu] = Field(description="As last reported; empty: none has a problem.")


class Workload(Wire):
    """A request that has its nodes."""

    gpr_id: str
    name: str = Field(description="slice/file.")
    gpr_name: str
    slice_name: str
    namespaces: list[str] = Field(description="Namespaces of its workspace, where its pods are.")
    phase: str
    model: Model
    cluster_name: str
    pool: str
    gpu_shape: str
    num_gpus: int = Field(alias="numGPUs", description="All GPUs of its nodes.")
    nodes: list[WorkloadNode]
    healthy: bool = Field(description="Whether every node is Ready and no runtime check failed.")
    failed_checks: list[str] = Field(description="Failed runtime checks, in sentences.")
    idle_since: str = Field(
        description="Since when none of its GPUs is used; empty: one is used, or it is unknown."
    )
    idle_seconds: int
    start_time: str
    end_time: str = Field(description="Its strict end.")
    elapsed_seconds: int
    cost: str = Field(examples=["12.34 USD"])
    gpu_hours: float
    summary: dict[str, Any] = Field(
        description="Average use, hottest GPU, most power, idle and hot GPUs; null: not measured.",
        examples=[{"gpus": 8, "measuredGpus": 8, "idleGpus": 0, "averageUtilisationPercent": 94.2}],
    )
    runs: list[dict[str, Any]] = Field(
        description="Jobs, Deployments, InferenceServices and so on with GPUs: id, kind, name, model with the source "
        "of each value, GPUs, nodes, summary.",
        examples=[[{"id": "wl-0123456789ab", "kind": "JobSet", "name": "llama", "numGPUs": 8}]],
    )
    pods_unknown: str = Field(description="Why `runs` is empty although pods may run; empty: pods are known.")


def workloads(seen: Sight, redactor: Redactor, slice_: str = "") -> list[Workload]:
    """Requests that have their nodes and that the caller may see, by name, with what they run."""
    return [workload(row, redactor) for row in request_rows(seen, slice_ or None)]


def workload(row: Row, redactor: Redactor) -> Workload:
    """One of them, with messages redacted for the caller."""
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
    """Use and cost of a workspace."""

    slice_name: str
    currency: str
    gpu_hours: float = Field(description="Of ended leases, and of running ones until now.")
    cost: float = Field(description="The same, in the project's currency.")
    running_gpu_hours: float = Field(description="Of running leases, until now.")
    running_cost: float
    months: list[Month] = Field(description="Ended leases by month, oldest first.")


def usage(view: View, caller: Caller, now: datetime) -> list[Usage]:
    """By workspace, for those that the caller may see."""
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


# -- by request --------------------------------------------------------------------------------------------------------


class RequestUsage(Wire):
    """Use and cost of a request that has had nodes."""

    name: str = Field(description="slice/file.")
    gpr_name: str
    slice_name: str
    people: list[str] = Field(
        description="Who is responsible for it; empty: unknown, because main is not verified."
    )
    month: str = Field(description="In which its last lease ended, or runs (UTC).", examples=["2026-11"])
    phase: str
    is_running: bool = Field(description="Whether it holds nodes now, so that both figures still grow.")
    gpu_hours: float = Field(description="Of all its leases until now.")
    cost: float
    currency: str


def request_usage(
    view: View, caller: Caller, now: datetime, slice_: str = "", month: str = ""
) -> list[RequestUsage]:
    """By name; those whose file and status are gone are only in the workspace's months."""
    found = (
        _request_usage(view, key, status, now)
        for key, status in sorted(view.facts.requests.items())
        if slice_ in ("", key.partition("/")[0]) and caller.may_see(key.partition("/")[0])
    )
    return [one for one in found if one is not None and month in ("", one.month)]


def _request_usage(view: View, key: str, status: GPRStatus, now: datetime) -> RequestUsage | None:
    cost = cost_so_far(view.wanted, status, now)
    if cost is None or not cost.gpu_hours:
        return None
    slice_, _, name = key.partition("/")
    is_running = status.phase in HOLDING
    last = now if is_running else status.released_at or status.end_time or now
    return RequestUsage(
        name=key,
        gpr_name=status.accepted_spec.display_name or name,
        slice_name=slice_,
        people=list(status.provenance.authors) if status.provenance else [],
        month=format_instant(last)[:7],
        phase=str(status.phase),
        is_running=is_running,
        gpu_hours=round(cost.gpu_hours, 4),
        cost=round(cost.amount, 4),
        currency=cost.currency,
    )
