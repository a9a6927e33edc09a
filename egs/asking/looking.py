"""Wait times, the queue, approvals, events, reasons and reports.

Held by tests/egs/test_sdk_requests.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict, Unpack
from urllib.parse import quote

from egs.asking.paging import pages
from egs.asking.wishes import Span, gpr_body, instant_text
from egs.calling import API, Ask, call, warned
from egs.data.gpr import ApprovalRow, EventRow, QueueRow, RequestUsage, Usage, WaitTime, WhatIf, Why, Workload
from egs.data.records import Answered, Change, Items, each, of
from egs.sessions import AuthenticatedSession
from egs.steps import Script


def wait_time(  # noqa: PLR0913 - the terms of a request
    workspace_name: str,
    node_count: int = 1,
    gpu_per_node_count: int = 1,
    exit_duration: Span = "1h",
    authenticated_session: AuthenticatedSession | None = None,
    *,
    memory_per_gpu: int | None = 0,
    gpu_shape: str | Sequence[str] | None = "",
    instance_type: str | None = "",
    cluster_name: str | None = "",
    preferred_clusters: Sequence[str] | None = None,
    priority: int | None = None,
    not_before: datetime | str | None = "",
    enable_rdma: bool | None = None,
    enable_secondary_network: bool | None = None,
    prefer: Literal["earliest", "price", "memory"] | None = None,
    max_wait: Span | None = None,
    template_name: str | None = None,
) -> Script[Items[WaitTime]]:
    """When such a request would start, by pool, earliest first; files nothing.

    Takes the arguments that affect the start; the others of a request (name, idle timeout, model, eviction, requeue)
    do not. `template_name` gives defaults. The result is empty if no pool could ever hold the request: `.message` then
    says why, and what would fit.

    Example:
        >>> quotes = egs.wait_time("vision", 2, 8, "6h", auth, gpu_shape="H100-80GB")
        >>> quotes[0].cluster_name, quotes[0].estimated_wait_time
        ('east', '...h...m...s')
    """
    said = dict(locals())
    session = said.pop("authenticated_session")
    told = yield from warned(session, Ask("POST", f"{API}/gpr/waittime", body=gpr_body(said)))
    quotes = each(WaitTime)(told.data.get("items"))
    quotes.message = told.message
    return quotes


def queue(
    workspace_name: str | None = None,
    cluster_name: str | None = None,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[Items[QueueRow]]:
    """Waiting requests in order of service: of the caller's workspaces, for admins all.

    Example:
        >>> egs.queue(authenticated_session=auth)[0].gpr_id
        'gpr-...'
    """
    wanted = {"sliceName": workspace_name, "cluster": cluster_name}
    rows = yield from pages(authenticated_session, f"{API}/queue", wanted)
    return each(QueueRow)(rows)


def why(request_id: str, authenticated_session: AuthenticatedSession | None = None) -> Script[Why]:
    """What a request waits for; prints as sentences.

    Example:
        >>> print(egs.why(request_id, auth))
        It ...
    """
    data = yield from call(authenticated_session, Ask("GET", f"{API}/gpr/why", {"gprId": request_id}))
    return of(Why, data)


def what_if(
    manifests: str | Sequence[str] = (),
    authenticated_session: AuthenticatedSession | None = None,
    *,
    files: Mapping[str, str | None] | None = None,
    changes: Sequence[Mapping[str, Any]] = (),
) -> Script[WhatIf]:
    """What a change would do, without making it; prints as sentences.

    `manifests` are texts of documents, whose places follow from their kinds and names; `files` has texts by path (None
    deletes); `changes` are edits by name, as in docs/reference/api.md. All of them are one change.

    Example:
        >>> found = egs.what_if(changes=[{"do": "end", "gprId": request_id}], authenticated_session=auth)
        >>> found.verdict, found.requests[0]["change"]
        ('clear', 'cancelled')
    """
    texts = [manifests] if isinstance(manifests, str) else list(manifests)
    body = {"manifests": texts, "files": dict(files or {}), "changes": [dict(change) for change in changes]}
    return of(WhatIf, (yield from call(authenticated_session, Ask("POST", f"{API}/whatif", body=body))))


def events(  # noqa: PLR0913 - each narrows the search
    workspace_name: str | None = None,
    request_id: str | None = None,
    authenticated_session: AuthenticatedSession | None = None,
    *,
    node: str | None = None,
    cluster: str | None = None,
    reason: str | None = None,
    type: str | None = None,
    text: str | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    limit: int | None = 100,
) -> Script[Items[EventRow]]:
    """Past events, newest first; at most `limit` events (None: all).

    `since` and `until` are instants, or texts as in `egs get events`; `text` is searched for in the messages.

    Example:
        >>> egs.events(request_id=request_id, authenticated_session=auth)[-1].reason
        'GPRCreated'
    """
    wanted = {"slice": workspace_name, "gpr": request_id, "node": node, "cluster": cluster, "reason": reason}
    wanted |= {"type": type, "q": text, "since": instant_text(since), "until": instant_text(until)}
    rows = yield from pages(authenticated_session, f"{API}/events", wanted, limit)
    return each(EventRow)(rows if limit is None else rows[:limit])


def insights(days: int = 14, authenticated_session: AuthenticatedSession | None = None) -> Script[Answered]:
    """Demand, waits, use, and accuracy of estimates: the report of `egs insights -o json`.

    Example:
        >>> sorted(egs.insights(7, auth))
        [...]
    """
    return _report(f"{API}/insights", {"days": days}, authenticated_session)


def advise(  # noqa: PLR0913 - each is a term of the question
    workspace_name: str,
    authenticated_session: AuthenticatedSession | None = None,
    *,
    hours: int = 24,
    patience: str = "1h",
    cold_start: str = "10m",
    gpus_per_node: int | None = None,
    gpu_shapes: Sequence[str] = (),
    endpoint_name: str | None = None,
) -> Script[Answered]:
    """Nodes by hour, by when to file for missing ones, and the requests that would do so: as `egs advise -o json`.

    `patience` is the price of waiting: after so long it has cost as much as the work. With `endpoint_name` it learns
    from what that endpoint served, and nodes have as many GPUs as those of its request.

    Example:
        >>> egs.advise("vision", auth, patience="30m")["method"]
        'known-needs'
    """
    terms = {"hours": hours, "patience": patience, "coldStart": cold_start, "gpusPerNode": gpus_per_node}
    asked = {**terms, "gpuShape": ",".join(gpu_shapes), "endpoint": endpoint_name}
    return _report(f"{API}/advice/{quote(workspace_name, safe='')}", asked, authenticated_session)


def promises(months: int = 12, authenticated_session: AuthenticatedSession | None = None) -> Script[Answered]:
    """What became of promised starts, by month and cause, and how good forecasts were: as `egs promises -o json`.

    Example:
        >>> egs.promises(3, auth)["total"]["slipped"]
        0
    """
    return _report(f"{API}/promises", {"months": months}, authenticated_session)


def blame(
    request_id: str | None = None,
    field: str | None = None,
    path: str | None = None,
    limit: int = 10,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[Answered]:
    """Which commits set a request, a document (`path`) or one field (`spec.priority`, `status.phase`): as `egs blame`.

    Example:
        >>> egs.blame(request_id, "spec.nodes", authenticated_session=auth)["main"][0]["email"]
        'ada@example.com'
    """
    wanted = {"gprId": request_id, "path": path, "field": field, "limit": limit}
    return _report(f"{API}/blame", wanted, authenticated_session)


def difference(
    since: datetime | str,
    until: datetime | str | None = None,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[Answered]:
    """What differs between two states: requests, nodes, people and rules, each with a sentence.

    `since` and `until` (absent: now) are instants, texts like `12h`, or commits of the status branch.

    Example:
        >>> egs.difference(since, authenticated_session=auth)["summary"]
        [...]
    """
    wanted = {"from": instant_text(since), "to": instant_text(until)}
    return _report(f"{API}/diff", wanted, authenticated_session)


def show_undo(commit: str, authenticated_session: AuthenticatedSession | None = None) -> Script[Answered]:
    """What taking a commit of main back would do: `files`, and the `effect` as a what-if answers; nothing is written.

    Example:
        >>> egs.show_undo(commit, auth)["effect"]["summary"]
        '...'
    """
    return _report(f"{API}/undo", {"commit": commit}, authenticated_session)


def undo(
    commit: str, digest: str | None = None, authenticated_session: AuthenticatedSession | None = None
) -> Script[Change]:
    """Take a commit of main back by a pull request; `digest` of `show_undo`: only if it is still that change.

    Raises Conflict: a later commit changed the same field, or the change differs from what was shown.
    """
    body = {"commit": commit, "digest": digest}
    data = yield from call(authenticated_session, Ask("POST", f"{API}/undo", body=body))
    return of(Change, data.get("change"))


def workloads(
    workspace_name: str | None = None, authenticated_session: AuthenticatedSession | None = None
) -> Script[Items[Workload]]:
    """What runs on the nodes: models, GPUs, health, since when idle, cost so far."""
    rows = yield from pages(authenticated_session, f"{API}/workloads", {"sliceName": workspace_name})
    return each(Workload)(rows)


def usage(authenticated_session: AuthenticatedSession | None = None) -> Script[Items[Usage]]:
    """GPU-hours and cost of each workspace, by month, with what runs now.

    Example:
        >>> [row.slice_name for row in egs.usage(auth)]
        [...'vision'...]
    """
    rows = yield from pages(authenticated_session, f"{API}/usage", {})
    return each(Usage)(rows)


def request_usage(
    workspace_name: str | None = None,
    authenticated_session: AuthenticatedSession | None = None,
    *,
    month: str | None = None,
) -> Script[Items[RequestUsage]]:
    """GPU-hours and cost of each request that has had nodes, of one month (`2026-11`) or of all.

    Example:
        >>> [row.name for row in egs.request_usage("vision", auth)]
        [...]
    """
    wanted = {"sliceName": workspace_name, "month": month}
    rows = yield from pages(authenticated_session, f"{API}/usage/requests", wanted)
    return each(RequestUsage)(rows)


def schedule(authenticated_session: AuthenticatedSession | None = None) -> Script[Answered]:
    """Which request starts when and where: the report of `egs plan -o json`."""
    return _report(f"{API}/plan", {}, authenticated_session)


def calendar(  # noqa: PLR0913 - each narrows the calendar
    begin: datetime | str | None = None,
    hours: int = 336,
    authenticated_session: AuthenticatedSession | None = None,
    *,
    first: int = 0,
    rows: int = 60,
    cluster: str | None = None,
    pool: str | None = None,
    shape: str | None = None,
    workspace_name: str | None = None,
    free: bool = False,
) -> Script[Answered]:
    """Nodes as rows with bars: what has each, and what starts next. Times of bars are seconds since 1970.

    A window of `rows` from number `first` on and of `hours` from `begin` on (None: now); `total` counts all that match.

    Example:
        >>> egs.calendar(hours=24, authenticated_session=auth)["total"]
        6
    """
    wanted = {"from": instant_text(begin), "hours": hours, "first": first, "rows": rows, "cluster": cluster}
    wanted |= {"pool": pool, "shape": shape, "sliceName": workspace_name, "free": free or None}
    return _report(f"{API}/calendar", wanted, authenticated_session)


def problems(authenticated_session: AuthenticatedSession | None = None) -> Script[Items[Answered]]:
    """What is wrong with the repository's documents: the rows of `egs get problems -o json`. For admins.

    Example:
        >>> egs.problems(auth)
        [...]
    """
    rows = yield from pages(authenticated_session, f"{API}/problems", {})
    return Items(Answered(row) for row in rows)


def write_status(write_id: str, authenticated_session: AuthenticatedSession | None = None) -> Script[Change]:
    """The outcome of an `accepted` change, by its `.change.url` or the id at its end."""
    data = yield from call(authenticated_session, Ask("GET", f"{API}/writes/{write_id.rpartition('/')[2]}"))
    return of(Change, data.get("change") or data)


def _report(
    path: str, params: dict[str, Any], authenticated_session: AuthenticatedSession | None
) -> Script[Answered]:
    data = yield from call(authenticated_session, Ask("GET", path, params))
    return Answered(data)


def approvals(authenticated_session: AuthenticatedSession | None = None) -> Script[Items[ApprovalRow]]:
    """Requests that wait for an admin.

    Example:
        >>> egs.approvals(auth)
        [...]
    """
    rows = yield from pages(authenticated_session, f"{API}/approvals", {})
    return each(ApprovalRow)(rows)


class ApprovalFields(TypedDict, total=False):
    """Further keywords of an approval, under their names on the wire."""

    limit: Mapping[str, Any] | None
    notAfter: str | None
    rule: Literal["request", "extension"]


def approve(
    request_id: str,
    spec_digest: str | None = None,
    reason: str = "",
    authenticated_session: AuthenticatedSession | None = None,
    **more: Unpack[ApprovalFields],
) -> Script[Change]:
    """Approve the version of a request that `spec_digest` names, from `approvals` or `gpu_request_status`.

    Without a digest the request is approved as it is now. Further keywords: `limit`, `notAfter`, and
    `rule="extension"` with `limit={"extend": "2h"}` for grace beyond the project's limit.

    Raises Unauthorized: the caller is not an admin, or wrote the request; Conflict: the request has changed since,
    `data` has the details; WrongState or Conflict: no decision is needed.
    """
    word = {"decision": "approve", "reason": reason, **more}
    return _decided(request_id, spec_digest, word, authenticated_session)


def reject(
    request_id: str,
    spec_digest: str | None = None,
    reason: str = "",
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[Change]:
    """Reject a request. Takes `spec_digest` and raises as `approve` does."""
    return _decided(request_id, spec_digest, {"decision": "reject", "reason": reason}, authenticated_session)


def _decided(
    request_id: str, digest: str | None, word: dict[str, Any], given: AuthenticatedSession | None
) -> Script[Change]:
    if digest is None:
        digest = (yield from call(given, Ask("GET", f"{API}/gpr", {"gprId": request_id}))).get("specDigest")
    said = {name: value for name, value in word.items() if value != ""}
    body = {"gprId": request_id, "specDigest": digest, **said}
    data = yield from call(given, Ask("POST", f"{API}/approvals", body=body))
    return of(Change, data.get("change"))
