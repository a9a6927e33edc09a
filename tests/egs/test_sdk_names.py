"""The names, orders and defaults of the documented interface, and that both faces have the same. K1, K2."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import egs
from egs import aio

S = "authenticated_session=None"
TEN = (
    "request_name, workspace_name, cluster_name, node_count, gpu_per_node_count, memory_per_gpu, instance_type, "
    "gpu_shape, exit_duration, priority"
)
TEMPLATE = (
    "name, cluster_name, gpu_per_node_count, num_gpu_nodes, memory_per_gpu, gpu_shape, instance_type, exit_duration, "
    "priority, enforce_idle_timeout, enable_eviction, requeue_on_failure, idle_timeout_duration=None"
)
UPDATED = (
    "name, cluster_name, number_of_gpus, instance_type, exit_duration, number_of_gpu_nodes, priority, memory_per_gpu, "
    "gpu_shape, enable_eviction, requeue_on_failure, enforce_idle_timeout, idle_timeout_duration=None"
)
POSITIONAL = {
    "authenticate": "endpoint, api_key=None, sdk_default=False",
    "inventory": S,
    "create_workspace": f"workspace_name, clusters, namespaces, username, email, {S}",
    "request_gpu": f"{TEN}, {S}",
    "cancel_gpu_request": f"request_id, {S}",
    "update_gpu_request_priority": f"request_id, new_prority=None, {S}",
    "update_gpu_request_name": f"request_id, new_name, {S}",
    "release_gpu": f"request_id, {S}",
    "gpu_request_status": f"request_id, {S}",
    "gpu_request_status_for_workspace": f"workspace_name, {S}",
    "workspace_inventory": f"workspace_name, {S}",
    "delete_workspace": f"workspace_name, {S}",
    "list_workspaces": S,
    "get_workspace_kubeconfig": f"workspace_name, cluster_name, {S}",
    "update_workspace": f"workspace_name, clusters=None, namespaces=None, {S}",
    "detach_cluster_from_workspace": f"workspace_name, cluster_name, {S}",
    "create_api_key": f"name, role, validity, username='admin', description='', workspace_name=None, {S}",
    "delete_api_key": f"api_key=None, {S}",
    "list_api_keys": f"workspace_name=None, {S}",
    "create_gpr_template": f"{TEMPLATE}, {S}",
    "get_gpr_template": f"gpr_template_name, {S}",
    "list_gpr_templates": S,
    "update_gpr_template": f"{UPDATED}, {S}",
    "delete_gpr_template": f"gpr_template_name, {S}",
    "create_gpr_template_binding": f"workspace_name, clusters, enable_auto_gpr, {S}",
    "update_gpr_template_binding": f"workspace_name, clusters, enable_auto_gpr, {S}",
    "get_gpr_template_binding": f"binding_name, {S}",
    "list_gpr_template_bindings": S,
    "delete_gpr_template_binding": f"binding_name, {S}",
    "create_workload_placement_from_manifest": f"workspace_name, workload_name, cluster_names, manifest, {S}",
    "get_workload_placement": f"workload_name, {S}",
    "list_workload_placements": S,
    "list_workload_placements_by_workspace": f"workspace_name, {S}",
    "delete_workload_placement": f"workload_name, {S}",
    "list_inference_endpoint": f"workspace_name, {S}",
    "describe_inference_endpoint": f"workspace_name, endpoint_name, cluster_name, {S}",
}
"""Positional parameters that come first, in the documented order, with their defaults."""
AUTO = (
    "request_name workspace_name node_count gpu_per_node_count memory_per_gpu exit_duration priority "
    "idle_timeout_duration enforce_idle_timeout requeue_on_failure enable_eviction authenticated_session"
)
BY_KEYWORD = {
    "request_gpu_with_auto_selection": AUTO,
    "request_gpu_with_auto_gpu_selection": f"{AUTO} preferred_clusters",
    "request_gpu_with_auto_cluster": f"{AUTO} instance_type gpu_shape",
    "request_gpu_with_manual_selection": f"{AUTO} cluster_name instance_type gpu_shape",
    "create_owner_api_key": "egs_endpoint egs_token name username validity description",
    "list_workspace_policies": "authenticated_session",
    "get_workspace_policy": "policy_name authenticated_session",
    "update_workspace_policy": "policy_name priorityRange maxGPRs maxExitDurationPerGPR enforceIdleTimeOut "
    "requeueOnFailure enableAutoEviction gpuShapes maxGpuPerGpr maxMemoryPerGpr authenticated_session",
}
EXCEPTIONS = """
    EgsApplicationException Unauthorized GpuAlreadyProvisioned GpuAlreadyReleased ApiKeyExpired ApiKeyInvalid
    ApiKeyNotFound ServerUnreachable WorkspaceAlreadyExists BadParameters ResourceNotFound UnhandledException
"""
FACES = {"egs": egs, "egs.aio": aio}
SCRIPTS = [name for name in aio.__all__ if not name.endswith("_session")]


def _shown(parameter):
    empty = parameter.default is inspect.Parameter.empty
    return parameter.name if empty else f"{parameter.name}={parameter.default!r}"


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("name", POSITIONAL)
def test_positional_order_and_defaults(name, face):
    want = POSITIONAL[name].split(", ")
    found = inspect.signature(getattr(FACES[face], name)).parameters.values()
    positional = [_shown(p) for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional[: len(want)] == want


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("name", BY_KEYWORD)
def test_by_keyword_alone(name, face):
    found = inspect.signature(getattr(FACES[face], name)).parameters.values()
    assert {p.kind for p in found} == {inspect.Parameter.KEYWORD_ONLY}
    assert {p.name for p in found} == set(BY_KEYWORD[name].split())


def test_both_faces_have_the_same_names_and_arguments():
    for name in SCRIPTS:
        mine, other = (inspect.signature(getattr(face, name)) for face in FACES.values())
        assert mine.parameters == other.parameters, name
        assert getattr(egs, name).__doc__ == getattr(aio, name).__doc__
    assert set(aio.__all__) <= set(egs.__all__)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_function_says_what_it_does_and_what_it_gives(name):
    function = getattr(egs, name)
    assert function.__doc__
    assert "Script" not in str(inspect.signature(function))
    assert "Feed" not in str(inspect.signature(function))


@pytest.mark.parametrize("name", EXCEPTIONS.split())
def test_exceptions(name):
    assert issubclass(getattr(egs.exceptions, name), egs.exceptions.EgsApplicationException)


def test_the_keyword_with_the_typing_error_and_without():
    parameters = inspect.signature(egs.update_gpu_request_priority).parameters
    assert {"new_prority", "new_priority"} <= set(parameters)


def test_every_name_is_there_and_shown():
    assert set(egs.__all__) <= set(dir(egs))
    for name in egs.__all__:
        assert getattr(egs, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = egs.no_such_name


def test_importing_loads_nothing_that_is_heavy():
    """`import egs` is a part of every command's start."""
    code = "import sys, egs, egs.cli; print({'httpx', 'rich', 'yaml', 'pydantic', 'ssl'} & set(sys.modules))"
    got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert got.stdout.strip() == "set()"
