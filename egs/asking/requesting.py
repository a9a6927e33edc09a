"""GPU requests: file, change, end and read them.

Held by tests/egs/test_sdk_requests.py and tests/egs/test_seed_examples.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Literal, Unpack, overload

from egs.arguments import check
from egs.asking.paging import pages
from egs.asking.wishes import More, RequestFields, Span, gpr_body, priority_in_range, span_text
from egs.calling import API, Ask, call
from egs.data.gpr import GpuRequestData, read_gpr
from egs.data.records import Change, Items, Named, each, of
from egs.exceptions import Conflict, GpuAlreadyProvisioned, NotProvisioned
from egs.sessions import AuthenticatedSession
from egs.steps import Script

GPR = f"{API}/gpr"
UNCHANGED = "Unchanged"
"""The server's key for a request that is already as wanted; the call then succeeds."""


@overload
def request_gpu(  # the documented signature
    request_name: str,
    workspace_name: str,
    cluster_name: str,
    node_count: int,
    gpu_per_node_count: int,
    memory_per_gpu: int,
    instance_type: str,
    gpu_shape: str | Sequence[str],
    exit_duration: Span,
    priority: int,
    authenticated_session: AuthenticatedSession | None = None,
    **more: Unpack[More],
) -> Script[str]: ...
@overload
def request_gpu(  # a documented signature
    request_name: str,
    workspace_name: str,
    cluster_name: str,
    node_count: int,
    gpu_per_node_count: int,
    memory_per_gpu: int,
    instance_type: str,
    gpu_shape: str | Sequence[str],
    exit_duration: Span,
    priority: int,
    idle_timeout_duration: Span,
    enforce_idle_timeout: bool,
    enable_eviction: bool | None = None,
    requeue_on_failure: bool | None = None,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[str]: ...
@overload
def request_gpu(  # a documented signature
    *,
    request_name: str,
    workspace_name: str,
    node_count: int,
    gpu_per_node_count: int,
    exit_duration: Span,
    memory_per_gpu: int = 0,
    priority: int = 101,
    cluster_name: str = "",
    instance_type: str = "",
    gpu_shape: str | Sequence[str] = "",
    authenticated_session: AuthenticatedSession | None = None,
    **more: Unpack[More],
) -> Script[str]: ...
def request_gpu(*args: Any, **kwargs: Any) -> Any:
    """Request GPU nodes; returns the id of the request.

    Positional as documented: `request_name, workspace_name, cluster_name, node_count, gpu_per_node_count,
    memory_per_gpu, instance_type, gpu_shape, exit_duration, priority, authenticated_session=None`; with
    `idle_timeout_duration, enforce_idle_timeout, enable_eviction, requeue_on_failure` before the session; or by
    keywords, where cluster, machine type, shape, memory and priority may be left out.

    `memory_per_gpu` is in GB, and above 4096 in MiB. `priority` is low 1-100, medium 101-200, high 201-300; a higher
    value is set to 300 with a `PriorityClamped` warning. Further keywords: `preferred_clusters`, `enable_rdma`,
    `enable_secondary_network`, `template_name`, `not_before`, `start`, `prefer`, `max_wait`, `model`, `name`.

    The id is a string with `.change`: where the request is now (on main, or proposed for merging).

    Raises:
        Unauthorized: the caller may not file requests for that workspace.
        BadParameters: an argument is not valid; the message says what would be.
        ResourceNotFound: there is no such workspace.

    Example:
        >>> egs.request_gpu("train", "vision", "east", 1, 8, 80, "", "H100-80GB", "0d6h0m", 150, auth)
        'gpr-...'
        >>> egs.request_gpu(request_name="tune", workspace_name="vision", node_count=1, gpu_per_node_count=8,
        ...                 exit_duration="2h", authenticated_session=auth)
        'gpr-...'
    """
    said = _arguments(args, kwargs)
    session = said.pop(SESSION, None)
    return file_request(said, session)


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name, from any of the three forms."""
    if len(args) > len(LONG) or (len(args) == len(SHORT) and _is_session(args[-1])):
        names: Sequence[str] = SHORT
    else:
        names = SHORT if len(args) <= len(TEN) else LONG
    if len(args) > len(names):
        raise TypeError(
            f"request_gpu() takes at most {len(LONG)} positional arguments, {len(args)} were given"
        )
    said = dict(zip(names, args, strict=False))
    twice = sorted(said.keys() & kwargs.keys())
    if twice:
        raise TypeError(f"request_gpu() got {', '.join(twice)} twice")
    said |= kwargs
    missing = [name for name in NEEDED if said.get(name) is None]
    if missing:
        raise TypeError(f"request_gpu() needs {', '.join(missing)}")
    check("request_gpu", {SESSION: said.get(SESSION)}, {SESSION: AuthenticatedSession | None})
    return said


def _is_session(value: Any) -> bool:
    return value is None or isinstance(value, AuthenticatedSession)


TEN = (
    "request_name", "workspace_name", "cluster_name", "node_count", "gpu_per_node_count", "memory_per_gpu",
    "instance_type", "gpu_shape", "exit_duration", "priority",
)  # fmt: skip
SESSION = "authenticated_session"
SHORT = (*TEN, SESSION)
FOUR = ("idle_timeout_duration", "enforce_idle_timeout", "enable_eviction", "requeue_on_failure")
LONG = (*TEN, *FOUR, SESSION)
TRIES = 3
"""How often a release retries while the request gets or loses its nodes between two calls."""
NEEDED = ("request_name", "workspace_name", "node_count", "gpu_per_node_count", "exit_duration")


def _documented_signature() -> inspect.Signature:
    """The signature for help() and editors: the documented order, then keyword-only arguments."""
    param, kinds = inspect.Parameter, inspect.Parameter
    first = [param(n, kinds.POSITIONAL_OR_KEYWORD, annotation=_shown(n)) for n in TEN]
    session = param(
        SESSION, kinds.POSITIONAL_OR_KEYWORD, default=None, annotation="AuthenticatedSession | None"
    )
    rest = [
        param(
            n, kinds.KEYWORD_ONLY, default=None, annotation=RequestFields.__annotations__[n].__forward_arg__
        )
        for n in More.__annotations__
    ]
    return inspect.Signature([*first, session, *rest], return_annotation="Script[str]")


def _shown(argument: str) -> str:
    """The type of a documented argument; None is left out, since it only means absent."""
    return str(RequestFields.__annotations__[argument].__forward_arg__).removesuffix(" | None")


request_gpu.__signature__ = _documented_signature()  # type: ignore[attr-defined]


def file_request(said: dict[str, Any], session: AuthenticatedSession | None) -> Script[str]:
    """Checks the arguments at once: nothing is sent if one is wrong."""
    return _filed(Ask("POST", GPR, body=gpr_body(said)), session)


def _filed(ask: Ask, session: AuthenticatedSession | None) -> Script[str]:
    data = yield from call(session, ask)
    return Named(data["gprId"], of(Change, data.get("change")))


def cancel_gpu_request(
    request_id: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[None]:
    """Cancel a request that holds no nodes yet. If it gets nodes at this moment, it ends too.

    Raises:
        GpuAlreadyProvisioned: it holds nodes: release it.
        GpuAlreadyReleased: it is over.
        ResourceNotFound: there is no such request, or the caller may not see it.
        Unauthorized: the caller may not change it.

    Example:
        >>> egs.cancel_gpu_request(request_id, auth)
    """
    yield from call(authenticated_session, Ask("DELETE", GPR, params={"gprId": request_id}))


def update_gpu_request_priority(
    request_id: str,
    new_prority: int | None = None,
    authenticated_session: AuthenticatedSession | None = None,
    *,
    new_priority: int | None = None,
) -> Script[None]:
    """Change the priority of a waiting request; `new_prority` is spelt as documented, `new_priority` is the same.

    Above 300 it is set to 300 with a `PriorityClamped` warning.

    Raises:
        GpuAlreadyProvisioned: it holds nodes already.
        ResourceNotFound: there is no such request, or the caller may not see it.
        Unauthorized: the caller may not change it.

    Example:
        >>> egs.update_gpu_request_priority(request_id, 150, auth)
    """
    priority = new_prority if new_priority is None else new_priority
    if priority is None or (new_prority is not None and new_priority is not None):
        raise TypeError("update_gpu_request_priority() needs new_priority once")
    yield from _change(request_id, {"priority": priority_in_range(priority)}, authenticated_session)


def update_gpu_request_name(
    request_id: str, new_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[None]:
    """Change the display name of a waiting request.

    Raises:
        GpuAlreadyProvisioned: it holds nodes already.
        ResourceNotFound: there is no such request, or the caller may not see it.
        Unauthorized: the caller may not change it.

    Example:
        >>> egs.update_gpu_request_name(request_id, "Pretraining, second try", auth)
    """
    yield from _change(request_id, {"gprName": new_name}, authenticated_session)


def release_gpu(request_id: str, authenticated_session: AuthenticatedSession | None = None) -> Script[None]:
    """Give the nodes of a request back before its end. A waiting request is cancelled.

    Raises:
        GpuAlreadyReleased: it gave them back already, or is over.
        ResourceNotFound: there is no such request, or the caller may not see it.
        Unauthorized: the caller may not change it.

    Example:
        >>> egs.release_gpu(request_id, auth)
    """
    for _ in range(TRIES):
        try:
            yield from _change(request_id, {"earlyRelease": True}, authenticated_session)
        except NotProvisioned:
            pass
        else:
            return
        try:
            yield from cancel_gpu_request(request_id, authenticated_session)
        except GpuAlreadyProvisioned as error:  # it got its nodes between the two calls
            last = error
        else:
            return
    raise last


def restore_gpu_request(
    request_id: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[Change]:
    """Restore a request's file with the terms in force, if it is missing, broken, or differs from the lease.

    Raises:
        GpuAlreadyReleased: it is over.
        ResourceNotFound: there is no such request, or the caller may not see it.
        Unauthorized: the caller may not change it.

    Example:
        >>> egs.restore_gpu_request(request_id, auth).way
        'unchanged'
    """
    ask = Ask("POST", f"{GPR}/restore", body={"gprId": request_id})
    return (yield from _changed(ask, authenticated_session))


def move_gpu_request(
    request_id: str,
    authenticated_session: AuthenticatedSession | None = None,
    *,
    before: str = "",
    to: Literal["", "first", "last"] = "",
) -> Script[Change]:
    """Move a waiting request among those of its priority: just before another one, or to an end. Admins only.

    Raises:
        BadParameters: give exactly one of `before` and `to`.
        Conflict: it does not wait, or the other request has another priority.
        ResourceNotFound: there is no such request, or the caller may not see it.
    """
    body = {"gprId": request_id, "before": before, "to": to}
    ask = Ask("POST", f"{API}/queue/move", body=body)
    return (yield from _changed(ask, authenticated_session))


def extend(
    request_id: str, by: Span, authenticated_session: AuthenticatedSession | None = None
) -> Script[Change]:
    """Set the grace beyond the request's duration: the total, not an increment; the project limits it.

    Example:
        >>> egs.extend(request_id, "30m", auth).way
        'pushed'
    """
    return (yield from _change(request_id, {"extend": span_text(by)}, authenticated_session))


def update_gpu_request(
    request_id: str,
    *,
    authenticated_session: AuthenticatedSession | None = None,
    **new: Unpack[RequestFields],
) -> Script[Change]:
    """Change anything that `request_gpu` takes by keyword, of a waiting request.

    Example:
        >>> egs.update_gpu_request(request_id, node_count=2, exit_duration="3h", authenticated_session=auth).way
        'pushed'
    """
    return (yield from _change(request_id, gpr_body(new, "update_gpu_request"), authenticated_session))


def stop_gpu_request(
    request_id: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[Change]:
    """Give the nodes back and keep the remaining time; `resume_gpu_request` queues it again."""
    return (yield from _change(request_id, {"stopped": True}, authenticated_session))


def resume_gpu_request(
    request_id: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[Change]:
    """Queue a stopped request again for its remaining time."""
    return (yield from _change(request_id, {"stopped": False}, authenticated_session))


def _change(request_id: str, new: dict[str, Any], given: AuthenticatedSession | None) -> Script[Change]:
    return (yield from _changed(Ask("PUT", GPR, body={"gprId": request_id, **new}), given))


def _changed(ask: Ask, given: AuthenticatedSession | None) -> Script[Change]:
    try:
        data = yield from call(given, ask)
    except Conflict as error:
        if error.key != UNCHANGED:
            raise
        return Change(way="unchanged")
    return of(Change, data.get("change"))


def gpu_request_status(
    request_id: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[GpuRequestData]:
    """The state of a request and all its terms. `request_id` may also be `workspace/name`.

    Raises:
        ResourceNotFound: there is no such request, or the caller may not see it.
        Unauthorized: the caller is not logged in.

    Example:
        >>> request = egs.gpu_request_status(request_id, auth)
        >>> request.workspace_name, request.number_of_gpus, request.exit_duration
        ('vision', 8, '0d6h0m')
        >>> request.status.provisioning_status
        '...'
    """
    data = yield from call(authenticated_session, Ask("GET", GPR, {"gprId": request_id}))
    return read_gpr(data)


def gpu_request_status_for_workspace(
    workspace_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[Items[GpuRequestData]]:
    """All requests of a workspace, in every phase; a list, also as `.items`.

    Raises:
        ResourceNotFound: there is no such workspace, or the caller may not see it.
        Unauthorized: the caller is not logged in.

    Example:
        >>> requests = egs.gpu_request_status_for_workspace("vision", auth)
        >>> requests.items == requests
        True
    """
    rows = yield from pages(authenticated_session, f"{GPR}/list", {"sliceName": workspace_name})
    return each(GpuRequestData)(rows)
