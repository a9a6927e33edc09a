"""`/workloads`, `/metrics`, `/alerts` and `/usage`: what runs, how GPUs do, and what it costs; workloads to run.

Paths that ask clusters and sources of values run in threads. A caller sees GPUs and values of their own leases only;
what a source does not know is null, and `silences` say why. Workloads that people file are files of the repository.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query

from portal.http.context import Asking, Changed, Envelope, Looking, Of, Page, changed, ok
from portal.http.errors import bad_parameters
from portal.http.etags import WORKLOAD, of_each, tag_without
from portal.http.names import checked_name
from portal.http.paging import Portioned, portion
from portal.identity.redaction import Redactor
from portal.identity.rights import check_member, seen_slice
from portal.openapi.refusals import NAMED as REFUSED
from portal.openapi.refusals import refusals
from portal.vendor.gpr_answers import found_in, id_of
from portal.vendor.gpr_filing import asked, nonce_of
from portal.vendor.workload_models import (
    DEPLOY,
    DEPLOY_ON,
    WorkloadAsk,
    WorkloadChanged,
    WorkloadFiled,
    WorkloadNamed,
)
from portal.views import running_work
from portal.views.running_work import seen_by
from portal.views.view import View
from portal.views.workload_rows import RequestUsage, Usage, Workload, request_usage, usage, workloads
from portal.writes import workload_changes
from portal.writes.replayed_answers import Named
from portal.writes.tried_change import tried
from portal.writes.write_request import Changes, Tree, WriteRequest
from reconciler.queries.arguments import moment
from reconciler.queries.running import ranges
from reconciler.queries.running.workload_details import gpu_table, pod_rows
from reconciler.workloads import alerts
from schemas.documents.identity import uid_of
from schemas.rules.problems import quoted

router = APIRouter()
Row = dict[str, Any]

SliceName = Annotated[str, Query(alias="sliceName", max_length=63, description="Only of this workspace.")]
Cluster = Annotated[str, Query(max_length=63, description="Only of this cluster.")]
Node = Annotated[str, Query(max_length=253, description="Only of this node: its name, or cluster/node.")]
NAMED = "`gprId` or slice/file of a request, or `id` of a workload in `runs`."
Name = Annotated[str, Path(max_length=200, description=NAMED, examples=["wl-0123456789ab"])]
_GPU = {"cluster": "east", "node": "h100-1", "index": 3, "uuid": "GPU-5c2f", "tempC": 86, "hot": True}
_POD = {"name": "train-0", "namespace": "vision-train", "phase": "Running", "numGPUs": 8}
_FINDING = {
    "cause": "HeatSlowdown",
    "severity": "warning",
    "sentence": "GPU 3 on h100-1 is slowed down by heat",
}
_EXAMPLES: dict[str, Row] = {
    "workload": {
        "workload": "vision/train",
        "summary": {"gpus": 8, "idleGpus": 0},
        "gpus": [_GPU],
        "pods": [],
    },
    "pods": {
        "items": [{"name": "train-0", "namespace": "vision-train", "phase": "Running", "numGPUs": 8}],
        "next": None,
    },
    "diagnosis": {"workload": "vision/train", "findings": [_FINDING]},
    "gpus": {"items": [_GPU], "next": None},
    "alerts": {
        "items": [{"kind": "TooHot", "severity": "warning", "node": "h100-1", "index": 3}],
        "next": None,
    },
    "range": {"stepSeconds": 15, "series": [], "marks": [], "silences": []},
}


def _shown(name: str, *codes: int) -> dict[int | str, dict[str, Any]]:
    """`responses` of a path, with an example of a success."""
    envelope = {"statusCode": 200, "status": "OK", "message": "Success", "data": _EXAMPLES[name]}
    return {**refusals(*codes), 200: {"content": {"application/json": {"example": envelope}}}}


def _page(rows: Sequence[Row], wanted: Portioned, key: Callable[[Row], str]) -> Envelope[Page[Row]]:
    items, more = portion(rows, wanted, key)
    return ok(Page[Row](items=items, next=more))


@router.get("/workloads", tags=["Workloads"], responses=refusals(404, 422), summary="What runs on the nodes.")
def list_workloads(
    view: Looking, caller: Asking, parts: Of, portioned: Portioned, slice_name: SliceName = ""
) -> Envelope[Page[Workload]]:
    """Requests that have their nodes: what they run, models, GPUs, health, since when idle, cost so far."""
    if slice_name:
        seen_slice(view, caller, slice_name)
    seen = seen_by(parts.sources, view, caller, parts.now(), slice_name)
    found = workloads(seen, Redactor(caller, view), slice_name)
    chosen, more = portion(found, portioned, lambda one: one.name)
    page = Page[Workload](items=chosen, next=more)
    tag_without(of_each(WORKLOAD), page)
    return ok(page)


@router.post(
    "/workloads",
    tags=["Workloads"],
    responses=refusals(404, *REFUSED, "WorkloadAlreadyExists", "GprAlreadyExists"),
    summary="File a workload.",
)
async def file_workload(
    ask: Annotated[WorkloadAsk, Body(examples=[DEPLOY, DEPLOY_ON])],
    view: Looking,
    caller: Asking,
    parts: Of,
    again: Named,
) -> Envelope[WorkloadFiled]:
    """Writes Kubernetes objects, and the request on whose nodes they run, in one change, as `egs job run`.

    They are applied when the request starts, with the rights of the workspace's members. With `gprId` they run on a
    request that exists. `GET tables/jobs` lists workloads, `GET tables/job` shows one.
    """
    seen_slice(view, caller, ask.slice_name)
    check_member(caller, ask.slice_name, "file workloads there")
    checked_name("name", ask.name)
    nonce = nonce_of(caller.email, again.key) if again.key else secrets.token_hex(16)
    if again.landed is not None:
        gpr = await asyncio.to_thread(workload_changes.request_then, parts.store, again.landed.commit, ask)
        return _filed(view, ask, (gpr, nonce), change=changed(again.landed))
    wanted = await asyncio.to_thread(workload_changes.new_workload, view, caller, ask)

    def make(view: View, tree: Tree) -> Changes:
        return workload_changes.filed(view, tree, wanted, nonce)

    if ask.dry_run:
        files = await parts.costly.answer(tried, view, parts.store, caller, make, parts.now())
        return _filed(view, ask, (wanted.gpr, nonce), text=workload_changes.text_of(files))
    landed = await parts.writer.submit(WriteRequest(caller, f"Run {wanted.key}", make, again.key))
    return _filed(view, ask, (wanted.gpr, nonce), change=changed(landed))


def _filed(
    view: View, ask: WorkloadAsk, request: tuple[str, str], *, change: Changed | None = None, text: str = ""
) -> Envelope[WorkloadFiled]:
    """The answer; `request`: slice/name, and the seed of its id if it is new."""
    gpr, nonce = request
    found = None if ask.gpr_id is None else found_in(view, gpr)
    gpr_id = uid_of(gpr, nonce) if ask.gpr_id is None else "" if found is None else id_of(view, found)
    filed = WorkloadFiled(
        name=f"{ask.slice_name}/{ask.name}", gpr_id=gpr_id, gpr_name=gpr, text=text, change=change
    )
    notes = asked(ask.gpr_details).notes if ask.gpr_details is not None else ()
    return ok(filed, "; ".join(notes) or "Success")


@router.delete(
    "/workloads", tags=["Workloads"], responses=refusals(404, *REFUSED), summary="Delete a workload."
)
async def delete_workload(
    view: Looking,
    caller: Asking,
    parts: Of,
    again: Named,
    name: Annotated[str, Query(max_length=200, description="slice/name, unless the body has it.")] = "",
    named: Annotated[WorkloadNamed | None, Body()] = None,
) -> Envelope[WorkloadChanged]:
    """Deletes its file: its objects are removed, except PersistentVolumeClaims. Its request stays."""
    name = name or ("" if named is None else named.name)
    slice_, _, own = name.partition("/")
    if not own or "/" in own:
        raise bad_parameters(f"name: {quoted(name) or 'an empty text'} is not slice/name of a workload")
    if again.landed is not None:
        return ok(WorkloadChanged(name=name, change=changed(again.landed)))
    seen_slice(view, caller, slice_)
    check_member(caller, slice_, "delete workloads there")

    def make(_: View, tree: Tree) -> Changes:
        return workload_changes.deleted(tree, name)

    landed = await parts.writer.submit(WriteRequest(caller, f"Delete workload {name}", make, again.key))
    return ok(WorkloadChanged(name=name, change=changed(landed)))


@router.get(
    "/workloads/{id:path}/pods", tags=["Workloads"], responses=_shown("pods", 404, 422), summary="Its pods."
)
def list_pods(
    view: Looking, caller: Asking, parts: Of, portioned: Portioned, id: Name
) -> Envelope[Page[Row]]:
    """Pods with their GPUs, and the address of each GPU's values over time."""
    seen = seen_by(parts.sources, view, caller, parts.now(), waiting_too=True)
    about = running_work.found(seen, id)
    rows = pod_rows(seen, about.workloads)
    return _page(rows, portioned, lambda row: f"{row['clusterName']}/{row['namespace']}/{row['name']}")


@router.get(
    "/workloads/{id:path}/diagnosis",
    tags=["Workloads"],
    responses=_shown("diagnosis", 404),
    summary="What is wrong with it.",
)
def get_diagnosis(
    view: Looking, caller: Asking, parts: Of, id: Name, slice_name: SliceName = ""
) -> Envelope[Row]:
    """Ranked sentences with evidence and advice, from pods, values, checks and events: `egs diagnose`."""
    if slice_name:
        seen_slice(view, caller, slice_name)
    seen = seen_by(parts.sources, view, caller, parts.now(), slice_name, waiting_too=True)
    about = running_work.found(seen, id)
    return ok(running_work.diagnosed(parts.sources, view, caller, seen, about))


@router.get(
    "/workloads/{id:path}", tags=["Workloads"], responses=_shown("workload", 404), summary="One workload."
)
def get_workload(view: Looking, caller: Asking, parts: Of, id: Name) -> Envelope[Row]:
    """Its model, GPUs and pods; average use, hottest GPU, most power, idle GPUs, and time lost in the last hour."""
    seen = seen_by(parts.sources, view, caller, parts.now())
    return ok(running_work.workload(parts.sources, seen, running_work.found(seen, id)))


@router.get(
    "/metrics/gpus", tags=["Metrics"], responses=_shown("gpus", 404, 422), summary="GPUs, hottest first."
)
def list_gpus(  # noqa: PLR0913 - each narrows the list
    view: Looking,
    caller: Asking,
    parts: Of,
    portioned: Portioned,
    slice_name: SliceName = "",
    cluster: Cluster = "",
    node: Node = "",
    q: Annotated[str, Query(max_length=200, description="Only rows with this text; case is ignored.")] = "",
    hot: Annotated[
        bool, Query(description="Only hot spots: at their limit, or slowed down by heat.")
    ] = False,
) -> Envelope[Page[Row]]:
    """GPUs that the caller's requests hold now (for an admin all), by closeness to their own thresholds."""
    if slice_name:
        seen_slice(view, caller, slice_name)
    seen = seen_by(parts.sources, view, caller, parts.now(), slice_name)
    rows = [
        row
        for row in gpu_table(seen, q, hot_only=hot)
        if cluster in ("", row["cluster"]) and node in ("", row["node"], f"{row['cluster']}/{row['node']}")
    ]
    return _page(rows, portioned, lambda row: f"{row['cluster']}/{row['node']}/{row['uuid']}")


@router.get(
    "/metrics/range", tags=["Metrics"], responses=_shown("range", 404, 422), summary="Values over time."
)
def get_range(  # noqa: PLR0913 - each narrows the answer
    view: Looking,
    caller: Asking,
    parts: Of,
    gpu: Annotated[
        str, Query(max_length=100, description="`uuid` of a GPU; empty: all of the workload.")
    ] = "",
    workload: Annotated[
        str, Query(max_length=200, description="`gprId`, also of a finished request, or `id` of a workload.")
    ] = "",
    metrics: Annotated[
        str,
        Query(
            max_length=500,
            description="Metrics, with commas between them; empty: use, temperature, power, memory.",
            examples=["utilisation_percent,power_w"],
        ),
    ] = "",
    since: Annotated[
        str, Query(max_length=50, description="From this time on; 2h: two hours ago. Default 1h.")
    ] = "",
    until: Annotated[str, Query(max_length=50, description="Before this time. Default: now.")] = "",
) -> Envelope[Row]:
    """Series of GPUs, at most 7 days, cut to the caller's leases; marks where errors and slowdowns began."""
    now = parts.now()
    begin, end = moment("since", since or None, now), moment("until", until or None, now)
    span = ranges.span_of(now, begin, end, filter(None, metrics.split(",")))
    seen = seen_by(parts.sources, view, caller, now)
    return ok(running_work.over_time(parts.sources, view, caller, seen, (gpu, workload, span)))


@router.get(
    "/alerts", tags=["Metrics"], responses=_shown("alerts", 404, 422), summary="What is wrong with GPUs now."
)
def list_alerts(
    view: Looking,
    caller: Asking,
    parts: Of,
    portioned: Portioned,
    slice_name: SliceName = "",
    cluster: Cluster = "",
) -> Envelope[Page[Row]]:
    """Alerts about GPUs that the caller's requests hold now (for an admin all), the most severe first."""
    if slice_name:
        seen_slice(view, caller, slice_name)
    seen = seen_by(parts.sources, view, caller, parts.now(), slice_name)
    rows = [
        alerts.row(one) for one in alerts.alerts_of(seen.gpus, seen.now) if cluster in ("", one.gpu.cluster)
    ]
    return _page(rows, portioned, lambda row: f"{row['kind']}/{row['cluster']}/{row['node']}/{row['uuid']}")


@router.get("/usage", tags=["Workloads"], responses=refusals(422), summary="Use and cost of workspaces.")
async def list_usage(view: Looking, caller: Asking, parts: Of, portioned: Portioned) -> Envelope[Page[Usage]]:
    """GPU-hours and cost of each workspace, by month, with what runs now."""
    chosen, more = portion(usage(view, caller, parts.now()), portioned, lambda one: one.slice_name)
    return ok(Page(items=chosen, next=more))


@router.get(
    "/usage/requests",
    tags=["Workloads"],
    responses=refusals(404, 422),
    summary="Use and cost of requests.",
)
def list_request_usage(
    view: Looking,
    caller: Asking,
    parts: Of,
    portioned: Portioned,
    slice_name: SliceName = "",
    month: Annotated[str, Query(max_length=7, description="Only of this month, such as 2026-11.")] = "",
) -> Envelope[Page[RequestUsage]]:
    """GPU-hours and cost of each request that has had nodes, with the people who are responsible for it."""
    if slice_name:
        seen_slice(view, caller, slice_name)
    rows = request_usage(view, caller, parts.now(), slice_name, month)
    chosen, more = portion(rows, portioned, lambda one: one.name)
    return ok(Page(items=chosen, next=more))
