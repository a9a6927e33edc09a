"""The functions of `egs` as coroutines: the same names, arguments, results and exceptions.

    from egs import aio

    auth = await aio.authenticate("https://egs.example.com", api_key)
    async for request in aio.watch(request_id, authenticated_session=auth):
        print(request.phase)

A session works for both: the result of `egs.authenticate` can be used here, and the default session is shared.
"""

from __future__ import annotations

from egs.aio.functions import coroutine, iterating
from egs.asking import choosing, fleet, following, keys, login, looking, requesting, running, templates
from egs.asking import endpoints as served
from egs.asking import jobs as workloads_filed
from egs.sessions import get_authenticated_session, get_global_session, update_global_session

__all__ = [
    "advise", "alerts", "approvals", "approve", "authenticate", "blame", "calendar", "cancel_gpu_request",
    "clear_node", "create_api_key", "create_endpoint", "create_gpr_template", "create_gpr_template_binding",
    "create_owner_api_key",
    "create_workload_placement_from_manifest", "create_workspace", "delete_api_key", "delete_gpr_template",
    "delete_gpr_template_binding", "delete_job", "delete_workload_placement", "delete_workspace", "deploy_job",
    "describe_inference_endpoint", "detach_cluster_from_workspace", "diagnose", "difference", "endpoint", "endpoints",
    "events", "extend", "free_nodes", "get_authenticated_session", "get_global_session", "get_gpr_template",
    "get_gpr_template_binding", "get_workload_placement", "get_workspace", "get_workspace_kubeconfig",
    "get_workspace_policy", "gpu_request_status", "gpu_request_status_for_workspace", "gpu_values", "gpus", "insights",
    "inventory", "job", "jobs", "list_api_keys", "list_gpr_template_bindings", "list_gpr_templates",
    "list_inference_endpoint", "list_workload_placements", "list_workload_placements_by_workspace",
    "list_workspace_policies", "list_workspaces", "move_gpu_request", "plan_maintenance", "problems", "promises",
    "promote_endpoint", "queue", "reject", "release_gpu", "remove_maintenance", "request_gpu",
    "request_gpu_with_auto_cluster", "request_gpu_with_auto_gpu_selection", "request_gpu_with_auto_selection",
    "request_gpu_with_manual_selection", "request_usage", "restore_gpu_request", "resume_gpu_request",
    "roll_back_endpoint", "schedule", "show_undo", "stop_gpu_request", "undo", "update_global_session",
    "update_gpr_template", "update_gpr_template_binding", "update_gpu_request", "update_gpu_request_name",
    "update_gpu_request_priority", "update_workspace", "update_workspace_policy", "usage", "wait_for", "wait_time",
    "watch", "watch_events", "what_if", "why", "workload", "workload_pods", "workloads", "workspace_inventory",
    "write_status",
]  # fmt: skip

authenticate = coroutine(login.authenticate)
request_gpu = coroutine(requesting.request_gpu)
request_gpu_with_auto_selection = coroutine(choosing.request_gpu_with_auto_selection)
request_gpu_with_auto_gpu_selection = coroutine(choosing.request_gpu_with_auto_gpu_selection)
request_gpu_with_auto_cluster = coroutine(choosing.request_gpu_with_auto_cluster)
request_gpu_with_manual_selection = coroutine(choosing.request_gpu_with_manual_selection)
cancel_gpu_request = coroutine(requesting.cancel_gpu_request)
update_gpu_request_priority = coroutine(requesting.update_gpu_request_priority)
update_gpu_request_name = coroutine(requesting.update_gpu_request_name)
update_gpu_request = coroutine(requesting.update_gpu_request)
release_gpu = coroutine(requesting.release_gpu)
extend = coroutine(requesting.extend)
stop_gpu_request = coroutine(requesting.stop_gpu_request)
restore_gpu_request = coroutine(requesting.restore_gpu_request)
move_gpu_request = coroutine(requesting.move_gpu_request)
resume_gpu_request = coroutine(requesting.resume_gpu_request)
gpu_request_status = coroutine(requesting.gpu_request_status)
gpu_request_status_for_workspace = coroutine(requesting.gpu_request_status_for_workspace)
wait_for = coroutine(following.wait_for)
wait_time = coroutine(looking.wait_time)
queue = coroutine(looking.queue)
why = coroutine(looking.why)
what_if = coroutine(looking.what_if)
events = coroutine(looking.events)
insights = coroutine(looking.insights)
advise = coroutine(looking.advise)
promises = coroutine(looking.promises)
blame = coroutine(looking.blame)
difference = coroutine(looking.difference)
show_undo = coroutine(looking.show_undo)
undo = coroutine(looking.undo)
workloads = coroutine(looking.workloads)
workload = coroutine(running.workload)
workload_pods = coroutine(running.workload_pods)
deploy_job = coroutine(workloads_filed.deploy_job)
jobs = coroutine(workloads_filed.jobs)
job = coroutine(workloads_filed.job)
delete_job = coroutine(workloads_filed.delete_job)
create_workload_placement_from_manifest = coroutine(workloads_filed.create_workload_placement_from_manifest)
get_workload_placement = coroutine(workloads_filed.get_workload_placement)
list_workload_placements = coroutine(workloads_filed.list_workload_placements)
list_workload_placements_by_workspace = coroutine(workloads_filed.list_workload_placements_by_workspace)
delete_workload_placement = coroutine(workloads_filed.delete_workload_placement)
endpoints = coroutine(served.endpoints)
endpoint = coroutine(served.endpoint)
create_endpoint = coroutine(served.create_endpoint)
promote_endpoint = coroutine(served.promote_endpoint)
roll_back_endpoint = coroutine(served.roll_back_endpoint)
list_inference_endpoint = coroutine(served.list_inference_endpoint)
describe_inference_endpoint = coroutine(served.describe_inference_endpoint)
gpus = coroutine(running.gpus)
alerts = coroutine(running.alerts)
gpu_values = coroutine(running.gpu_values)
diagnose = coroutine(running.diagnose)
free_nodes = coroutine(running.free_nodes)
schedule = coroutine(looking.schedule)
calendar = coroutine(looking.calendar)
usage = coroutine(looking.usage)
request_usage = coroutine(looking.request_usage)
problems = coroutine(looking.problems)
write_status = coroutine(looking.write_status)
approvals = coroutine(looking.approvals)
approve = coroutine(looking.approve)
reject = coroutine(looking.reject)
inventory = coroutine(fleet.inventory)
workspace_inventory = coroutine(fleet.workspace_inventory)
clear_node = coroutine(fleet.clear_node)
plan_maintenance = coroutine(fleet.plan_maintenance)
remove_maintenance = coroutine(fleet.remove_maintenance)
create_workspace = coroutine(fleet.create_workspace)
update_workspace = coroutine(fleet.update_workspace)
detach_cluster_from_workspace = coroutine(fleet.detach_cluster_from_workspace)
delete_workspace = coroutine(fleet.delete_workspace)
list_workspaces = coroutine(fleet.list_workspaces)
get_workspace = coroutine(fleet.get_workspace)
get_workspace_kubeconfig = coroutine(fleet.get_workspace_kubeconfig)
create_api_key = coroutine(keys.create_api_key)
create_owner_api_key = coroutine(keys.create_owner_api_key)
delete_api_key = coroutine(keys.delete_api_key)
list_api_keys = coroutine(keys.list_api_keys)
create_gpr_template = coroutine(templates.create_gpr_template)
update_gpr_template = coroutine(templates.update_gpr_template)
get_gpr_template = coroutine(templates.get_gpr_template)
list_gpr_templates = coroutine(templates.list_gpr_templates)
delete_gpr_template = coroutine(templates.delete_gpr_template)
create_gpr_template_binding = coroutine(templates.create_gpr_template_binding)
update_gpr_template_binding = coroutine(templates.update_gpr_template_binding)
get_gpr_template_binding = coroutine(templates.get_gpr_template_binding)
list_gpr_template_bindings = coroutine(templates.list_gpr_template_bindings)
delete_gpr_template_binding = coroutine(templates.delete_gpr_template_binding)
list_workspace_policies = coroutine(templates.list_workspace_policies)
get_workspace_policy = coroutine(templates.get_workspace_policy)
update_workspace_policy = coroutine(templates.update_workspace_policy)
watch = iterating(following.watch)
watch_events = iterating(following.watch_events)


def __dir__() -> list[str]:
    """The public interface."""
    return sorted(__all__)
