"""Workspaces on the wire: new ones, changes, and the status of each slice. Models and rows.

Reading costs the slices that the caller sees and the live requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from portal.http.context import Changed, Whole, Wire, example, optional
from portal.identity.callers import Caller
from portal.vendor.workspace_queues import WorkspaceQueue, queues_of
from portal.vendor.workspace_services import WorkspaceServices, services_of
from portal.views.view import View
from reconciler.accounts.monthly_limits import full_account
from reconciler.model.statuses import live
from reconciler.queries.costs import cost_so_far
from schemas.documents.slice import SliceSpec
from schemas.rules.limits import hour_bounds
from schemas.status.gpr_status import HOLDING, WAITING, GPRStatus
from schemas.status.usage import MonthUsage

MOST_CLUSTERS = 100
"""Most clusters of a slice; the vendor's `maxClusters`."""
NO_NETWORK = "no-network"
"""The vendor's term: slices are isolated from each other and have no network of their own."""

Names = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=253)], ...], Field(max_length=100)]
Mails = Annotated[tuple[Annotated[str, Field(max_length=254)], ...], Field(max_length=999)]

_ASKED: dict[str, Any] = {
    "workspaceName": "llm-gpt-4o",
    "clusters": ["east"],
    "namespaces": ["llm-gpt-4o-dev"],
    "username": "John Doe",
    "email": "john.doe@example.com",
    "description": "fine-tuning of language models",
}


class WorkspaceWish(Wire):
    """A workspace to make."""

    model_config = example(_ASKED)

    workspace_name: str = Field(
        min_length=1, max_length=253, description="Its name.", examples=["llm-gpt-4o"]
    )
    clusters: Names = Field(
        description="Its clusters, in order of preference.", examples=[["east"]], min_length=1
    )
    namespaces: Names = Field(
        default=(), description="Its namespaces in each of those clusters; none: one with its name."
    )
    username: str = Field(
        default="", max_length=200, description="Display name of the owner.", examples=["John Doe"]
    )
    email: str = Field(
        default="",
        max_length=254,
        description='Address of the owner; "": the caller\'s.',
        examples=["john.doe@example.com"],
    )
    description: str = Field(default="", max_length=500, description="What it is for.")
    members: Mails = Field(default=(), description="Addresses of the other members.")
    quota_gpus: Whole | None = optional(
        "GPUs of one request without approval.", ge=0, le=1_000_000, alias="quotaGPUs"
    )
    max_clusters: Whole | None = optional(
        "Refuses this call if it names more clusters; not stored.", ge=1, le=MOST_CLUSTERS
    )


class WorkspaceEdit(Wire):
    """Changes of a workspace; absent fields stay."""

    model_config = example({"workspaceName": "llm-gpt-4o", "clusters": ["east", "north"]})

    workspace_name: str = Field(min_length=1, max_length=253, description="Its name.")
    clusters: Annotated[Names, Field(min_length=1)] | None = optional(
        "The complete new list of its clusters."
    )
    namespaces: Annotated[Names, Field(min_length=1)] | None = optional(
        "The complete new list of its namespaces; a removed one is deleted with its content."
    )
    description: str | None = optional("What it is for; owners may change it.", max_length=500)
    members: Annotated[Mails, Field(min_length=1)] | None = optional(
        "Addresses of all members; owners may change them."
    )
    owners: Mails | None = optional("Addresses of all owners, who may change its members.")
    quota_gpus: Whole | None = optional(
        "GPUs of one request without approval.", ge=0, le=1_000_000, alias="quotaGPUs"
    )


class WorkspaceNamed(Wire):
    """Names a workspace."""

    model_config = example({"workspaceName": "llm-gpt-4o"})

    workspace_name: str = Field(min_length=1, max_length=253, description="Its name.")


class ClusterNamed(Wire):
    """Names a cluster of a workspace."""

    model_config = example({"workspaceName": "vision", "clusterName": "east"})

    workspace_name: str = Field(
        min_length=1, max_length=253, description="The workspace.", examples=["vision"]
    )
    cluster_name: str = Field(min_length=1, max_length=253, description="The cluster.", examples=["east"])


class WorkspaceChanged(Wire):
    """A workspace that was requested, made, changed or deleted, and where the change is."""

    model_config = example(
        {
            "workspaceName": "llm-gpt-4o",
            "change": {"way": "branch", "commit": "8d5f…", "branch": "requests/slice-llm-gpt-4o"},
        }
    )

    workspace_name: str = Field(description="Its name.")
    change: Changed = Field(description="Where the change is.")


class NamespaceThere(Wire):
    """A namespace and its clusters."""

    namespace: str
    clusters: tuple[str, ...]


class Use(Wire):
    """What it uses now."""

    waiting: int = Field(description="Waiting requests.")
    holding: int = Field(description="Requests that hold nodes.")
    gpus_held: int = Field(description="GPUs of those nodes.")
    nodes_held: int = Field(description="Number of those nodes.")


class MonthCost(Wire):
    """Leases that ended in a month."""

    month: str = Field(description="In UTC.", examples=["2026-11"])
    gpu_hours: float
    amount: float
    leases: int


class WorkspaceCost(Wire):
    """Its cost so far: ended leases by month, newest last, and running ones."""

    currency: str = Field(examples=["USD"])
    gpu_hours: float = Field(description="Of all months and of running leases.")
    amount: float = Field(description="The same in money.")
    running_amount: float = Field(description="Of running leases, until the controller's last cycle.")
    months: tuple[MonthCost, ...]


class WorkspaceLimits(Wire):
    """Hard limits of its requests, including the project's; absent: no limit."""

    max_duration: str | None
    max_priority: int
    max_nodes: int | None
    max_gpus: int | None
    max_memory_per_gpu: int | None
    gpu_shapes: tuple[str, ...] = Field(description="Empty: all.")
    max_waiting: int | None
    gpu_hours_per_month: int | None


class WorkspaceQuota(Wire):
    """What one request may hold without approval, including the project's bound; absent: no bound."""

    gpus: int | None
    nodes: int | None
    gpu_hours_per_month: int | None


class MonthBound(Wire):
    """A bound on the GPU-hours of a calendar month (UTC), and how much of it is taken."""

    is_limit: bool = Field(description="true: no approval lifts it; false: beyond it an admin must approve.")
    cluster: str = Field(description='Only in this cluster; "": in all.')
    gpu_shape: str = Field(description='Only on this shape; "": on all.')
    gpu_hours: float
    taken: float = Field(description="By leases that began this month, and by requests that were let in.")


class Workspace(Wire):
    """A workspace as it is in force."""

    model_config = example(
        {
            "name": "vision",
            "overlayNetworkDeploymentMode": NO_NETWORK,
            "maxClusters": MOST_CLUSTERS,
            "sliceDescription": "models that see",
            "clusters": ["east"],
            "namespaces": [{"namespace": "vision", "clusters": ["east"]}],
            "members": ["bo@example.com"],
            "owners": ["ida@example.com"],
            "quota": {"gpus": 16, "nodes": 2, "gpuHoursPerMonth": 5000},
            "limits": {
                "maxDuration": "7d0h0m",
                "maxPriority": 200,
                "maxNodes": 4,
                "maxGpus": 32,
                "maxMemoryPerGpu": 80,
                "gpuShapes": ["H100-80GB"],
                "maxWaiting": 3,
                "gpuHoursPerMonth": 10000,
            },
            "use": {"waiting": 1, "holding": 1, "gpusHeld": 16, "nodesHeld": 2},
            "monthBounds": [
                {"isLimit": False, "cluster": "", "gpuShape": "", "gpuHours": 5000, "taken": 96.0},
                {"isLimit": True, "cluster": "", "gpuShape": "", "gpuHours": 10000, "taken": 96.0},
            ],
            "cost": {
                "currency": "USD",
                "gpuHours": 96.0,
                "amount": 240.0,
                "runningAmount": 80.0,
                "months": [{"month": "2026-11", "gpuHours": 64.0, "amount": 160.0, "leases": 2}],
            },
            "queues": [],
            "services": [],
            "weight": 1.0,
            "paused": False,
        }
    )

    name: str
    overlay_network_deployment_mode: str = Field(description="Always `no-network`.")
    max_clusters: int = Field(description="The most clusters it could span.")
    slice_description: str
    clusters: tuple[str, ...] = Field(description="In order of preference.")
    namespaces: tuple[NamespaceThere, ...]
    members: tuple[str, ...] = Field(description="People who may file requests.")
    owners: tuple[str, ...] = Field(description="People who may change its members.")
    quota: WorkspaceQuota | None = Field(description="null: only the limits apply.")
    limits: WorkspaceLimits
    use: Use
    month_bounds: tuple[MonthBound, ...] = Field(description="What is left this month; empty: no bound.")
    cost: WorkspaceCost
    queues: tuple[WorkspaceQueue, ...] = Field(description="Its Kueue queues, by cluster; empty: none.")
    services: tuple[WorkspaceServices, ...] = Field(
        description="What it exports, by cluster; empty: nothing."
    )
    weight: float = Field(description="Share relative to other workspaces at the same priority.")
    paused: bool = Field(description="Whether changes made to it in clusters are left alone.")


class Workspaces(Wire):
    """All workspaces that the caller sees."""

    workspaces: tuple[Workspace, ...]


@dataclass(frozen=True, slots=True)
class RequestTotals:
    """Sums over a slice's live requests."""

    waiting: int = 0
    holding: int = 0
    nodes: int = 0
    gpus: int = 0
    gpu_hours: float = 0.0
    amount: float = 0.0


def standings(view: View) -> Mapping[str, RequestTotals]:
    """By slice, in one pass over the live requests; call it through `View.once`."""
    found: dict[str, list[GPRStatus]] = {}
    for key, status in live(view.facts.requests).items():
        found.setdefault(key.partition("/")[0], []).append(status)
    return {name: _standing(view, own) for name, own in found.items()}


def _standing(view: View, own: list[GPRStatus]) -> RequestTotals:
    holding = [status for status in own if status.phase in HOLDING]
    held = [(len(s.assignment.nodes) if s.assignment else 0, _gpus_per_node(view, s)) for s in holding]
    costs = [_running_cost(view, status) for status in holding]
    return RequestTotals(
        waiting=sum(status.phase in WAITING for status in own),
        holding=len(holding),
        nodes=sum(nodes for nodes, _ in held),
        gpus=sum(nodes * gpus for nodes, gpus in held),
        gpu_hours=sum(hours for hours, _ in costs),
        amount=sum(amount for _, amount in costs),
    )


def _gpus_per_node(view: View, status: GPRStatus) -> int:
    held = status.assignment
    pool = None if held is None else view.wanted.pools.get((held.cluster, held.pool))
    return 0 if pool is None else pool.gpus_per_node


def _running_cost(view: View, status: GPRStatus) -> tuple[float, float]:
    """GPU-hours and money of the running lease; the ledger has only ended leases."""
    cost = cost_so_far(view.wanted, status, view.facts.at)
    if cost is None or status.start_time is None:
        return 0.0, 0.0
    before = status.cost_before
    counted = (0.0, 0.0) if before is None else (before.gpu_hours, before.amount)
    return max(0.0, cost.gpu_hours - counted[0]), max(0.0, cost.amount - counted[1])


def workspaces(view: View, caller: Caller) -> tuple[Workspace, ...]:
    """All workspaces that the caller sees, by name."""
    return tuple(workspace_of(view, name) for name in sorted(view.wanted.slices) if caller.may_see(name))


def workspace_of(view: View, name: str) -> Workspace:
    spec, standing = view.wanted.slices[name], view.once(standings).get(name, RequestTotals())
    return Workspace(
        name=name,
        overlay_network_deployment_mode=NO_NETWORK,
        max_clusters=MOST_CLUSTERS,
        slice_description=spec.description,
        clusters=spec.clusters,
        namespaces=tuple(NamespaceThere(namespace=each, clusters=spec.clusters) for each in spec.namespaces),
        members=tuple(person.email for person in spec.members),
        owners=tuple(person.email for person in spec.owners),
        quota=_quota(spec),
        limits=_limits(spec),
        use=Use(
            waiting=standing.waiting,
            holding=standing.holding,
            gpus_held=standing.gpus,
            nodes_held=standing.nodes,
        ),
        month_bounds=_month_bounds(view, name),
        cost=_cost(view, name, standing),
        queues=queues_of(view, name),
        services=services_of(view, name),
        weight=spec.weight,
        paused=spec.paused,
    )


def _quota(spec: SliceSpec) -> WorkspaceQuota | None:
    quota = spec.quota
    if quota is None:
        return None
    return WorkspaceQuota(gpus=quota.gpus, nodes=quota.nodes, gpu_hours_per_month=quota.gpu_hours_per_month)


def _limits(spec: SliceSpec) -> WorkspaceLimits:
    limits = spec.limits.model_dump(mode="json", by_alias=True, exclude={"where"})
    return WorkspaceLimits.model_validate(limits)


def _month_bounds(view: View, name: str) -> tuple[MonthBound, ...]:
    """What a request filed now would face."""
    if not hour_bounds(view.wanted.slices[name]):
        return ()
    account = full_account(name, view.facts, view.wanted)
    return tuple(
        MonthBound(
            is_limit=bound.is_hard,
            cluster=bound.cluster or "",
            gpu_shape=bound.gpu_shape or "",
            gpu_hours=bound.gpu_hours,
            taken=round(bound.gpu_hours - account.left(bound), 4),
        )
        for bound in account.bounds
    )


def _cost(view: View, name: str, standing: RequestTotals) -> WorkspaceCost:
    usage = view.facts.usage.get(name)
    months = () if usage is None else usage.months
    return WorkspaceCost(
        currency=view.wanted.project.currency,
        gpu_hours=round(sum(month.gpu_hours for month in months) + standing.gpu_hours, 4),
        amount=round(sum(month.amount for month in months) + standing.amount, 4),
        running_amount=round(standing.amount, 4),
        months=tuple(_month(month) for month in months),
    )


def _month(month: MonthUsage) -> MonthCost:
    return MonthCost(
        month=month.month,
        gpu_hours=round(month.gpu_hours, 4),
        amount=round(month.amount, 4),
        leases=month.leases,
    )
