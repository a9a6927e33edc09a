"""Nodes, workspaces, policies and templates, with the documented names."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from egs.data.records import Change, Items, Record, each, one, record, same_as, table, wire, wire_name


@record
class AllocationTimestamp(Record):
    """An instant as seconds since 1970, as documented."""

    seconds: int = 0
    nanos: int = 0


@record
class Allocation(Record):
    """The holder of a node's GPUs."""

    gpr_name: str = ""
    slice_name: str = ""
    total_gpus_allocated: int = wire("totalGPUsAllocated", default=0)
    allocation_timestamp: AllocationTimestamp = wire(
        default=AllocationTimestamp(), read=one(AllocationTimestamp)
    )


@record
class GpuSlicingProfile(Record):
    """A part of a GPU; nodes are allocated whole, so a server has none."""

    profile_name: str = ""
    memory: int = 0
    total_gpus: int = wire("totalGPUs", default=0)
    device_name: str = ""
    available_gpus: int = wire("availableGPUs", default=0)
    memory_per_gpu: int = wire("memoryPerGPU", default=0)
    gpus_per_node: int = wire("gpusPerNode", default=0)


@record
class Inventory(Record):
    """One GPU node."""

    gpu_node_name: str = ""
    gpu_shape: str = ""
    gpu_model_name: str = ""
    instance_type: str = ""
    cluster_name: str = ""
    pool: str = ""
    memory: int = 0
    """GB of each GPU."""
    gpu_count: int = 0
    available_gpus: int = wire("availableGPUs", default=0)
    gpu_temp_threshold: float | None = None
    gpu_power_threshold: float | None = None
    """W at which a GPU's power counts as high."""
    cloud_provider: str = ""
    """As `region`, `cloud` and `gpu_slicing_profile`: documented, and always empty."""
    region: str = ""
    node_health: str = ""
    gpu_node_status: str = ""
    cloud: str = ""
    allocation: Items[Allocation] = wire(default=(), read=each(Allocation))
    gpu_slicing_profile: Items[GpuSlicingProfile] = wire(default=(), read=each(GpuSlicingProfile))
    devices: tuple[Mapping[str, Any], ...] = wire("devices", default=(), read=tuple, repr=False)
    """Its GPUs as its agent reported them last: serial, product, memory, driver, MIG, links, health."""
    network: Mapping[str, str] | None = wire("network", default=None, repr=False)
    """What the node shows of its network: NICs, RDMA devices and subnet, fabric, island."""

    availableGPUs = same_as("available_gpus")


class ListInventoryResponse(Items[Inventory]):
    """The nodes that requests can get, by index; `unmanaged_nodes` are shown but never allocated."""

    def __init__(self, managed: Items[Inventory], unmanaged: Items[Inventory]) -> None:
        super().__init__(managed)
        self.managed_nodes = managed
        self.unmanaged_nodes = unmanaged

    def _repr_html_(self) -> str:
        more = f"<h4>unmanaged_nodes</h4>{table(self.unmanaged_nodes)}" if self.unmanaged_nodes else ""
        return f"<h4>managed_nodes</h4>{table(self.managed_nodes)}{more}"


def read_inventory(data: Mapping[str, Any]) -> ListInventoryResponse:
    nodes = each(Inventory)
    return ListInventoryResponse(nodes(data.get("managedNodes")), nodes(data.get("unmanagedNodes")))


@record
class InventoryUsage(Record):
    """Equal nodes that a workspace may use."""

    instance_type: str = ""
    gpu_shape: str = ""
    memory_per_gpu: int = 0
    gpu_per_node: int = 0
    total_gpu_nodes: int = 0
    cluster_name: str = ""


class ListWorkspaceInventoryUsageResponse(Items[InventoryUsage]):
    """The nodes of a workspace, by index or under `workspace_inventory`."""

    @property
    def workspace_inventory(self) -> Items[InventoryUsage]:
        return self


@record
class WorkspaceNamespace(Record):
    """A namespace of a workspace, and where it is."""

    namespace: str = ""
    clusters: tuple[str, ...] = wire("clusters", default=(), read=tuple)


@record
class Workspace(Record):
    """A workspace: a slice of the repository."""

    name: str = ""
    overlay_network_deployment_mode: str = ""
    max_clusters: int = 0
    slice_description: str = ""
    clusters: tuple[str, ...] = wire("clusters", default=(), read=tuple)
    namespaces: Items[WorkspaceNamespace] = wire(default=(), read=each(WorkspaceNamespace))
    members: tuple[Any, ...] = wire("members", default=(), read=tuple)
    owners: tuple[Any, ...] = wire("owners", default=(), read=tuple)
    quota: Mapping[str, Any] | None = None
    limits: Mapping[str, Any] | None = None
    use: Mapping[str, Any] | None = None
    cost: Mapping[str, Any] | None = None
    queues: tuple[Mapping[str, Any], ...] = wire("queues", default=(), read=tuple)
    services: tuple[Mapping[str, Any], ...] = wire("services", default=(), read=tuple)
    weight: float = 1.0
    paused: bool = False


class ListWorkspacesResponse(Items[Workspace]):
    """Workspaces, by index or under `workspaces`."""

    @property
    def workspaces(self) -> Items[Workspace]:
        return self


@record
class DeleteWorkspaceResponse(Record):
    """A workspace that is deleted, or will be once the change is merged."""

    workspace_name: str = ""
    change: Change = wire(default=Change(), read=one(Change))


@record
class GlobalGPUConstraints(Record):
    """The GPUs that requests of a workspace may ask for."""

    gpu_shapes: tuple[str, ...] = wire("gpuShapes", default=(), read=tuple)
    max_gpu_per_gpr: int | None = wire("maxGPUPerGpr", default=None)
    max_memory_per_gpr: int | None = wire("maxMemoryPerGpr", default=None)

    gpuShapes = same_as("gpu_shapes")
    maxGPUPerGpr = same_as("max_gpu_per_gpr")
    maxMemoryPerGpr = same_as("max_memory_per_gpr")


@record
class WorkspacePolicy(Record):
    """A workspace's limits, with the documented names."""

    workspace_name: str = ""
    priority_range: str = wire("PriorityRange", default="")
    """low, medium or high."""
    max_priority: int | None = None
    """The exact ceiling, which may lie inside a range."""
    max_gprs: int | None = wire("maxGPRs", default=None)
    max_exit_duration_per_gpr: str = wire("maxExitDurationPerGPR", default="")
    requeue_on_failure: bool | None = wire("requeueOnFailure", default=None)
    enable_auto_eviction: bool | None = wire("enableAutoEviction", default=None)
    enforce_idle_time_out: bool | None = wire("enforceIdleTimeOut", default=None)
    global_gpu_constraints: GlobalGPUConstraints = wire(
        "globalGPUConstraints", default=GlobalGPUConstraints(), read=one(GlobalGPUConstraints)
    )

    workspaceName = same_as("workspace_name")
    PriorityRange = same_as("priority_range")
    maxGPRs = same_as("max_gprs")
    maxExitDurationPerGPR = same_as("max_exit_duration_per_gpr")
    requeueOnFailure = same_as("requeue_on_failure")
    enableAutoEviction = same_as("enable_auto_eviction")
    enforceIdleTimeOut = same_as("enforce_idle_time_out")
    globalGPUConstraints = same_as("global_gpu_constraints")


@record
class GetGprTemplateResponse(Record):
    """A template: defaults for requests that name it."""

    name: str = ""
    cluster_name: str = ""
    number_of_gpus: int = wire("numberOfGPUs", default=0)
    number_of_gpu_nodes: int = wire("numberOfGPUNodes", default=0)
    memory_per_gpu: int = wire("memoryPerGPU", default=0)
    gpu_shape: str = ""
    instance_type: str = ""
    exit_duration: str = ""
    priority: int = 0
    enforce_idle_timeout: bool = wire("enforceIdleTimeOut", default=False)
    enable_eviction: bool = False
    requeue_on_failure: bool = False
    idle_timeout_duration: str = wire("idleTimeOutDuration", default="")


@record
class BoundCluster(Record):
    """The templates of a workspace in one cluster."""

    cluster_name: str = ""
    default_template_name: str = ""
    templates: tuple[str, ...] = wire("templates", default=(), read=tuple)
    default_template_status: str = ""
    template_status: Mapping[str, str] = wire("templateStatus", default=None)

    def __getitem__(self, name: str) -> Any:
        """The same under its documented name, as in the rows of a binding: `row["clusterName"]`."""
        for field in dataclasses.fields(self):
            if wire_name(field) == name:
                return getattr(self, field.name)
        raise KeyError(name)


@record
class GprTemplateBinding(Record):
    """The templates offered to a workspace."""

    name: str = ""
    namespace: str = ""
    clusters: Items[BoundCluster] = wire(default=(), read=each(BoundCluster))
    enable_auto_gpr: bool = wire("enableAutoGpr", default=False)
