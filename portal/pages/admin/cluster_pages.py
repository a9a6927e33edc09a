"""`/admin/clusters` and `/admin/nodes`: what there is, who has it, how it does, and when it is out."""

from __future__ import annotations

from datetime import datetime, timedelta
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.http.errors import ApiError, bad_parameters, not_found
from portal.pages.forms import Form, Sent, filled, listed
from portal.pages.visit import AdminVisiting, Visit
from portal.routes import inventory
from portal.routes.inventory import ClusterChanged, NodeNamed, Window
from portal.views import table_rows
from portal.views.fleet import node_past
from portal.views.inventories import shown
from portal.views.running_work import seen_by
from portal.writes.replayed_answers import Naming, naming_of
from reconciler.queries import tables
from reconciler.queries.event_search import Filter
from reconciler.workloads.gpu_rows import card
from schemas.documents.maintenance import Maintenance
from schemas.errors import EgsError
from schemas.reading.units import format_instant, parse_instant
from schemas.status.node_status import NodeState

router = APIRouter(include_in_schema=False)

CLUSTERS, NODES = "/admin/clusters", "/admin/nodes"
SHOWN = 200
"""Nodes of one page."""
EVENTS = 30
DRIFT = frozenset({"DriftRepaired", "DriftSeen"})
STATES = ("all", "trouble", "free", "leased", *NodeState, tables.UNMANAGED, tables.UNRESERVED)
"""By which nodes are filtered."""
WINDOW = "window"
"""The form of a maintenance window, in the address of its refusal."""


@router.get(CLUSTERS)
def cluster_list(visit: AdminVisiting) -> Response:
    """Every cluster with its pools, and how many nodes are in no pool."""
    view = visit.view
    rows = table_rows.clusters(view, visit.caller)
    unmanaged = {name: len(tables.unmanaged_nodes(view.state, name)) for name in view.wanted.clusters}
    return visit.page(
        "admin/clusters.html", rows=rows, unmanaged=unmanaged, open=set(tables.open_clusters(view.state))
    )


@router.get(CLUSTERS + "/{cluster}")
def cluster_page(
    visit: AdminVisiting,
    cluster: str,
    pool: Annotated[str, Query(max_length=63)] = "",
    state: Annotated[str, Query(max_length=20)] = "all",
    q: Annotated[str, Query(max_length=100)] = "",
    first: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """Its nodes, pools, maintenance, reservations and drift."""
    return _cluster(visit, cluster, {"pool": pool, "state": state, "q": q, "first": first})


_ALL: dict[str, Any] = {"pool": "", "state": "all", "q": "", "first": 0}
"""No filter."""


def _cluster(
    visit: Visit,
    cluster: str,
    chosen: dict[str, Any],
    form: Form | None = None,
    error: EgsError | None = None,
) -> Response:
    view, caller = visit.view, visit.caller
    if cluster not in table_rows.clusters_seen(view, caller):
        raise not_found("cluster", cluster)
    chosen = {**_ALL, **chosen}
    nodes = [row for row in table_rows.nodes(view, caller, cluster, chosen["pool"]) if _fits(row, chosen)]
    data = table_rows.described_cluster(view, caller, cluster)
    spec = view.wanted.clusters[cluster]
    return visit.page(
        "admin/cluster.html",
        _status(error),
        cluster=cluster,
        data=data,
        spec=spec,
        nodes=[_timed(row, visit.now) for row in nodes[chosen["first"] : chosen["first"] + SHOWN]],
        total=len(nodes),
        shown=SHOWN,
        states=STATES,
        chosen=chosen,
        unmanaged=len(tables.unmanaged_nodes(view.state, cluster)),
        windows=[(number, window, _is_over(window, visit.now)) for number, window in _by_begin(spec)],
        drift=_drift(visit, Filter(cluster=cluster)),
        form=form or {},
        error=error,
        soon=_soon(visit.now),
    )


def _status(error: EgsError | None) -> HTTPStatus:
    if error is None:
        return HTTPStatus.OK
    return error.status if isinstance(error, ApiError) else HTTPStatus.UNPROCESSABLE_ENTITY


def _fits(row: dict[str, Any], chosen: dict[str, Any]) -> bool:
    state, text = chosen["state"], chosen["q"].lower()
    kinds = {
        "all": True,
        "trouble": row["state"] not in (NodeState.READY, tables.UNMANAGED, tables.UNRESERVED),
        "free": row["state"] == NodeState.READY and row["lease"] is None,
        "leased": row["lease"] is not None,
    }
    words = f"{row['name']} {row['lease'] or ''} {row['reason'] or ''}".lower()
    return kinds.get(state, row["state"] == state) and text in words


def _timed(row: dict[str, Any], now: datetime) -> dict[str, Any]:
    """With the end of its present entry in the calendar, and the first one to come."""
    at = format_instant(now)
    present = next((one for one in row["schedule"] if one["begin"] <= at and _ends_after(one, at)), None)
    later = next((one for one in row["schedule"] if one["begin"] > at), None)
    return {**row, "present": present, "next": later}


def _ends_after(entry: dict[str, Any], at: str) -> bool:
    return entry["end"] is None or entry["end"] > at


def _by_begin(spec: Any) -> list[tuple[int, Maintenance]]:
    return sorted(enumerate(spec.maintenance), key=lambda one: (one[1].begin, one[0]))


def _is_over(window: Maintenance, now: datetime) -> bool:
    if window.every is None:
        return window.end <= now
    return window.until is not None and window.until <= now


def _drift(visit: Visit, about: Filter) -> list[dict[str, str]]:
    rows = (row for row in visit.view.events.found(about) if row.get("reason") in DRIFT)
    return list(islice(rows, EVENTS))


def _soon(now: datetime) -> dict[str, str]:
    """What the form of a window begins with: the next full hour, for two hours."""
    begin = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    return {"begin": _local(begin), "end": _local(begin + timedelta(hours=2))}


def _local(at: datetime) -> str:
    """As a field `datetime-local` has it; pages ask for UTC."""
    return f"{at:%Y-%m-%dT%H:%M}"


# -- maintenance -------------------------------------------------------------------------------------------------------


@router.post(CLUSTERS + "/{cluster}/maintenance")
async def plan_window(visit: AdminVisiting, form: Sent, cluster: str) -> Response:
    """Adds the window of the form."""
    try:
        done = await inventory.plan_maintenance(
            _window(cluster, form), visit.view, visit.caller, visit.parts, await _named(visit, form)
        )
    except EgsError as error:
        return _cluster(visit, cluster, {}, form, error)
    return _went(visit, f"{CLUSTERS}/{cluster}", done.data)


@router.post(CLUSTERS + "/{cluster}/maintenance/remove")
async def remove_window(visit: AdminVisiting, form: Sent, cluster: str) -> Response:
    """Removes the window that the form names."""
    try:
        done = await inventory.remove_maintenance(
            _window(cluster, form), visit.view, visit.caller, visit.parts, await _named(visit, form)
        )
    except EgsError as error:
        return _cluster(visit, cluster, {}, None, error)
    return _went(visit, f"{CLUSTERS}/{cluster}", done.data)


async def _named(visit: Visit, form: Form) -> Naming:
    return await naming_of(visit.caller, visit.parts, form.get("key", ""))


def _went(visit: Visit, path: str, done: ClusterChanged) -> Response:
    return visit.landed(path, done.change)


def _window(cluster: str, form: Form) -> Window:
    fields = {
        "clusterName": cluster,
        "begin": _instant("begin", form.get("begin", "")),
        "end": _instant("end", form.get("end", "")),
        "pools": listed(form, "pools"),
        "nodes": listed(form, "nodes"),
        "every": form.get("every") or None,
        "until": _instant("until", form["until"]) if form.get("until") else None,
        "reason": form.get("reason", ""),
    }
    return filled(Window, fields)


def _instant(name: str, text: str) -> str:
    """RFC 3339 of a field `datetime-local` in UTC, or of RFC 3339 itself."""
    whole = f"{text}:00Z" if len(text) == len("2026-11-21T08:00") else text
    try:
        return format_instant(parse_instant(whole))
    except ValueError as error:
        raise bad_parameters(f"{name}: {error}") from error


# -- one node ----------------------------------------------------------------------------------------------------------


@router.get(NODES + "/{cluster}/{node}")
def node_page(visit: AdminVisiting, cluster: str, node: str) -> Response:
    """Its state, leases, checks, GPUs with the agent's verdicts, card history, drift and maintenance."""
    return _node(visit, cluster, node)


def _node(visit: Visit, cluster: str, node: str, error: EgsError | None = None) -> Response:
    view, caller, now = visit.view, visit.caller, visit.now
    name, key = f"{cluster}/{node}", (cluster, node)
    data = table_rows.described_node(view, caller, name)
    told = shown(visit.parts.sources, view, caller, now)
    record = view.facts.nodes.get(key)
    reports = told.devices.get(key) or (() if record is None else record.gpus)
    seen = {gpu.uuid: gpu for gpu in seen_by(visit.parts.sources, view, caller, now).gpus if _at(gpu) == key}
    return visit.page(
        "admin/node.html",
        _status(error),
        name=name,
        cluster=cluster,
        node=node,
        data=data,
        devices=[(gpu, card(gpu), seen.pop(gpu.uuid, None)) for gpu in reports],
        others=sorted(seen.values(), key=lambda gpu: (gpu.index or 0, gpu.uuid)),
        network=dict(sorted(told.attributes.get(cluster, {}).get(node, {}).items())),
        leases=node_past.leases(view, key),
        windows=[window for window in node_past.windows_of(view, key) if not _is_over(window, now)],
        cards=node_past.cards_of(view, key),
        remedies=node_past.remedies_of(view, key),
        cleared=max((c.at for c in view.wanted.clusters[cluster].cleared if c.node == node), default=None),
        drift=_drift(visit, Filter(cluster=cluster, node=node)),
        is_managed=data["pool"] is not None,
        soon=_soon(now),
        days=_local(now + timedelta(days=7)),
        present=_local(now),
        error=error,
    )


def _at(gpu: Any) -> tuple[str, str]:
    return gpu.cluster, gpu.node


@router.post(NODES + "/{cluster}/{node}/clear")
async def clear(visit: AdminVisiting, form: Sent, cluster: str, node: str) -> Response:
    """The node counts as repaired."""
    try:
        body = filled(NodeNamed, {"clusterName": cluster, "nodeName": node})
        done = await inventory.clear_node(
            body, visit.view, visit.caller, visit.parts, await _named(visit, form)
        )
    except EgsError as error:
        return _node(visit, cluster, node, error)
    is_from_health = form.get("back") == "health"
    return _went(visit, "/admin/health" if is_from_health else f"{NODES}/{cluster}/{node}", done.data)


@router.post(NODES + "/{cluster}/{node}/out")
async def take_out(visit: AdminVisiting, form: Sent, cluster: str, node: str) -> Response:
    """The node serves no new request until the end of the form: a window of its own."""
    try:
        begin = format_instant(visit.now.replace(microsecond=0))
        window = _window(cluster, {**form, "begin": begin, "nodes": node, "pools": ""})
        done = await inventory.plan_maintenance(
            window, visit.view, visit.caller, visit.parts, await _named(visit, form)
        )
    except EgsError as error:
        return _node(visit, cluster, node, error)
    return _went(visit, f"{NODES}/{cluster}/{node}", done.data)
