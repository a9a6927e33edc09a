"""What runs: GPUs, alerts, one workload with its pods, values over time, diagnoses.

Held by tests/egs/test_sdk_running.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

from egs.asking.paging import pages
from egs.asking.wishes import instant_text
from egs.calling import API, Ask, call
from egs.data.records import Answered, Items, each, of
from egs.data.running import Alert, Diagnosis, FreeNodes, Gpu, Values, WorkloadPod
from egs.sessions import AuthenticatedSession
from egs.steps import Script


def gpus(
    workspace_name: str | None = None,
    authenticated_session: AuthenticatedSession | None = None,
    *,
    cluster: str | None = None,
    node: str | None = None,
    text: str | None = None,
    hot: bool = False,
) -> Script[Items[Gpu]]:
    """GPUs of the caller's requests (for admins all), the nearest to their own limits first.

    `hot`: only those at a limit, or slowed down by heat. `pandas.DataFrame(egs.gpus().to_dict())` makes a table of it.

    Example:
        >>> egs.gpus("vision", auth)
        [...]
    """
    wanted = {
        "sliceName": workspace_name,
        "cluster": cluster,
        "node": node,
        "q": text,
        "hot": "true" if hot else None,
    }
    rows = yield from pages(authenticated_session, f"{API}/metrics/gpus", wanted)
    return each(Gpu)(rows)


def alerts(
    workspace_name: str | None = None,
    authenticated_session: AuthenticatedSession | None = None,
    *,
    cluster: str | None = None,
) -> Script[Items[Alert]]:
    """What is wrong with these GPUs now, the most severe first, each with what to do.

    Example:
        >>> egs.alerts("vision", auth)
        [...]
    """
    rows = yield from pages(
        authenticated_session, f"{API}/alerts", {"sliceName": workspace_name, "cluster": cluster}
    )
    return each(Alert)(rows)


def free_nodes(
    gpu_shape: str | None = None,
    authenticated_session: AuthenticatedSession | None = None,
    *,
    cluster: str | None = None,
    hours: int = 24,
) -> Script[Items[FreeNodes]]:
    """How many nodes of each shape are free in each coming hour, of those that the caller's workspaces may use.

    Example:
        >>> egs.free_nodes("H100-80GB", auth, hours=12)
        [...]
    """
    wanted = {"shape": gpu_shape, "cluster": cluster, "hours": hours}
    rows = yield from pages(authenticated_session, f"{API}/tables/capacity", wanted)
    return each(FreeNodes)(rows)


def workload(name: str, authenticated_session: AuthenticatedSession | None = None) -> Script[Answered]:
    """One workload: model, figures, GPUs, pods, and the time lost in the last hour.

    `name`: a request id, `workspace/file`, or the id of one of a request's `runs`.
    """
    data = yield from call(authenticated_session, Ask("GET", f"{API}/workloads/{quote(name)}"))
    return Answered(data)


def workload_pods(
    name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[Items[WorkloadPod]]:
    """The pods of a workload, each with its GPUs; `name` as for `workload`."""
    rows = yield from pages(authenticated_session, f"{API}/workloads/{quote(name)}/pods", {})
    return each(WorkloadPod)(rows)


def diagnose(name: str, authenticated_session: AuthenticatedSession | None = None) -> Script[Diagnosis]:
    """Why a workload is slow, idle or does not start; prints as sentences. `name` as for `workload`.

    Example:
        >>> egs.diagnose(request_id, auth).findings
        (...)
    """
    data = yield from call(authenticated_session, Ask("GET", f"{API}/workloads/{quote(name)}/diagnosis"))
    return of(Diagnosis, data)


def gpu_values(
    workload_name: str | None = None,
    authenticated_session: AuthenticatedSession | None = None,
    *,
    gpu: str | None = None,
    metrics: Sequence[str] = (),
    since: datetime | str | None = None,
    until: datetime | str | None = None,
) -> Script[Values]:
    """Values of GPUs over time, by default of the last hour, at most 7 days; only of the caller's own leases.

    `metrics`: names such as `utilisation_percent`, `temp_c`, `power_w`. `pandas.DataFrame(values.rows())` has a row for
    each point.

    Example:
        >>> egs.gpu_values(request_id, auth, since="1h").step_seconds
        15
    """
    wanted = {"workload": workload_name, "gpu": gpu, "metrics": ",".join(metrics)}
    wanted |= {"since": instant_text(since), "until": instant_text(until)}
    given = {name: value for name, value in wanted.items() if value}
    data = yield from call(authenticated_session, Ask("GET", f"{API}/metrics/range", given))
    return of(Values, data)
