"""GPU requests: file, change, end, look at one or all of a workspace's.

Held by tests/egs/test_sdk_requests.py and tests/egs/test_seed_examples.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Unpack, overload

from egs.arguments import check
from egs.asking.paging import pages
from egs.asking.wishes import More, RequestFields, Span, gpr_body, priority_in_range, span_text
from egs.calling import API, Ask, call
from egs.data.gpr import GpuRequestData, read_gpr
from egs.data.records import Change, Items, Named, each, of
from egs.exceptions import Conflict, GpuAlreadyProvisioned, NotProvisioned
from egs.sessions import AuthenticatedSession, get_authenticated_session
from egs.steps import Script

GPR = f"{API}/gpr"
UNCHANGED = "Unchanged"
"""The server's word for a request that says already what it is to say: whoever asks for that has it."""


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
    """Ask for GPU nodes; gives the id of the request.

    Positional as documented: `request_name, workspace_name, cluster_name, node_count, gpu_per_node_count,
    memory_per_gpu, instance_type, gpu_shape, exit_duration, priority, authenticated_session=None`; with
    `idle_timeout_duration, enforce_idle_timeout, enable_eviction, requeue_on_failure` before the session; or by
    keywords, where cluster, machine type, shape, memory and priority may be left out.

    `memory_per_gpu` is in GB, and above 4096 in MiB. `priority` is low 1-100, medium 101-200, high 201-300; more is
    taken as 300 with a `PriorityClamped` warning. Further keywords: `preferred_clusters`, `enable_rdma`,
    `enable_secondary_network`, `template_name`, `not_before`, `start`, `prefer`, `max_wait`, `model`, `name`.

    The id is text that also has `.change`: where the request is now (on main, or asking to be merged).

    Raises:
        Unauthorized: the caller may not file requests for that workspace.
        BadParameters: what was asked makes no sense; the message says what would.
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
    "request_name",
    "workspace_name",
    "cluster_name",
    "node_count",
    "gpu_per_node_count",
    "memory_per_gpu",
    "instance_type",
    "gpu_shape",
    "exit_duration",
    "priority",
)
SESSION = "authenticated_session"
SHORT = (*TEN, SESSION)
LONG = (
    *TEN,
    "idle_timeout_duration",
    "enforce_idle_timeout",
    "enable_eviction",
    "requeue_on_failure",
    SESSION,
)
TRIES = 3
"""How often a release asks again of a request that gets its nodes, or loses them, between two questions."""
NEEDED = ("request_name", "workspace_name", "node_count", "gpu_per_node_count", "exit_duration")


def _documented_signature() -> inspect.Signature:
    """What help() and editors show: the documented order, then what is given by keyword alone."""
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
    """The type of a documented argument; None says nothing, so it is not shown."""
    return str(RequestFields.__annotations__[argument].__forward_arg__).removesuffix(" | None")


request_gpu.__signature__ = _documented_signature()  # type: ignore[attr-defined]


def file_request(said: dict[str, Any], session: AuthenticatedSession | None) -> Script[str]:
    """Everything that is wrong with the arguments is told before anything is sent."""
    return _filed(Ask("POST", GPR, body=gpr_body(said)), session)


def _filed(ask: Ask, session: AuthenticatedSession | None) -> Script[str]:
    data = yield from call(get_authenticated_session(session), ask)
    return Named(data["gprId"], of(Change, data.get("change")))


def cancel_gpu_request(
    request_id: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[None]:
    """Take back a request that holds no nodes yet. One that gets them at this moment ends, too.

    Raises:
        GpuAlreadyProvisioned: it holds nodes: release it.
        GpuAlreadyReleased: it is over.
        ResourceNotFound: there is no such request, or the caller may not see it.
        Unauthorized: the caller may not change it.

    Example:
        >>> egs.cancel_gpu_request(request_id, auth)
    """
    session = get_authenticated_session(authenticated_session)
    yield from call(session, Ask("DELETE", GPR, params={"gprId": request_id}))


def update_gpu_request_priority(
    request_id: str,
    new_prority: int | None = None,
    authenticated_session: AuthenticatedSession | None = None,
    *,
    new_priority: int | None = None,
) -> Script[None]:
    """Give a waiting request another priority; `new_prority` is spelt as documented, `new_priority` is the same.

    Above 300 it is taken as 300 with a `PriorityClamped` warning.

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
    """Show a waiting request under another name.

    Raises:
        GpuAlreadyProvisioned: it holds nodes already.
        ResourceNotFound: there is no such request, or the caller may not see it.
        Unauthorized: the caller may not change it.

    Example:
        >>> egs.update_gpu_request_name(request_id, "Pretraining, second try", auth)
    """
    yield from _change(request_id, {"gprName": new_name}, authenticated_session)


def release_gpu(request_id: str, authenticated_session: AuthenticatedSession | None = None) -> Script[None]:
    """Give the nodes of a request back before its end. One that still waits is cancelled: it never gets any.

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
        except GpuAlreadyProvisioned as error:  # it has got its nodes between the two
            last = error
        else:
            return
    raise last


def restore_gpu_request(
    request_id: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[Change]:
    """Write a request's file back as it counts, where it is gone, broken, or says other terms than the lease has.

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


def extend(
    request_id: str, by: Span, authenticated_session: AuthenticatedSession | None = None
) -> Script[Change]:
    """Ask for grace beyond the request's duration: in all, not more each time; the project bounds it.

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
    """Change anything that `request_gpu` takes by keyword, of a request that waits.

    Example:
        >>> egs.update_gpu_request(request_id, node_count=2, exit_duration="3h", authenticated_session=auth).way
        'pushed'
    """
    return (yield from _change(request_id, gpr_body(new, "update_gpu_request"), authenticated_session))


def stop_gpu_request(
    request_id: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[Change]:
    """Give the nodes back and keep the time that is left; `resume_gpu_request` queues again for it."""
    return (yield from _change(request_id, {"stopped": True}, authenticated_session))


def resume_gpu_request(
    request_id: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[Change]:
    """Queue a stopped request again for the time that it has left."""
    return (yield from _change(request_id, {"stopped": False}, authenticated_session))


def _change(request_id: str, new: dict[str, Any], given: AuthenticatedSession | None) -> Script[Change]:
    return (yield from _changed(Ask("PUT", GPR, body={"gprId": request_id, **new}), given))


def _changed(ask: Ask, given: AuthenticatedSession | None) -> Script[Change]:
    session = get_authenticated_session(given)
    try:
        data = yield from call(session, ask)
    except Conflict as error:
        if error.key != UNCHANGED:
            raise
        return Change(way="unchanged")
    return of(Change, data.get("change"))


def gpu_request_status(
    request_id: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[GpuRequestData]:
    """How a request is, with everything that it asked for. Also takes `workspace/name`.

    Raises:
        ResourceNotFound: there is no such request, or the caller may not see it.
        Unauthorized: nobody is logged in.

    Example:
        >>> request = egs.gpu_request_status(request_id, auth)
        >>> request.workspace_name, request.number_of_gpus, request.exit_duration
        ('vision', 8, '0d6h0m')
        >>> request.status.provisioning_status
        '...'
    """
    session = get_authenticated_session(authenticated_session)
    data = yield from call(session, Ask("GET", GPR, {"gprId": request_id}))
    return read_gpr(data)


def gpu_request_status_for_workspace(
    workspace_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[Items[GpuRequestData]]:
    """All requests of a workspace, in every phase. A list; the same list is its `.items`.

    Raises:
        ResourceNotFound: there is no such workspace, or the caller may not see it.
        Unauthorized: nobody is logged in.

    Example:
        >>> requests = egs.gpu_request_status_for_workspace("vision", auth)
        >>> requests.items == requests
        True
    """
    session = get_authenticated_session(authenticated_session)
    rows = yield from pages(session, f"{GPR}/list", {"sliceName": workspace_name})
    return each(GpuRequestData)(rows)
