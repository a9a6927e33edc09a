"""GPU requests by what the planner may choose: the cluster, the shape, both or neither.

Held by tests/egs/test_sdk_requests.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from egs.asking.requesting import file_request
from egs.asking.wishes import Span
from egs.sessions import AuthenticatedSession
from egs.steps import Script


def request_gpu_with_auto_selection(  # noqa: PLR0913 - the vendor's signature
    *,
    request_name: str,
    workspace_name: str,
    node_count: int,
    gpu_per_node_count: int,
    memory_per_gpu: int | None,
    exit_duration: Span,
    priority: int | None,
    idle_timeout_duration: Span | None = "",
    enforce_idle_timeout: bool | None = None,
    requeue_on_failure: bool | None = None,
    enable_eviction: bool | None = None,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[str]:
    """Request GPU nodes of any shape in any cluster of the workspace; returns the id of the request.

    Example:
        >>> egs.request_gpu_with_auto_selection(
        ...     request_name="any", workspace_name="vision", node_count=1, gpu_per_node_count=1, memory_per_gpu=40,
        ...     exit_duration="1h", priority=101, authenticated_session=auth)
        'gpr-...'
    """
    said = dict(locals())
    session = said.pop("authenticated_session")
    return file_request(
        {**said, "enable_auto_cluster_selection": True, "enable_auto_gpu_selection": True}, session
    )


def request_gpu_with_auto_gpu_selection(  # noqa: PLR0913 - the vendor's signature
    *,
    request_name: str,
    workspace_name: str,
    node_count: int,
    gpu_per_node_count: int,
    memory_per_gpu: int | None,
    exit_duration: Span,
    priority: int | None,
    preferred_clusters: Sequence[str] | None,
    idle_timeout_duration: Span | None = "",
    enforce_idle_timeout: bool | None = None,
    requeue_on_failure: bool | None = None,
    enable_eviction: bool | None = None,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[str]:
    """Request GPU nodes of any shape in the named clusters; returns the id of the request.

    Example:
        >>> egs.request_gpu_with_auto_gpu_selection(
        ...     request_name="here", workspace_name="vision", node_count=1, gpu_per_node_count=1, memory_per_gpu=40,
        ...     exit_duration="1h", priority=101, preferred_clusters=["east"], authenticated_session=auth)
        'gpr-...'
    """
    said = dict(locals())
    session = said.pop("authenticated_session")
    return file_request({**said, "enable_auto_gpu_selection": True}, session)


def request_gpu_with_auto_cluster(  # noqa: PLR0913 - the vendor's signature
    *,
    request_name: str,
    workspace_name: str,
    node_count: int,
    gpu_per_node_count: int,
    memory_per_gpu: int | None,
    exit_duration: Span,
    priority: int | None,
    instance_type: str | None,
    gpu_shape: str | Sequence[str] | None,
    idle_timeout_duration: Span | None = "",
    enforce_idle_timeout: bool | None = None,
    requeue_on_failure: bool | None = None,
    enable_eviction: bool | None = None,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[str]:
    """Request GPU nodes of a shape in any cluster of the workspace; returns the id of the request.

    Example:
        >>> egs.request_gpu_with_auto_cluster(
        ...     request_name="h100", workspace_name="vision", node_count=1, gpu_per_node_count=8, memory_per_gpu=80,
        ...     exit_duration="1h", priority=101, instance_type="", gpu_shape="H100-80GB",
        ...     authenticated_session=auth)
        'gpr-...'
    """
    said = dict(locals())
    session = said.pop("authenticated_session")
    return file_request({**said, "enable_auto_cluster_selection": True}, session)


def request_gpu_with_manual_selection(  # noqa: PLR0913 - the vendor's signature
    *,
    request_name: str,
    workspace_name: str,
    node_count: int,
    gpu_per_node_count: int,
    memory_per_gpu: int | None,
    exit_duration: Span,
    priority: int | None,
    cluster_name: str | None,
    instance_type: str | None,
    gpu_shape: str | Sequence[str] | None,
    idle_timeout_duration: Span | None = "",
    enforce_idle_timeout: bool | None = None,
    requeue_on_failure: bool | None = None,
    enable_eviction: bool | None = None,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[str]:
    """Request GPU nodes of a shape in one cluster; returns the id of the request.

    Example:
        >>> egs.request_gpu_with_manual_selection(
        ...     request_name="just-so", workspace_name="vision", node_count=1, gpu_per_node_count=8,
        ...     memory_per_gpu=80, exit_duration="1h", priority=101, cluster_name="east", instance_type="",
        ...     gpu_shape="H100-80GB", authenticated_session=auth)
        'gpr-...'
    """
    said = dict(locals())
    session = said.pop("authenticated_session")
    return file_request(said, session)
