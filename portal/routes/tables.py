"""Rows and pages exactly as `egs get … -o json` and `egs describe … -o json` print them, for `egs` on a server.

Other paths use the vendor's names; these use the command line's (docs/reference/commands/look.md).
Of other workspaces a caller sees that a node is taken, but not by which request.

Held by tests/portal/test_tables.py and tests/egs/test_remote_same.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query

from portal.http.context import Asking, Envelope, Looking, Of, Page, ok
from portal.http.errors import not_found
from portal.http.paging import Portioned, portion
from portal.http.past import Then
from portal.openapi.refusals import refusals
from portal.views import table_rows
from schemas.status.gpr_status import Phase

router = APIRouter(prefix="/tables", tags=["tables"])
Row = dict[str, Any]
Rows = Envelope[Page[Row]]

SliceName = Annotated[str, Query(alias="sliceName", max_length=63, description="Only this workspace.")]
InPhase = Annotated[Phase | None, Query(description="Only these; absent: all.")]
Cluster = Annotated[str, Query(max_length=63, description="Only this cluster.")]
Pool = Annotated[str, Query(max_length=63, description="Only this pool.")]
Name = Annotated[str, Query(max_length=200, description="Its name, as listed.")]


def _shown(example: Row, *more: int) -> dict[int | str, dict[str, Any]]:
    """`responses` of a path, with an example of a success."""
    envelope = {"statusCode": 200, "status": "OK", "message": "Success", "data": example}
    return {**refusals(404, *more, 422), 200: {"content": {"application/json": {"example": envelope}}}}


def _page(rows: Sequence[Row], wanted: Portioned, key: Callable[[Row], str]) -> Rows:
    items, more = portion(rows, wanted, key)
    return ok(Page[Row](items=items, next=more))


def _full(row: Row) -> str:
    return f"{row['slice']}/{row['name']}"


def _node(row: Row) -> str:
    return f"{row['cluster']}/{row['name']}"


def _name(row: Row) -> str:
    return str(row["name"])


_EXAMPLES: dict[str, Row] = {
    "gpr": {"slice": "vision", "name": "train", "phase": "Queued", "priority": 101, "nodes": 2},
    "slice": {"name": "vision", "clusters": ["east"], "waiting": 1, "holding": 0, "gpusHeld": 0},
    "request": {"name": "nlp", "phase": "PendingApproval", "requester": "cy@example.com"},
    "job": {"slice": "vision", "name": "finetune", "phase": "Running", "gpr": "train", "cluster": "east"},
    "endpoint": {
        "slice": "vision",
        "name": "captions",
        "phase": "Serving",
        "versions": [{"name": "v1", "weight": 100, "wanted": 100, "ready": 2}],
    },
    "cluster": {"name": "east", "driver": "kubernetes", "mode": "manage", "reachable": True},
    "capacity": {
        "gpuShape": "H100-80GB",
        "begin": "2026-11-21T08:00:00Z",
        "nodes": 12,
        "free": 3,
        "likelyFree": 5,
    },
    "node": {"cluster": "east", "pool": "h100", "name": "h100-1", "state": "Ready", "lease": None},
}


def _list_of(kind: str, *more: int) -> dict[int | str, dict[str, Any]]:
    return _shown({"items": [_EXAMPLES[kind]], "next": None}, *more)


@router.get("/gprs", summary="egs get gprs", responses=_list_of("gpr", 410))
def gprs(
    view: Then,
    caller: Asking,
    of: Of,
    wanted: Portioned,
    slice_name: SliceName = "",
    phase: InPhase = None,
) -> Rows:
    """Requests in every phase."""
    if slice_name:
        _slice_seen(view, caller, slice_name)
    return _page(table_rows.gprs(view, caller, slice_name, phase, view.clock(of.now())), wanted, _full)


@router.get("/slices", summary="egs get slices", responses=_list_of("slice", 410))
def slices(view: Then, caller: Asking, of: Of, wanted: Portioned) -> Rows:
    """Slices, with what they wait for, hold and have used."""
    return _page(table_rows.slices(view, caller, view.clock(of.now())), wanted, _name)


@router.get("/requests", summary="egs get requests", responses=_list_of("request"))
def requests(view: Looking, caller: Asking, of: Of, wanted: Portioned) -> Rows:
    """Requests for slices. A caller who is not an admin sees those that they made, those that name them as a member
    (with a key for that slice), and those of workspaces that they see."""
    return _page(table_rows.requests(view, caller, of.store), wanted, _name)


@router.get("/jobs", summary="egs get jobs", responses=_list_of("job", 410))
def jobs(view: Then, caller: Asking, wanted: Portioned, slice_name: SliceName = "") -> Rows:
    """Workloads that slices filed, with their objects."""
    if slice_name:
        _slice_seen(view, caller, slice_name)
    return _page(table_rows.jobs(view, caller, slice_name), wanted, _full)


@router.get("/endpoints", summary="egs get endpoints", responses=_list_of("endpoint", 410))
def endpoints(view: Then, caller: Asking, wanted: Portioned, slice_name: SliceName = "") -> Rows:
    """Served models, with their versions and weights."""
    if slice_name:
        _slice_seen(view, caller, slice_name)
    return _page(table_rows.endpoints(view, caller, slice_name), wanted, _full)


@router.get("/clusters", summary="egs get clusters", responses=_list_of("cluster", 410))
def clusters(view: Then, caller: Asking, wanted: Portioned) -> Rows:
    """Clusters and their pools."""
    return _page(table_rows.clusters(view, caller), wanted, _name)


@router.get("/nodes", summary="egs get nodes", responses=_list_of("node", 410))
def nodes(view: Then, caller: Asking, wanted: Portioned, cluster: Cluster = "", pool: Pool = "") -> Rows:
    """Nodes, with state, lease and schedule."""
    if cluster and cluster not in table_rows.clusters_seen(view, caller):
        raise not_found("cluster", cluster)
    return _page(table_rows.nodes(view, caller, cluster, pool), wanted, _node)


@router.get("/capacity", summary="egs get capacity", responses=_list_of("capacity", 410))
def capacity(
    view: Then,
    caller: Asking,
    wanted: Portioned,
    shape: Annotated[str, Query(max_length=63, description="Only this GPU shape.")] = "",
    cluster: Cluster = "",
    hours: Annotated[int, Query(ge=1, le=336, description="Hours to look ahead.")] = 24,
) -> Rows:
    """Free nodes by shape and hour, of pools that the caller's workspaces may use."""
    if cluster and cluster not in table_rows.clusters_seen(view, caller):
        raise not_found("cluster", cluster)
    found = table_rows.capacity(view, caller, cluster, hours, shape)
    return _page(found, wanted, lambda row: f"{row['gpuShape']}/{row['begin']}")


@router.get("/gpr", summary="egs describe gpr", responses=_shown(_EXAMPLES["gpr"], 410))
def gpr(view: Then, caller: Asking, of: Of, name: Name) -> Envelope[Row]:
    """Everything about one request, named slice/name."""
    return ok(table_rows.described_gpr(view, caller, name, view.clock(of.now())))


@router.get("/slice", summary="egs describe slice", responses=_shown(_EXAMPLES["slice"], 410))
def slice_(view: Then, caller: Asking, name: Name) -> Envelope[Row]:
    """Everything about one slice."""
    _slice_seen(view, caller, name)
    return ok(table_rows.described_slice(view, caller, name))


@router.get("/request", summary="egs describe request", responses=_shown(_EXAMPLES["request"]))
def request(view: Looking, caller: Asking, of: Of, name: Name) -> Envelope[Row]:
    """Everything about one request for a slice."""
    return ok(table_rows.described_request(view, caller, of.store, name))


@router.get("/endpoint", summary="egs describe endpoint", responses=_shown(_EXAMPLES["endpoint"], 410))
def endpoint(view: Then, caller: Asking, name: Name) -> Envelope[Row]:
    """One endpoint: its versions, its objects, and its latest events."""
    return ok(table_rows.described_endpoint(view, caller, name))


@router.get("/job", summary="egs describe job", responses=_shown(_EXAMPLES["job"], 410))
def job(view: Then, caller: Asking, name: Name) -> Envelope[Row]:
    """Everything about one workload, named slice/name."""
    return ok(table_rows.described_job(view, caller, name))


@router.get("/cluster", summary="egs describe cluster", responses=_shown(_EXAMPLES["cluster"], 410))
def cluster_(view: Then, caller: Asking, name: Name) -> Envelope[Row]:
    """Everything about one cluster."""
    if name not in table_rows.clusters_seen(view, caller):
        raise not_found("cluster", name)
    return ok(table_rows.described_cluster(view, caller, name))


@router.get("/node", summary="egs describe node", responses=_shown(_EXAMPLES["node"], 410))
def node(view: Then, caller: Asking, name: Name) -> Envelope[Row]:
    """Everything about one node, named cluster/node."""
    return ok(table_rows.described_node(view, caller, name))


def _slice_seen(view: Looking, caller: Asking, name: str) -> None:
    if name not in view.wanted.slices or not caller.may_see(name):
        raise not_found("slice", name)
