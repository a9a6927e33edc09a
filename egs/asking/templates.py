"""Request templates, the templates offered to workspaces, and workspace policies.

Held by tests/egs/test_sdk_admin.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from egs.asking.paging import pages
from egs.asking.wishes import Span, memory_gb, priority_in_range, span_text
from egs.calling import API, Ask, call
from egs.data.fleet import GetGprTemplateResponse, GprTemplateBinding, WorkspacePolicy
from egs.data.records import Change, Items, Named, each, of
from egs.exceptions import BadParameters
from egs.sessions import AuthenticatedSession
from egs.steps import Script

TEMPLATE = f"{API}/gpr-template"
BINDING = f"{API}/gpr-template-binding"
POLICY = f"{API}/workspace-policies"


def create_gpr_template(  # noqa: PLR0913 - the vendor's signature
    name: str,
    cluster_name: str | None,
    gpu_per_node_count: int,
    num_gpu_nodes: int,
    memory_per_gpu: int,
    gpu_shape: str | None,
    instance_type: str | None,
    exit_duration: Span,
    priority: int,
    enforce_idle_timeout: bool,
    enable_eviction: bool,
    requeue_on_failure: bool,
    idle_timeout_duration: Span | None = None,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[str]:
    """Make a template for requests; returns its name. Empty texts and 0 leave a field to the request.

    Raises BadParameters (a ValueError), also for an idle timeout that is enforced without a duration.

    Example:
        >>> egs.create_gpr_template("night", "east", 8, 1, 80, "H100-80GB", "", "0d8h0m", 50, False, True, True,
        ...                         None, auth)
        'night'
    """
    body = _template(dict(locals()))
    return _written("POST", TEMPLATE, body, name, authenticated_session)


def update_gpr_template(  # noqa: PLR0913 - the vendor's signature
    name: str,
    cluster_name: str | None,
    number_of_gpus: int,
    instance_type: str | None,
    exit_duration: Span,
    number_of_gpu_nodes: int,
    priority: int,
    memory_per_gpu: int,
    gpu_shape: str | None,
    enable_eviction: bool,
    requeue_on_failure: bool,
    enforce_idle_timeout: bool,
    idle_timeout_duration: Span | None = None,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[str]:
    """Change a template; existing requests keep what they took from it. Returns its name.

    Raises as `create_gpr_template` does, and ResourceNotFound.
    """
    said = dict(locals())
    said["gpu_per_node_count"] = said.pop("number_of_gpus")
    said["num_gpu_nodes"] = said.pop("number_of_gpu_nodes")
    return _written("PUT", TEMPLATE, _template(said), name, authenticated_session)


def _template(said: Mapping[str, Any]) -> dict[str, Any]:
    if said["enforce_idle_timeout"] and not said["idle_timeout_duration"]:
        raise BadParameters("an enforced idle timeout needs idle_timeout_duration: 0d0h30m for one")
    idle = said["idle_timeout_duration"]
    body = {
        "name": said["name"],
        "clusterName": said["cluster_name"],
        "numberOfGPUs": said["gpu_per_node_count"],
        "numberOfGPUNodes": said["num_gpu_nodes"],
        "memoryPerGPU": memory_gb(said["memory_per_gpu"]),
        "gpuShape": said["gpu_shape"],
        "instanceType": said["instance_type"],
        "exitDuration": span_text(said["exit_duration"]),
        "priority": priority_in_range(said["priority"]),
        "enforceIdleTimeOut": said["enforce_idle_timeout"],
        "idleTimeOutDuration": span_text(idle) if idle else None,
        "enableEviction": said["enable_eviction"],
        "requeueOnFailure": said["requeue_on_failure"],
    }
    return {name: value for name, value in body.items() if value is not None}


def _written(
    method: str, path: str, body: Mapping[str, Any], name: str, given: AuthenticatedSession | None
) -> Script[str]:
    data = yield from call(given, Ask(method, path, body=body))
    return Named(name, of(Change, data.get("change")))


def get_gpr_template(
    gpr_template_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[GetGprTemplateResponse]:
    """One template.

    Example:
        >>> egs.get_gpr_template("small", auth).gpu_shape
        'H100-80GB'
    """
    ask = Ask("GET", TEMPLATE, {"gprTemplateName": gpr_template_name})
    data = yield from call(authenticated_session, ask)
    return of(GetGprTemplateResponse, data)


def list_gpr_templates(
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[Items[GetGprTemplateResponse]]:
    """The templates visible to the caller; a list, also as `.items`.

    Example:
        >>> [template.name for template in egs.list_gpr_templates(auth).items]
        [...'small'...]
    """
    rows = yield from pages(authenticated_session, f"{TEMPLATE}/list", {})
    return each(GetGprTemplateResponse)(rows)


def delete_gpr_template(
    gpr_template_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[str]:
    """Delete a template; returns its name. Requests that used it stay as they are."""
    ask = Ask("DELETE", TEMPLATE, {"gprTemplateName": gpr_template_name})
    data = yield from call(authenticated_session, ask)
    return Named(gpr_template_name, of(Change, data.get("change")))


def create_gpr_template_binding(
    workspace_name: str,
    clusters: Sequence[Mapping[str, Any]],
    enable_auto_gpr: bool,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[str]:
    """Offer templates to a workspace: `clusters=[{"clusterName", "defaultTemplateName", "templates": [...]}]`.

    Returns the binding's name, which is the workspace's. `enable_auto_gpr=True` is refused: requests need an author.

    Example:
        >>> offered = [{"clusterName": "east", "defaultTemplateName": "small", "templates": ["small"]}]
        >>> egs.create_gpr_template_binding("vision", offered, False, auth)
        'vision'
    """
    return _bound("POST", workspace_name, clusters, enable_auto_gpr, authenticated_session)


def update_gpr_template_binding(
    workspace_name: str,
    clusters: Sequence[Mapping[str, Any]],
    enable_auto_gpr: bool,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[str]:
    """Replace the templates offered to a workspace. As `create_gpr_template_binding`."""
    return _bound("PUT", workspace_name, clusters, enable_auto_gpr, authenticated_session)


def _bound(
    method: str,
    workspace_name: str,
    clusters: Sequence[Mapping[str, Any]],
    enable_auto_gpr: bool,
    given: AuthenticatedSession | None,
) -> Script[str]:
    rows = [dict(cluster) for cluster in clusters]
    body = {"workspaceName": workspace_name, "clusters": rows, "enableAutoGpr": enable_auto_gpr}
    return (yield from _written(method, BINDING, body, workspace_name, given))


def get_gpr_template_binding(
    binding_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[GprTemplateBinding]:
    """The templates offered to a workspace, and whether each exists; named after the workspace."""
    data = yield from call(authenticated_session, Ask("GET", BINDING, {"bindingName": binding_name}))
    return of(GprTemplateBinding, data)


def list_gpr_template_bindings(
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[Items[GprTemplateBinding]]:
    """The templates offered to the workspaces that the caller may see."""
    rows = yield from pages(authenticated_session, f"{BINDING}/list", {})
    return each(GprTemplateBinding)(rows)


def delete_gpr_template_binding(
    binding_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[str]:
    """Offer all templates to a workspace again; returns the binding's name."""
    data = yield from call(authenticated_session, Ask("DELETE", BINDING, {"bindingName": binding_name}))
    return Named(binding_name, of(Change, data.get("change")))


def list_workspace_policies(
    *, authenticated_session: AuthenticatedSession | None = None
) -> Script[Items[WorkspacePolicy]]:
    """The limits of the workspaces that the caller may see.

    Example:
        >>> [policy.workspace_name for policy in egs.list_workspace_policies(authenticated_session=auth)]
        [...'vision'...]
    """
    rows = yield from pages(authenticated_session, POLICY, {})
    return each(WorkspacePolicy)(rows)


def get_workspace_policy(
    *, policy_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[WorkspacePolicy]:
    """The limits of a workspace; named after the workspace. Raises ResourceNotFound.

    Example:
        >>> egs.get_workspace_policy(policy_name="vision", authenticated_session=auth).priority_range
        'high'
    """
    data = yield from call(authenticated_session, Ask("GET", f"{POLICY}/{segment(policy_name)}"))
    return of(WorkspacePolicy, data)


def update_workspace_policy(  # noqa: PLR0913 - the vendor's signature
    *,
    policy_name: str,
    priorityRange: str | None = None,  # noqa: N803 - the vendor's names
    maxGPRs: int | None = None,  # noqa: N803
    maxExitDurationPerGPR: str | None = None,  # noqa: N803
    enforceIdleTimeOut: bool | None = None,  # noqa: N803
    requeueOnFailure: bool | None = None,  # noqa: N803
    enableAutoEviction: bool | None = None,  # noqa: N803
    gpuShapes: Sequence[str] | None = None,  # noqa: N803
    maxGpuPerGpr: int | None = None,  # noqa: N803
    maxMemoryPerGpr: int | None = None,  # noqa: N803
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[Change]:
    """Change the limits of a workspace; None keeps one as it is.

    Raises ResourceNotFound, and BadParameters also for what the project decides instead of the workspace.

    Example:
        >>> egs.update_workspace_policy(policy_name="vision", maxGpuPerGpr=16, authenticated_session=auth).way
        'pushed'
    """
    said = dict(locals())
    session = said.pop("authenticated_session")
    name = said.pop("policy_name")
    body = {field: value for field, value in said.items() if value is not None}
    data = yield from call(session, Ask("PUT", f"{POLICY}/{segment(name)}", body=body))
    return of(Change, data.get("change"))


def segment(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe="")
