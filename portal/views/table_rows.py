"""The rows of `egs get` and `egs describe` for one caller of the API. Pure but for files of requests.

The rows are the commands' own; of other workspaces a caller sees that a node is taken, but not by which request.

Held by tests/portal/test_tables.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import Any

from portal.http.errors import not_found
from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.vendor.gpr_answers import NOT_SEEN_TEXT
from portal.views.inventories import pools_for
from portal.views.view import View
from reconciler.planning.free_hours import Needs
from reconciler.queries import details, job_rows, tables, workspace_requests
from reconciler.queries.event_search import EventRow, Filter, slice_of_event
from reconciler.queries.running import capacity_rows, endpoint_rows
from reconciler.store.store_port import Store
from schemas.rules.view import workspace_path
from schemas.status.gpr_status import Phase

Row = dict[str, Any]


def gprs(view: View, caller: Caller, slice_: str, phase: Phase | None, now: datetime) -> list[Row]:
    """Requests that the caller may see; an empty `slice_` means all slices."""
    rows = tables.gprs(view.state, slice_ or None, None if phase is None else str(phase), now)
    return [veiled(Redactor(caller, view), row) for row in rows if caller.may_see(row["slice"])]


def slices(view: View, caller: Caller, now: datetime) -> list[Row]:
    return [row for row in tables.slices(view.state, now) if caller.may_see(row["name"])]


def requests(view: View, caller: Caller, store: Store) -> list[Row]:
    """Requests for slices: an admin sees all, any other user those that they made or that name them as a member.

    A key shows only requests within its scope. For a slice in force the usual right to see it decides.
    """
    redactor = Redactor(caller, view)
    rows = workspace_requests.rows_at(store, view.main, view.state)
    return [veiled(redactor, row) for row in rows if _is_asked_for_by(view, caller, row)]


def _is_asked_for_by(view: View, caller: Caller, row: Row) -> bool:
    name = row["name"]
    if caller.sees is None or name in view.wanted.slices:
        return caller.may_see(name)
    is_theirs = caller.email in (row["requester"], *row["members"])
    return is_theirs and any(grant.covers(name) for grant in caller.grants)


def jobs(view: View, caller: Caller, slice_: str) -> list[Row]:
    """Workloads of slices that the caller may see; an empty `slice_` means all."""
    rows = job_rows.rows(view.state, slice_ or None)
    return [veiled(Redactor(caller, view), row) for row in rows if caller.may_see(row["slice"])]


def described_job(view: View, caller: Caller, key: str) -> Row:
    """The data of `egs describe job`."""
    slice_ = key.partition("/")[0]
    known = {*view.wanted.workloads, *view.facts.workloads}
    if not caller.may_see(slice_) or key not in known:
        raise not_found("workload", key)
    found = job_rows.job_data(view.state, key, _told(view, caller, Filter(slice=slice_)))
    return veiled(Redactor(caller, view), found)


def endpoints(view: View, caller: Caller, slice_: str) -> list[Row]:
    """Endpoints of slices that the caller may see; an empty `slice_` means all."""
    rows = endpoint_rows.rows(view.state, slice_ or None)
    return [veiled(Redactor(caller, view), row) for row in rows if caller.may_see(row["slice"])]


def described_endpoint(view: View, caller: Caller, key: str) -> Row:
    """The data of `egs describe endpoint`."""
    slice_ = key.partition("/")[0]
    if not caller.may_see(slice_) or key not in endpoint_rows.known(view.state):
        raise not_found("endpoint", key)
    found = endpoint_rows.endpoint_data(view.state, key, _told(view, caller, Filter(slice=slice_)))
    return veiled(Redactor(caller, view), found)


def clusters_seen(view: View, caller: Caller) -> frozenset[str]:
    """Clusters of the caller's slices; all clusters for a caller who sees every slice."""
    if caller.sees is None:
        return frozenset(view.wanted.clusters)
    slices = view.rights.wanted.slices
    spans = (spec.clusters for name, spec in slices.items() if caller.may_see(name))
    return frozenset(name for span in spans for name in span) & frozenset(view.wanted.clusters)


def clusters(view: View, caller: Caller) -> list[Row]:
    seen = clusters_seen(view, caller)
    return [row for row in tables.clusters(view.state) if row["name"] in seen]


def nodes(view: View, caller: Caller, cluster: str, pool: str) -> list[Row]:
    """Nodes that the caller may see, those without a pool last; empty `cluster` and `pool` mean all."""
    rows = view.once(all_nodes)
    seen, redactor = clusters_seen(view, caller), Redactor(caller, view)
    return [
        veiled(redactor, row)
        for row in rows
        if row["cluster"] in seen and cluster in ("", row["cluster"]) and pool in ("", row["pool"])
    ]


def capacity(view: View, caller: Caller, cluster: str, hours: int, shape: str) -> list[Row]:
    """Free nodes by shape and hour, of pools that the caller's workspaces may use; empty `cluster` means all."""
    needs = view.once_planned(_needs)
    pools = [pool.key for pool in pools_for(view, caller) if cluster in ("", pool.key[0])]
    return capacity_rows.rows(view.state, needs, pools, hours, shape or None)


def _needs(view: View) -> Needs:
    """Computed once per plan: it costs two."""
    return capacity_rows.needs_in(view.state)


def all_nodes(view: View) -> list[Row]:
    """Computed once per view: the schedule of the nodes costs a plan."""
    return tables.nodes(view.state) + tables.unmanaged_nodes(view.state)


def described_gpr(view: View, caller: Caller, key: str, now: datetime) -> Row:
    """The data of `egs describe gpr`."""
    slice_ = key.partition("/")[0]
    if not caller.may_see(slice_) or not _is_known(view, key):
        raise not_found("request", key)
    found = details.gpr_data(view.state, key, _told(view, caller, Filter(gpr=key)), now)
    if _is_unanswered(view, key):
        found["why"] = [NOT_SEEN_TEXT]
    return veiled(Redactor(caller, view), found)


def described_slice(view: View, caller: Caller, name: str) -> Row:
    told = _told(view, caller, Filter(slice=name))
    return veiled(Redactor(caller, view), details.slice_data(view.state, name, told))


def described_request(view: View, caller: Caller, store: Store, name: str) -> Row:
    """The data of `egs describe request`."""
    found = next((row for row in requests(view, caller, store) if row["name"] == name), None)
    if found is None:
        raise not_found("request for a slice called", name)
    # The requester follows the request before they are a member, but sees no requests of an earlier slice of that name.
    may_see = caller.may_see(name)
    rows = (row for row in view.events.found(Filter(slice=name)) if may_see or not row.get("request"))
    told = list(islice(rows, details.EVENTS))
    return {**found, **veiled(Redactor(caller, view), {"file": workspace_path(name), "events": told})}


def described_cluster(view: View, caller: Caller, name: str) -> Row:
    redactor, told = Redactor(caller, view), _told(view, caller, Filter(cluster=name))
    return veiled(redactor, details.cluster_data(view.state, name, told))


def described_node(view: View, caller: Caller, name: str) -> Row:
    cluster, node = details.parts_of_node(name)
    if cluster not in clusters_seen(view, caller):
        raise not_found("node", name)
    told = _told(view, caller, Filter(cluster=cluster, node=node))
    return veiled(Redactor(caller, view), details.node_data(view.state, name, told))


def _is_unanswered(view: View, key: str) -> bool:
    """Whether its file is valid and the controller has not seen it yet."""
    filed = view.wanted.filed.get(key)
    return key not in view.facts.requests and filed is not None and filed.spec is not None


def _is_known(view: View, key: str) -> bool:
    return key in view.facts.requests or key in view.wanted.filed


def _told(view: View, caller: Caller, wanted: Filter) -> list[EventRow]:
    """The latest events, without those of slices that the caller may not see."""
    return list(islice(_seen(caller, view.events.found(wanted)), details.EVENTS))


def _seen(caller: Caller, rows: Iterable[EventRow]) -> Iterable[EventRow]:
    return (row for row in rows if (slice_ := slice_of_event(row)) is None or caller.may_see(slice_))


def veiled(redactor: Redactor, row: Row) -> Row:
    """The same without the names of hidden requests, at any depth."""
    return (
        row
        if redactor.caller.sees is None
        else {name: veiled_value(redactor, one) for name, one in row.items()}
    )


def veiled_value(redactor: Redactor, value: Any) -> Any:
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, dict):
        return {name: veiled_value(redactor, one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [veiled_value(redactor, one) for one in value]
    return value
