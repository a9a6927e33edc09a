"""Share GPU nodes from a program: ask when nodes are free, request them, follow the request, read what it cost.

    import egs

    auth = egs.authenticate("https://egs.example.com", api_key)
    request_id = egs.request_gpu("train", "vision", "east", 1, 8, 80, "", "H100-80GB", "0d6h0m", 150, auth)
    egs.wait_for(request_id, "Provisioned", authenticated_session=auth)

`egs.aio` has the same names as coroutines, `egs.exceptions` the exceptions; docs/reference/sdk.md has the rest. The
command `egs` is in `egs.cli`.

Names are loaded when first used: `import egs` alone loads neither httpx nor any other module of this package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from egs import aio, exceptions
    from egs.calls import *
    from egs.connection import *
    from egs.data.endpoints import *
    from egs.data.fleet import *
    from egs.data.gpr import *
    from egs.data.jobs import *
    from egs.data.records import *
    from egs.data.running import *
    from egs.exceptions import *
    from egs.sessions import *

__all__ = [
    "Alert",
    "Allocation",
    "ApprovalRow",
    "AuthenticatedSession",
    "Change",
    "DeleteWorkspaceResponse",
    "DeployedJob",
    "Diagnosis",
    "EgsApplicationException",
    "EndpointVersion",
    "EndpointWeights",
    "EventRow",
    "FiledEndpoint",
    "Finding",
    "FreeNodes",
    "GetGprTemplateResponse",
    "GprTemplateBinding",
    "Gpu",
    "GpuRequestData",
    "GpuRequestStatus",
    "GpuSlicingProfile",
    "InferenceEndpoint",
    "Inventory",
    "InventoryUsage",
    "Items",
    "Job",
    "JobObject",
    "ListInferenceEndpointsResponse",
    "ListInventoryResponse",
    "ListWorkspaceInventoryUsageResponse",
    "ListWorkspacesResponse",
    "Patience",
    "QueueRow",
    "RequestUsage",
    "Usage",
    "Values",
    "WaitTime",
    "WhatIf",
    "Why",
    "Workload",
    "WorkloadPod",
    "Workspace",
    "WorkspacePolicy",
    "advise",
    "aio",
    "alerts",
    "approvals",
    "approve",
    "authenticate",
    "blame",
    "calendar",
    "cancel_gpu_request",
    "clear_node",
    "create_api_key",
    "create_endpoint",
    "create_gpr_template",
    "create_gpr_template_binding",
    "create_owner_api_key",
    "create_workload_placement_from_manifest",
    "create_workspace",
    "delete_api_key",
    "delete_gpr_template",
    "delete_gpr_template_binding",
    "delete_job",
    "delete_workload_placement",
    "delete_workspace",
    "deploy_job",
    "describe_inference_endpoint",
    "detach_cluster_from_workspace",
    "diagnose",
    "difference",
    "endpoint",
    "endpoints",
    "events",
    "exceptions",
    "extend",
    "free_nodes",
    "get_authenticated_session",
    "get_global_session",
    "get_gpr_template",
    "get_gpr_template_binding",
    "get_workload_placement",
    "get_workspace",
    "get_workspace_kubeconfig",
    "get_workspace_policy",
    "gpu_request_status",
    "gpu_request_status_for_workspace",
    "gpu_values",
    "gpus",
    "insights",
    "inventory",
    "job",
    "jobs",
    "list_api_keys",
    "list_gpr_template_bindings",
    "list_gpr_templates",
    "list_inference_endpoint",
    "list_workload_placements",
    "list_workload_placements_by_workspace",
    "list_workspace_policies",
    "list_workspaces",
    "move_gpu_request",
    "plan_maintenance",
    "problems",
    "promises",
    "promote_endpoint",
    "queue",
    "reject",
    "release_gpu",
    "remove_maintenance",
    "request_gpu",
    "request_gpu_with_auto_cluster",
    "request_gpu_with_auto_gpu_selection",
    "request_gpu_with_auto_selection",
    "request_gpu_with_manual_selection",
    "request_usage",
    "restore_gpu_request",
    "resume_gpu_request",
    "roll_back_endpoint",
    "schedule",
    "show_undo",
    "stop_gpu_request",
    "undo",
    "update_global_session",
    "update_gpr_template",
    "update_gpr_template_binding",
    "update_gpu_request",
    "update_gpu_request_name",
    "update_gpu_request_priority",
    "update_workspace",
    "update_workspace_policy",
    "usage",
    "wait_for",
    "wait_time",
    "watch",
    "watch_events",
    "what_if",
    "why",
    "workload",
    "workload_pods",
    "workloads",
    "workspace_inventory",
    "write_status",
]  # fmt: skip

_MODULES = ("aio", "exceptions")
_PLACES = (
    "exceptions",
    "connection",
    "sessions",
    "data.records",
    "data.gpr",
    "data.fleet",
    "data.jobs",
    "data.running",
    "data.endpoints",
    "calls",
)
"""Modules that define the names; the last one also loads httpx."""


def __getattr__(name: str) -> Any:
    """Load the name and keep it in the module, so that this runs once per name."""
    if name in _MODULES:
        return importlib.import_module(f"egs.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'egs' has no attribute {name!r}")
    modules = (importlib.import_module(f"egs.{place}") for place in _PLACES)
    globals()[name] = value = next(getattr(module, name) for module in modules if hasattr(module, name))
    return value


def __dir__() -> list[str]:
    """The public names, for editors and notebooks; anything else may change."""
    return sorted(__all__)
