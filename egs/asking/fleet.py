"""Nodes and workspaces.

Held by tests/egs/test_sdk_admin.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack

from egs.asking.wishes import Span, instant_text, span_text
from egs.calling import API, Ask, call
from egs.data.fleet import (
    DeleteWorkspaceResponse,
    InventoryUsage,
    ListInventoryResponse,
    ListWorkspaceInventoryUsageResponse,
    ListWorkspacesResponse,
    Workspace,
    read_inventory,
)
from egs.data.records import Change, Named, of
from egs.sessions import AuthenticatedSession
from egs.steps import Script

WORKSPACE = f"{API}/slice-workspace"


class WorkspaceMore(TypedDict, total=False):
    """Further keywords of `create_workspace`, under their names on the wire."""

    description: str
    members: Sequence[str]
    quotaGPUs: int | None
    maxClusters: int | None


def inventory(
    authenticated_session: AuthenticatedSession | None = None, session: AuthenticatedSession | None = None
) -> Script[ListInventoryResponse]:
    """The GPU nodes that the caller's workspaces may use. `inventory(auth)` and `inventory(None, auth)` are the same.

    Index and list give the managed nodes, which requests can get; also as `.managed_nodes` and `.unmanaged_nodes`.

    Example:
        >>> nodes = egs.inventory(None, auth)
        >>> nodes[0].gpu_shape, nodes[0].cluster_name
        ('H100-80GB', 'east')
        >>> len(nodes.managed_nodes), len(nodes.unmanaged_nodes)
        (6, 0)
    """
    data = yield from call(authenticated_session or session, Ask("GET", f"{API}/inventory/list"))
    return read_inventory(data)


def workspace_inventory(
    workspace_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[ListWorkspaceInventoryUsageResponse]:
    """The nodes that a workspace may use, equal ones counted together.

    Example:
        >>> egs.workspace_inventory("vision", auth)[0].total_gpu_nodes
        4
    """
    ask = Ask("GET", f"{API}/inventory", {"sliceName": workspace_name})
    data = yield from call(authenticated_session, ask)
    rows = data.get("workspaceInventory") or ()
    return ListWorkspaceInventoryUsageResponse(of(InventoryUsage, row) for row in rows)


def clear_node(
    cluster_name: str, node_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[str]:
    """Say that a node is repaired: earlier faults no longer count. Admins only; returns the cluster's name.

    Example:
        >>> egs.clear_node("east", "h100-1", auth)
        'east'
    """
    body = {"clusterName": cluster_name, "nodeName": node_name}
    data = yield from call(authenticated_session, Ask("POST", f"{API}/inventory/clear", body=body))
    return Named(cluster_name, of(Change, data.get("change")))


class WindowMore(TypedDict, total=False):
    """Further keywords of maintenance windows."""

    pools: Sequence[str]
    nodes: Sequence[str]
    every: Span | None
    until: datetime | str | None
    reason: str


def plan_maintenance(
    cluster_name: str,
    begin: datetime | str,
    end: datetime | str,
    authenticated_session: AuthenticatedSession | None = None,
    **more: Unpack[WindowMore],
) -> Script[str]:
    """Plan a time without nodes: of the whole cluster, unless `pools` or `nodes` name some. Admins only.

    It cuts no running lease short; waiting requests are planned around it. Returns the cluster's name.

    Example:
        >>> egs.plan_maintenance("east", "2099-12-01T06:00:00Z", "2099-12-01T08:00:00Z", auth, reason="new switches")
        'east'
    """
    return _window("POST", cluster_name, (begin, end), more, authenticated_session)


def remove_maintenance(
    cluster_name: str,
    begin: datetime | str,
    end: datetime | str,
    authenticated_session: AuthenticatedSession | None = None,
    **more: Unpack[WindowMore],
) -> Script[str]:
    """Remove the window that has exactly these fields. Admins only; returns the cluster's name.

    Example:
        >>> egs.remove_maintenance("east", "2099-12-01T06:00:00Z", "2099-12-01T08:00:00Z", auth, reason="new switches")
        'east'
    """
    return _window("DELETE", cluster_name, (begin, end), more, authenticated_session)


def _window(
    method: str,
    cluster: str,
    span: tuple[datetime | str, datetime | str],
    more: WindowMore,
    given: AuthenticatedSession | None,
) -> Script[str]:
    every = more.get("every")
    body: dict[str, Any] = {
        "clusterName": cluster,
        "begin": instant_text(span[0]),
        "end": instant_text(span[1]),
        "pools": list(more.get("pools", ())),
        "nodes": list(more.get("nodes", ())),
        "every": None if every is None else span_text(every),
        "until": instant_text(more.get("until")),
        "reason": more.get("reason", ""),
    }
    data = yield from call(given, Ask(method, f"{API}/inventory/maintenance", body=body))
    return Named(cluster, of(Change, data.get("change")))


def create_workspace(
    workspace_name: str,
    clusters: Sequence[str],
    namespaces: Sequence[str],
    username: str,
    email: str,
    authenticated_session: AuthenticatedSession | None = None,
    **more: Unpack[WorkspaceMore],
) -> Script[str]:
    """Make a workspace, or request one if the caller is not an admin; returns its name.

    The name is a string with `.change`: where the change is now. `username` and `email` name the owner.
    Further keywords: `description`, `members`, `quotaGPUs`, `maxClusters`.

    Raises:
        WorkspaceAlreadyExists: a workspace with this name exists.
        BadParameters: an argument is not valid; the message says what would be.
        Unauthorized: the caller may not do this.

    Example:
        >>> egs.create_workspace("speech", ["east"], ["speech-dev"], "Cy", "cy@example.com", auth)
        'speech'
    """
    body = {
        "workspaceName": workspace_name,
        "clusters": list(clusters),
        "namespaces": list(namespaces),
        "username": username,
        "email": email,
        **more,
    }
    data = yield from call(authenticated_session, Ask("POST", WORKSPACE, body=body))
    return Named(data.get("workspaceName") or workspace_name, of(Change, data.get("change")))


def update_workspace(
    workspace_name: str,
    clusters: Sequence[str] | None = None,
    namespaces: Sequence[str] | None = None,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[str]:
    """Change a workspace's clusters or namespaces; None keeps the current ones. Returns its name.

    Raises ResourceNotFound (a ValueError) and BadParameters.

    Example:
        >>> egs.update_workspace("vision", clusters=["east"], authenticated_session=auth)
        'vision'
    """
    body: dict[str, Any] = {"workspaceName": workspace_name}
    body |= {} if clusters is None else {"clusters": list(clusters)}
    body |= {} if namespaces is None else {"namespaces": list(namespaces)}
    data = yield from call(authenticated_session, Ask("PUT", WORKSPACE, body=body))
    return Named(data.get("workspaceName") or workspace_name, of(Change, data.get("change")))


def detach_cluster_from_workspace(
    workspace_name: str, cluster_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[str]:
    """Remove a cluster from a workspace; returns the workspace's name.

    Raises ResourceNotFound or BadParameters, both ValueErrors: it does not span the cluster, or it is the last one.

    Example:
        >>> egs.detach_cluster_from_workspace("vision", "west", auth)
        'vision'
    """
    body = {"workspaceName": workspace_name, "clusterName": cluster_name}
    data = yield from call(authenticated_session, Ask("POST", f"{WORKSPACE}/detach", body=body))
    return Named(data.get("workspaceName") or workspace_name, of(Change, data.get("change")))


def delete_workspace(
    workspace_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[DeleteWorkspaceResponse]:
    """Delete a workspace with its namespaces and their content. Raises Conflict while one of its requests is not over.

    Example:
        >>> egs.delete_workspace("nlp", auth).workspace_name
        'nlp'
    """
    data = yield from call(authenticated_session, Ask("DELETE", WORKSPACE, {"workspaceName": workspace_name}))
    return of(DeleteWorkspaceResponse, {"workspaceName": workspace_name, **(data or {})})


def list_workspaces(
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[ListWorkspacesResponse]:
    """The workspaces that the caller may see.

    Example:
        >>> [workspace.name for workspace in egs.list_workspaces(auth).workspaces]
        [...'vision'...]
    """
    data = yield from call(authenticated_session, Ask("GET", f"{WORKSPACE}/list"))
    rows = data.get("workspaces") or data.get("items") or ()
    return ListWorkspacesResponse(of(Workspace, row) for row in rows)


def get_workspace(
    workspace_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[Workspace]:
    """One workspace.

    Example:
        >>> egs.get_workspace("vision", auth).name
        'vision'
    """
    data = yield from call(authenticated_session, Ask("GET", WORKSPACE, {"workspaceName": workspace_name}))
    return of(Workspace, data)


def get_workspace_kubeconfig(
    workspace_name: str, cluster_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[str]:
    """A kubeconfig for the workspace's namespaces in a cluster, as YAML, with a short-lived token.

    Raises BadParameters for a simulated cluster, ResourceNotFound for one that the workspace does not span.
    """
    body = {"workspaceName": workspace_name, "clusterName": cluster_name}
    data = yield from call(authenticated_session, Ask("POST", f"{WORKSPACE}/kube-config", body=body))
    return str(data["kubeConfig"])
